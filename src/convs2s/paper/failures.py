"""The reason why a run has no numbers: the last error in the logs of its jobs.

The workflow uses this module while it plans, so it must not import libraries that are only
installed in the environments of jobs.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from convs2s.config.runs import members
from convs2s.layout import Layout
from convs2s.paper.cells import Cell

_LAST_BYTES = 8192  # the part of a log that is read, from its end
_TRACEBACK = "Traceback (most recent call last):\n"
# An error message (group 1), or another last message of the program (group 2).
_MESSAGE = re.compile(r"^(?:convs2s: )?error: (.+)$|^convs2s: (.+)$")
# The line of a traceback that names the exception.
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b.*$")
_LONGEST = 160  # characters of a reason, so that it fits into a table

STOPPED = "stopped, rerun to resume"
"""The reason for a run that a signal, Ctrl-C or its time limit ended, which is not an error."""


def failures_of(
    cells: Iterable[Cell],
    layout: Layout,
    logs: str,
) -> dict[str, str]:
    """Return why runs have no numbers: fingerprint of a run -> ``failed: REASON``, or STOPPED.

    The reasons come from the logs of the runs. Runs that have not started or are still running are
    not in the result.
    """
    failures = {}
    for cell in cells:
        task = layout.task(cell.task)
        folder = f"{logs}/{cell.task}/{cell.model}"
        for record in cell.records:
            if Path(record.file).exists():
                continue
            # The logs of the trainings whose model is missing.
            files = [
                Path(f"{folder}/{member}/train.log")
                for member in members(record.run.run)
                if not Path(task.model(cell.model, member)).exists()
            ]
            if not files:
                # All models exist, so a later job has failed. Only the newest log counts.
                logs_of_run = Path(f"{folder}/{record.run.run}")
                # The name of the development set is not known here, so "*" matches any.
                jobs = [*cell.jobs, *cell.tuning_jobs("*")]
                files = [log for job in jobs for log in logs_of_run.glob(f"{job}.log")]
                files = sorted(files, key=lambda log: log.stat().st_mtime)[-1:]
            for log in files:
                if reason := reason_in(log):
                    failures[record.fingerprint] = reason
                    break
    return failures


def reason_in(log: Path) -> str | None:
    """Return ``failed: `` and the error at the end of a log, or STOPPED if the run was stopped.

    Return None if the log ends in another way, does not exist, or cannot be read.
    """
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _LAST_BYTES))
            text = stream.read().decode("utf-8", "replace").rstrip()
    except OSError:
        return None
    last = text[text.rfind("\n") + 1 :].strip()  # the line that may state the reason
    _, traceback, after = text.rpartition(_TRACEBACK)
    # Each try of a job begins with a line that names its process. If such a line follows the last
    # traceback, the traceback belongs to an earlier try.
    if traceback and ", process " not in after:
        # The message of an exception may have several lines. Only the first names the exception.
        for line in after.splitlines():
            if _EXCEPTION.match(line):
                last = line
    message = _MESSAGE.match(last)
    if message:
        reason = message[1]
        # Messages of `errors.UnfinishedError` are printed without "error:", so group 1 is None.
        if reason is None or reason.startswith("interrupted"):
            return STOPPED
    elif _EXCEPTION.match(last):
        reason = last
    else:
        return None
    if len(reason) > _LONGEST:
        reason = f"{reason[: _LONGEST - 3]}..."
    return f"failed: {reason}"
