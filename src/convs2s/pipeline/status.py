"""The condition of the trainings and jobs in a results folder, for ``convs2s status``.

Trainings and jobs may run on other machines that share the folder, so the process table of this
machine says nothing about them. Instead, each holds a lock on a file while it runs, and the kernel
frees the lock when the process dies, for whatever reason. A file that is not locked therefore
belongs to a process that has ended, and its log or lock file says how.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from convs2s.config.section import Values
from convs2s.errors import UserError
from convs2s.files.atomic import whole_files
from convs2s.files.locks import try_lock
from convs2s.model_file import STATE
from convs2s.paper.failures import STOPPED, reason_in
from convs2s.pipeline.job import lock_beside
from convs2s.training.history import Progress
from convs2s.training.log import LOG_NAME
from convs2s.training.state_folder import LOCK, PROGRESS, REFUSED

# Number of last lines to show from the log of a crashed training or job.
SHOWN_LINES = 5

SILENT_SECONDS = 600.0
"""Seconds since the last note of progress after which a training on another machine counts as dead.

This matters if its lock cannot be seen here, because the file system does not share locks.
"""

Condition = Literal[
    "running", "locked", "crashed", "stopped", "not started", "finished"
]

Outcome = tuple[Condition, str | None]
"""A condition and the reason for it, if one is known."""

ORDER: Sequence[Condition] = get_args(Condition)
"""The conditions in the order in which they are listed: what a person looks for comes first."""

# Folders in the results or in a task that contain no runs of models.
_NO_RUNS = {
    "alignment",
    "benchmarks",
    "corpus",
    "dataset",
    "downloads",
    "logs",
    "paper",
    "vocabulary",
}
# Folders of logs that are not logs of a task.
_LOGS_OF_NO_TASK = {"download", "paper", "shown"}
# Levels from the results down to a run: scales/SCALE/TASK/models/MODEL/RUN.
_DEEPEST = 6
_TAIL_BYTES = 4096  # bytes that are read at the end of a log

# Fields of `Progress` that are shown for every training that is not finished.
_FIGURES = (
    "epoch",
    "epochs",
    "batch",
    "batches",
    "updates",
    "loss",
    "perplexity",
    "best_epoch",
    "tokens_per_second",
)
# Fields of `Progress` about the time that is left, shown for running trainings only.
_TIME_LEFT = ("seconds", "seconds_of_epoch")

_LOG_OF_TRAINING = re.compile(r"/seed\d+/train$")
"""End of the name of a training's log.

