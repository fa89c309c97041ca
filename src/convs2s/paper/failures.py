"""Why a run's numbers are not there: the last fault that the logs of its jobs state.

Planning asks for it, so this module imports nothing that only jobs have.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from convs2s.config.runs import members
from convs2s.layout import Layout
from convs2s.paper.cells import Cell

_LAST_BYTES = 8192
_TRACEBACK = "Traceback (most recent call last):\n"
_STATED = re.compile(r"^(?:convs2s: )?error: (.+)$|^convs2s: (.+)$")
_FAULT = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b.*$")
_LONGEST = 160

STOPPED = "stopped, rerun to resume"
"""What is said of a run that a signal, Ctrl-C or its time limit ended: no fault."""


def failures_of(cells: Iterable[Cell], layout: Layout, logs: str) -> dict[str, str]:
    """Return why the numbers of runs do not exist: ``failed: REASON`` of a log, or STOPPED.

    They are by the fingerprint of the run. No log states one of a run that has not started or still
    runs.
    """
    failures = {}
    for cell in cells:
        task = layout.task(cell.task)
        folder = f"{logs}/{cell.task}/{cell.model}"
        for record in cell.records:
            if Path(record.file).exists():
                continue
            files = [
                Path(f"{folder}/{member}/train.log")
                for member in members(record.run.run)
                if not Path(task.model(cell.model, member)).exists()
            ]
            if not files:
                # All models are there: the latest of the jobs between them and the numbers.
                of_run = Path(f"{folder}/{record.run.run}")
                jobs = [*cell.jobs, *cell.tuning_jobs("*")]
                files = [log for job in jobs for log in of_run.glob(f"{job}.log")]
                files = sorted(files, key=lambda log: log.stat().st_mtime)[-1:]
            reasons = filter(None, map(reason_in, files))
            if reason := next(reasons, None):
                failures[record.fingerprint] = reason
    return failures


def reason_in(log: Path) -> str | None:
    """Return ``failed: `` and the fault that a log ends with, or STOPPED.

    None where it ends with none of them, is not there, or may not be read.
    """
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _LAST_BYTES))
            text = stream.read().decode("utf-8", "replace").rstrip()
    except OSError:
        return None
    last = text[text.rfind("\n") + 1 :].strip()
    _, traced, raised = text.rpartition(_TRACEBACK)
    if traced and ", process " not in raised:  # no later try; a fault may have several lines
        for line in raised.splitlines():
            if _FAULT.match(line):
                last = line
    stated = _STATED.match(last)
    if stated and (stated[2] or stated[1].startswith("interrupted")):
        return STOPPED  # `errors.UnfinishedError` is said without "error:"
    if stated:
        reason = stated[1]
    elif _FAULT.match(last):
        reason = last
    else:
        return None
    if len(reason) > _LONGEST:  # it has to fit into a table
        reason = f"{reason[: _LONGEST - 3]}..."
    return f"failed: {reason}"
