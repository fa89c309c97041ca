"""How the trainings and jobs of a results folder are: ``convs2s status``."""

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from convs2s.config.section import Values
from convs2s.errors import UserError
from convs2s.pipeline.status_files import (
    ends_of,
    fields_of,
    is_held,
    last_state,
    log_of,
    logs_of,
    modified,
    runs_in,
    text_of,
)
from convs2s.training.progress_file import NAME as PROGRESS
from convs2s.training.state_folder import LOCK, REFUSED, STATE

SHOWN_LINES = 5
"""Last lines of a log that are shown of what crashed."""

SILENT_SECONDS = 600.0
"""After which a process on another machine, whose lock cannot be seen here, is taken for dead."""

Condition = Literal["running", "locked", "crashed", "stopped", "finished", "not started"]

ORDER: Sequence[Condition] = (
    "running",
    "locked",
    "crashed",
    "stopped",
    "not started",
    "finished",
)
"""What a person looks for first."""

_OF_TRAINING = re.compile(r"/seed\d+/train$")
"""The name of a training's log; that of the corpus has such a file name, too."""

_OWNER = re.compile(r"[-\d]{10} [:\d]{8}, (process \d+ on [^,]+)")


@dataclass(frozen=True)
class TrainingStatus:
    """How a training is.

    Attributes:
        name: ``TASK/MODEL/RUN``, or the folder below the results.
        condition: in one word. ``locked``: a process holds its lock and another one was refused,
            or does not say that it trains.
        why: it is so, in words.
        owner: the process that trains, or did so last.
        epoch, epochs, batch, batches, updates, loss, perplexity, best_epoch, tokens_per_second,
            seconds: as of ``convs2s.training.progress_file.Progress``.
        silent_seconds: since a running one last said how far it is.
        state_seconds: age of its last state; None without one.
        log: the last lines of what crashed.
    """

    name: str
    condition: Condition
    why: str | None = None
    owner: str | None = None
    epoch: int | None = None
    epochs: float | None = None
    batch: int | None = None
    batches: int | None = None
    updates: int | None = None
    loss: float | None = None
    perplexity: float | None = None
    best_epoch: int | None = None
    tokens_per_second: int | None = None
    seconds: float | None = None
    silent_seconds: float | None = None
    state_seconds: float | None = None
    log: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobStatus:
    """How another job of the workflow is.

    Attributes:
        name: its log below the folder of logs, without ``.log``.
        condition: in one word.
        owner: the process that works, or did.
        log: the last lines of what crashed.
    """

    name: str
    condition: Condition
    owner: str | None = None
    log: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """How everything in a results folder is; what a person looks for first comes first."""

    trainings: tuple[TrainingStatus, ...]
    jobs: tuple[JobStatus, ...]


def status(results: Path) -> Status:
    """Look at a results folder, or that of a task or a run.

    Raises:
        UserError: there is no such folder.
    """
    if not results.is_dir():
        raise UserError(f"{results}: no such folder: name that of the results, or of a task")
    now, root = time.time(), results.absolute()
    trainings = {run: _training(run, _name(run, root), now) for run in runs_in(root)}
    jobs = []
    for log, name in logs_of(root):
        if not _OF_TRAINING.search(name):
            jobs.append(_job(log, name))
        elif (run := _run_of(log)) not in trainings:
            trainings[run] = _before_its_states(_name(run, root), log)
    return Status(_ordered(trainings.values()), _ordered(jobs))


def _ordered(found: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(found, key=lambda one: (ORDER.index(one.condition), one.name)))


def _name(run: Path, root: Path) -> str:
    parts = run.parts[-4:] if run == root else run.relative_to(root).parts
    return "/".join(part for part in parts if part != "models")


def _run_of(log: Path) -> Path:
    """Return the folder of the run whose training has a log of the workflow."""
    task, model, run = log.parts[-4:-1]
    return log.parents[4] / task / "models" / model / run