``train`` alone is not enough: logs about the training part of a corpus have this file name, too.
"""

_OWNER = re.compile(r"[-\d]{10} [:\d]{8}, (process \d+ on [^,\n]+)")
"""What the first line of a log names: date, time and process (``convs2s.pipeline.job``)."""


@dataclass(frozen=True)
class TrainingStatus:
    """The status of a training. Its figures are those of ``convs2s.training.history.Progress``."""

    name: str  # TASK/MODEL/RUN, or the path of the run below the results
    condition: Condition
    """``locked`` means that a process holds the lock, and either it has noted no progress of a
    training, or another process was refused meanwhile."""
    why: str | None = None
    owner: str | None = None  # the process that trains, or that was the last to train
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
    seconds_of_epoch: float | None = None
    # If the lock is held: time since the last noted progress.
    silent_seconds: float | None = None
    state_seconds: float | None = None  # age of the last saved state
    log: tuple[str, ...] = ()  # last lines of the log, if the training crashed


@dataclass(frozen=True)
class JobStatus:
    """The status of a job of the workflow that is not a training."""

    name: str  # path of its log below the folder of logs, without ``.log``
    condition: Condition
    owner: str | None = None  # the process of the job, if its log names one
    log: tuple[str, ...] = ()  # last lines of the log, if the job crashed


@dataclass(frozen=True)
class Status:
    """The trainings and jobs of a results folder, each sorted by condition (``ORDER``) and name."""

    trainings: tuple[TrainingStatus, ...]
    jobs: tuple[JobStatus, ...]


def status(results: Path) -> Status:
    """Return the status of all trainings and jobs in a folder of results, of a task or of a run.

    Raises:
        UserError: there is no such folder.
    """
    if not results.is_dir():
        raise UserError(
            f"{results}: no such folder: name the folder of the results, or of a task"
        )
    root = results.absolute()
    trainings = {
        run: _training_status(run, _name(run, root)) for run in _run_folders(root)
    }
    jobs = []
    for log, name in _job_logs(root):
        if not _LOG_OF_TRAINING.search(name):
            jobs.append(_job_status(log, name))
            continue
        # A training that failed before it began has a log, RESULTS/logs/TASK/MODEL/SEED/train.log,
        # but nothing in the folder of its run.
        task, model, seed = log.parts[-4:-1]
        run = log.parents[4] / task / "models" / model / seed
        if run not in trainings:
            trainings[run] = _failed_training(_name(run, root), log)
    return Status(_ordered(trainings.values()), _ordered(jobs))


def _ordered(statuses: Iterable[Any]) -> tuple[Any, ...]:
    """Return the statuses of trainings or jobs, sorted by condition (``ORDER``) and name."""
    return tuple(
        sorted(
            statuses, key=lambda status: (ORDER.index(status.condition), status.name)
        )
    )


def _name(run: Path, root: Path) -> str:
    """Return the name of a run: its path below ``root`` without the folder ``models``.

    If the run is ``root`` itself, the name is TASK/MODEL/RUN.
    """
    parts = run.parts[-4:] if run == root else run.relative_to(root).parts
    return "/".join(part for part in parts if part != "models")


def _training_status(run: Path, name: str) -> TrainingStatus:
    """Return the status of the training in the folder of a run.

    The status follows from these files (``convs2s.training.state_folder`` writes those in
    ``state``):

    - ``training.json`` is the record of a finished training.
    - ``state/lock`` is locked while a process trains. Its text is ``process N on MACHINE`` while
      that process trains, and also after it was killed. After it was stopped or has failed, the
      text is ``process N on MACHINE: REASON``. After the end of training, the file is empty.
    - ``state/progress.json`` has the figures of the training, the process that wrote them
      (``owner``), and the time when it did (``written``).
    - ``state/refused.json`` names the last process that was refused (``refused``), and the process
      that held the lock then (``owner``).

    Some file systems do not show the lock of a process on another machine. Such a process counts as
    alive if it wrote its progress less than ``SILENT_SECONDS`` ago.
    """
    folder = run / STATE
    progress = _read_fields(folder / PROGRESS, Progress)
    holder = ""
    with suppress(OSError):
        holder = (folder / LOCK).read_text("utf-8", "replace").strip()
    record = _read_fields(run / "training.json")
    # The record may be that of an earlier training, which a new one is about to replace.
    if record and not holder and progress.get("phase", "finished") == "finished":
        return _finished_training(name, record, progress)
    now = time.time()
    figures: Values = {figure: progress.get(figure) for figure in _FIGURES}
    figures["owner"] = holder.partition(":")[0] or progress.get("owner")
    time_of_state = _time_of_state(folder, progress.get("state") or "*")
    # `max`: the clock of the machine that wrote the time may be ahead of this one's.
    if time_of_state is not None:
        figures["state_seconds"] = max(0.0, now - time_of_state)
    silent = max(0.0, now - float(progress.get("written", 0.0)))
    has_noted_progress = bool(holder) and progress.get("owner") == holder
    is_elsewhere = not holder.endswith(f" on {os.uname().nodename}")
    is_alive_elsewhere = has_noted_progress and is_elsewhere and silent < SILENT_SECONDS
    if _is_held(folder / LOCK) or is_alive_elsewhere:
        figures["silent_seconds"] = silent
        refused = _read_fields(folder / REFUSED)
        condition, why = _held_training(refused, progress, holder)
    else:
        condition, why = _ended_training(progress, holder)
    if condition == "running":
        figures |= {figure: progress.get(figure) for figure in _TIME_LEFT}
    elif condition == "crashed":
        _, figures["log"] = _read_log(_log_of_training(run))
    return TrainingStatus(name, condition, why, **figures)


def _finished_training(
    name: str,
    record: Values,
    progress: Values,
) -> TrainingStatus:
    """Return the status of a finished training.

    Most figures come from its record. Those in ``progress.json`` may be older, or missing.
    """
    why = record.get("stop_reason")
    ratio = (record.get("source_use") or {}).get("ratio")
    if ratio:
        why = f"{why}; permuted sources {ratio:.3g} times"
    return TrainingStatus(
        name,
        "finished",
        why,
        epoch=record.get("epochs"),
        updates=record.get("updates"),
        loss=progress.get("loss"),
        perplexity=record.get("validation_perplexity"),
        best_epoch=record.get("best_epoch"),
        tokens_per_second=progress.get("tokens_per_second"),
    )


def _time_of_state(folder: Path, state: str) -> float | None:
    """Return when the last state was written, in seconds since 1970; None without a state.

    ``state`` is the name of the folder with the states, or a pattern for such names.
    """
    times = []
    for file in folder.glob(f"{state}/last.safetensors"):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times, default=None)


def _log_of_training(run: Path) -> Path:
    """Return the log of the workflow's job for a run; without one, the log in the run's folder."""
    # The folder of a run of the workflow is RESULTS/TASK/models/MODEL/SEED.
    match run.parts:
        case (*results, task, "models", model, seed):
            log = Path(*results, "logs", task, model, seed, "train.log")
            if log.is_file():
                return log
    return run / STATE / LOG_NAME


def _held_training(
    refused: Values,
    progress: Values,
    holder: str,
) -> Outcome:
    """Return the condition of a training whose lock is held.

    The training runs if the holder of the lock is the process that noted the progress. Then the
    reason is the phase, or None in the phase ``training``. The training is locked if the holder has
    noted no progress, or if another process was refused while this holder had the lock.
    """
    if holder and refused.get("owner") == holder:
        return "locked", f"{holder} holds it; {refused.get('refused')} was refused"
    if not holder or progress.get("owner") != holder:
        name = holder or "a process that does not state its name"
        return "locked", f"{name} holds it and has noted no progress of a training"
    phase = progress.get("phase")
    return "running", None if phase == "training" else phase


def _ended_training(progress: Values, lock_text: str) -> Outcome:
    """Return the condition of a training whose lock is free and that has written no record.

    ``lock_text`` is the text of its lock file, as ``_training_status`` describes it.
    """
    phase = progress.get("phase")
    if not lock_text:
        if phase != "finished":
            return "not started", None
        why = progress.get("why")
        return "finished", f"{why}; its record is missing: rerun to write it"
    owner, colon, stated = lock_text.partition(": ")
    if not colon:
        why = f"{owner} has ended without a word: killed, or its machine went down"
        return "crashed", why
    stopped = progress.get("owner") == owner and phase == "stopped"
    return "stopped" if stopped else "crashed", stated


def _failed_training(name: str, log: Path) -> TrainingStatus:
    """Return the status of a training that failed before it began: it has a log but no states.

    If the log states no failure, the training has not started.
    """
    owner, last_lines = _read_log(log)
    reason = reason_in(log)
    if not reason:
        return TrainingStatus(name, "not started", owner=owner)
    condition: Condition = "stopped" if reason == STOPPED else "crashed"
    why = reason.removeprefix("failed: ")
    return TrainingStatus(name, condition, why, owner, log=last_lines)


def _job_status(log: Path, name: str) -> JobStatus:
    """Return the status of a job from its log and its lock (``convs2s.pipeline.job``).

    A job whose log ends with a line ``done in ...`` is finished. Any other job runs if its lock is
    held, and has crashed if not. A log whose first line names no process is that of a shell
    command, which has no lock. Such a job counts as finished if its log states no failure.
    """
    owner, last_lines = _read_log(log)
    condition: Condition
    if owner is None:
        condition = "crashed" if reason_in(log) else "finished"
    elif last_lines and last_lines[-1].startswith("done in "):
        condition = "finished"
    else:
        condition = "running" if _is_held(lock_beside(log)) else "crashed"
    return JobStatus(
        name, condition, owner, last_lines if condition == "crashed" else ()
    )


def _run_folders(root: Path) -> Iterator[Path]:
    """Yield the folders of runs: those that contain the states or the record of a training."""
    for path, folders, files in os.walk(root, followlinks=True):
        folder = Path(path)
        is_run = STATE in folders or "training.json" in files
        if is_run:
            yield folder
        # os.walk descends into the folders that remain in the list.
        if is_run or len(folder.relative_to(root).parts) == _DEEPEST:
            folders.clear()
        remaining = sorted(set(folders) - _NO_RUNS)
        folders[:] = [name for name in remaining if not name.startswith(".")]


def _job_logs(results: Path) -> Iterator[tuple[Path, str]]:
    """Yield the logs of jobs for a folder of results and its scales, or for the folder of a task.

    Each log comes with the name of its job: the path of the log below the folder of logs, without
    ``.log``. For the logs of a scale, ``SCALE/`` is put before the name; if ``results`` is a task,
    ``TASK/``. Logs of a task whose folder was removed are left out, unless the job runs.
    """
    folders = {"": results}
    for scale in results.glob("scales/*"):
        folders[f"{scale.name}/"] = scale
    for prefix, folder in folders.items():
        for log, name in _named_logs(folder / "logs"):
            task, _, rest = name.partition("/")
            is_of_task = bool(rest) and task not in _LOGS_OF_NO_TASK
            was_removed = is_of_task and not (folder / task).is_dir()
            if not was_removed or _is_held(lock_beside(log)):
                yield log, f"{prefix}{name}"
    # These logs exist if ``results`` is the folder of a task.
    for log, name in _named_logs(results.parent / "logs" / results.name):
        yield log, f"{results.name}/{name}"


def _named_logs(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the logs below a folder of logs with their paths in it, without ``.log``."""
    for log in whole_files(folder):
        if log.suffix == ".log":
            yield log, str(log.relative_to(folder).with_suffix(""))


