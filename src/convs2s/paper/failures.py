"""Why a run's numbers are not there: the last fault that the logs of its jobs state.

Planning asks for it, so this module imports nothing that only jobs have.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from convs2s.config.runs import members
from convs2s.layout import Layout
from convs2s.paper.cells import Cell

_LAST_BYTES = 8192
_STATED = re.compile(r"^(?:convs2s: )?error: (.+)$|^convs2s: (.+)$")
_FAULT = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b.*$")
_LONGEST = 160


def failures_of(
    cells: Iterable[Cell], layout: Layout, logs: str, there: Callable[[str], Path] = Path
) -> dict[str, str]:
    """Return why the numbers of runs are not there: their path -> the reason that a log states.

    Of a run that has not started, or still goes on, no log states one.

    Args:
        cells: whose runs are looked at.
        layout: of the results.
        logs: the folder of the logs.
        there: gives where a path really is, for a module with a prefix.
    """
    found = {}
    for cell in cells:
        for run, path in zip(cell.runs, cell.paths, strict=True):
            if path in found or there(path).exists():
                continue
            folder = f"{logs}/{cell.task}/{cell.model}"
            trained = {
                layout.task(cell.task).model(cell.model, one): f"{folder}/{one}/train.log"
                for one in members(run)
            }
            asked = [there(log) for model, log in trained.items() if not there(model).exists()]
            asked = asked or _logs_of(there(f"{folder}/{run}"), cell)
            reason = next(filter(None, map(reason_in, asked)), None)
            if reason:
                found[path] = reason
    return found


def reason_in(log: Path) -> str | None:
    """Return the fault that a log ends with; None where it ends with none, or is not there."""
    if not log.is_file():
        return None
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _LAST_BYTES))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    stated = _STATED.match(last)
    reason = (stated[1] or stated[2]) if stated else last if _FAULT.match(last) else None
    return reason and (reason if len(reason) <= _LONGEST else f"{reason[: _LONGEST - 3]}...")


def _logs_of(folder: Path, cell: Cell) -> list[Path]:
    """Return the logs of the jobs between a run's model and a cell's numbers, latest first."""
    stems = [*cell.jobs, *cell.tuning_jobs("*")]
    logs = [log for stem in stems for log in folder.glob(f"{stem}.log")]
    return sorted(logs, key=lambda log: -log.stat().st_mtime)