def _training(run: Path, name: str, now: float) -> TrainingStatus:
    """Return how the training in a folder is."""
    folder = run / STATE
    progress = fields_of(folder / PROGRESS)
    said = text_of(folder / LOCK).strip()
    record = {} if said else fields_of(run / "training.json")
    figures = _figures(progress)
    if record and progress.get("phase", "finished") == "finished":
        return TrainingStatus(**{**figures, **_of_record(record), "name": name})
    held = is_held(folder / LOCK)
    state = last_state(folder, str(progress.get("state", "")))
    written = None if state is None else modified(state)
    figures |= {
        "name": name,
        "owner": said.partition(":")[0] or progress.get("owner"),
        "state_seconds": None if written is None else max(0.0, now - written),
    }
    silent = max(0.0, now - float(progress.get("written", 0.0)))
    mine = bool(said) and progress.get("owner") == said
    if held or (mine and not _is_here(said) and silent < SILENT_SECONDS):
        return TrainingStatus(**figures | _of_holder(folder, said, mine), silent_seconds=silent)
    ended = _of_ended(progress, said)
    if ended["condition"] == "crashed":
        ended["log"] = tuple(ends_of(log_of(run))[1][-SHOWN_LINES:])
    return TrainingStatus(**figures | ended)


def _figures(progress: Values) -> Values:
    names = TrainingStatus.__dataclass_fields__.keys() & progress.keys()
    return {name: progress[name] for name in names - {"why", "owner", "seconds"}}


def _of_record(record: Values) -> Values:
    """Return what a finished training's record says."""
    return {
        "condition": "finished",
        "why": record.get("stop_reason"),
        "epoch": record.get("epochs"),
        "epochs": None,
        "batch": None,
        "batches": None,
        "updates": record.get("updates"),
        "perplexity": record.get("validation_perplexity"),
        "best_epoch": record.get("best_epoch"),
    }


def _of_holder(folder: Path, said: str, mine: bool) -> Values:
    """Return how a training is whose lock somebody holds.

    Args:
        folder: of its states.
        said: what the lock says of its holder.
        mine: whether it is he who said last how far the training is.
    """
    refused = fields_of(folder / REFUSED)
    if said and refused.get("owner") == said:
        why = f"{said} holds it; {refused.get('refused')} was refused"
        return {"condition": "locked", "why": why}
    if not mine:
        holder = said or "a process that does not say its name"
        return {"condition": "locked", "why": f"{holder} holds it and says nothing of a training"}
    progress = fields_of(folder / PROGRESS)
    phase = progress.get("phase")
    doing = None if phase == "training" else phase
    return {"condition": "running", "why": doing, "seconds": progress.get("seconds")}


def _of_ended(progress: Values, said: str) -> Values:
    """Return how a training is that nobody works on, and that has left no record."""
    if not said:
        if progress.get("phase") == "finished":
            why = f"{progress.get('why')}; its record is not there: the same command writes it"
            return {"condition": "finished", "why": why}
        return {"condition": "not started"}
    owner, ended, stated = said.partition(": ")
    if not ended:
        why = f"{owner} has ended without a word: killed, or its machine went down"
        return {"condition": "crashed", "why": why}
    stopped = progress.get("owner") == owner and progress.get("phase") == "stopped"
    return {"condition": "stopped" if stopped else "crashed", "why": stated}


def _is_here(owner: str) -> bool:
    return owner.endswith(f" on {os.uname().nodename}")


def _before_its_states(name: str, log: Path) -> TrainingStatus:
    """Return how a training is that has a log and no states: it failed before it began."""
    first, last = ends_of(log)
    failed = bool(last) and "error: " in last[-1]
    owner = _OWNER.search(first)
    return TrainingStatus(
        name,
        "crashed" if failed else "not started",
        why=last[-1] if failed else None,
        owner=owner and owner[1],
        log=tuple(last[-SHOWN_LINES:]) if failed else (),
    )


def _job(log: Path, name: str) -> JobStatus:
    """Return how a job is, by its log: a locked one grows, one without an end was cut short."""
    first, last = ends_of(log)
    owner = _OWNER.match(first)
    if owner is None and last and last[-1].startswith("error: "):
        return JobStatus(name, "crashed", None, tuple(last[-SHOWN_LINES:]))
    if owner is None or (last and last[-1].startswith("done in ")):
        return JobStatus(name, "finished", owner and owner[1])
    if is_held(log):
        return JobStatus(name, "running", owner[1])
    return JobStatus(name, "crashed", owner[1], tuple(last[-SHOWN_LINES:]))