def _is_held(path: Path) -> bool:
    """Return whether a process, here or on another machine, holds the lock on a file.

    This takes a shared lock for a moment, so that several processes can ask at the same time.
    """
    try:
        with path.open("rb") as stream:
            return not try_lock(stream, shared=True)
    except OSError:
        return False  # no such file, or a file system without locks


def _read_fields(path: Path, form: Any = Values) -> Values:
    """Return the object in a JSON file, which must have the type ``form``.

    Return an empty dict if the file is missing or damaged, or has another content.
    """
    try:
        fields: Values = json.loads(path.read_bytes())
        TypeAdapter(form).validate_python(fields)
    except (OSError, ValueError):
        return {}
    return fields


def _read_log(path: Path) -> tuple[str | None, tuple[str, ...]]:
    """Return the process that the first line of a log names, and the last lines to show.

    The last lines are at most ``SHOWN_LINES`` lines that are not blank. The first of them may be
    cut, because only ``_TAIL_BYTES`` are read. The process is None if the line names none. If the
    log cannot be read, the result is None and no lines.
    """
    try:
        with path.open("rb") as stream:
            first = stream.readline(_TAIL_BYTES).decode("utf-8", "replace")
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL_BYTES))
            last = stream.read().decode("utf-8", "replace")
    except OSError:
        return None, ()
    owner = _OWNER.search(first)
    lines = [line for line in last.splitlines() if line.strip()]
    return owner[1] if owner else None, tuple(lines[-SHOWN_LINES:])
