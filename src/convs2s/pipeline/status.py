"""How the trainings and jobs of a results folder are: ``convs2s status``.

The files may lie on a shared file system while the work is done elsewhere, so nothing here asks the
process table: who works holds a lock on a file, which the kernel frees at any death.
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
from convs2s.paper.failures import STOPPED, reason_in
from convs2s.pipeline.job import lock_beside
from convs2s.training.history import Progress
from convs2s.training.log import LOG_NAME
from convs2s.training.state_folder import LOCK, PROGRESS, REFUSED, STATE

SHOWN_LINES = 5  # last lines of a log that are shown of what crashed

SILENT_SECONDS = 600.0
"""After which a process on another machine, whose lock cannot be seen here, is taken for dead."""

Condition = Literal["running", "locked", "crashed", "stopped", "not started", "finished"]

Outcome = tuple[Condition, str | None]  # and why

ORDER: Sequence[Condition] = get_args(Condition)  # what a person looks for first

# Folders of a task or of the results in which nobody trains.
_NO_RUNS = frozenset(
    ("alignment", "benchmarks", "corpus", "dataset", "downloads", "logs", "paper", "vocabulary")
)
_DEEPEST = 6  # folders between results and a run: scales/SCALE/TASK/models/MODEL/RUN
_TAIL_BYTES = 4096

# What is shown of the progress of any training, and of one that runs besides.
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
_OF_RUNNING = ("seconds", "seconds_of_epoch")  # how long it takes from now on

_OF_TRAINING = re.compile(r"/seed\d+/train$")
"""The name of a training's log; that of the corpus has such a file name, too."""

_OWNER = re.compile(r"[-\d]{10} [:\d]{8}, (process \d+ on [^,]+)")


@dataclass(frozen=True)
class TrainingStatus:
    """How a training is; its figures are those of ``convs2s.training.history.Progress``."""

    name: str  # TASK/MODEL/RUN, or the folder below the results
    condition: Condition
    """locked: a process holds its lock and another was refused, or does not say that it trains."""
    why: str | None = None
    owner: str | None = None  # the process that trains, or did so last
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
    silent_seconds: float | None = None  # since a running one last said how far it is
    state_seconds: float | None = None  # age of its last state
    log: tuple[str, ...] = ()  # the last lines of what crashed


@dataclass(frozen=True)
class JobStatus:
    """How another job of the workflow is; its name is its log's below the folder of logs."""

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
    """Look at a results folder, or that of a task or a run, which must exist."""
    if not results.is_dir():
        raise UserError(f"{results}: no such folder: name that of the results, or of a task")
    root = results.absolute()
    trainings = {}
    for run in _run_folders(root):
        trainings[run] = _training_status(run, _name(run, root))
    jobs = []
    for log, name in _job_logs(root):
        if not _OF_TRAINING.search(name):
            jobs.append(_job_status(log, name))
            continue
        task, model, seed = log.parts[-4:-1]
        run = log.parents[4] / task / "models" / model / seed
        if run not in trainings:
            trainings[run] = _failed_training(_name(run, root), log)
    return Status(_ordered(trainings.values()), _ordered(jobs))


def _ordered(statuses: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(statuses, key=lambda one: (ORDER.index(one.condition), one.name)))


def _name(run: Path, root: Path) -> str:
    parts = run.parts[-4:] if run == root else run.relative_to(root).parts
    return "/".join(part for part in parts if part != "models")


def _training_status(run: Path, name: str) -> TrainingStatus:
    folder = run / STATE
    progress = _read_fields(folder / PROGRESS, Progress)
    holder = ""
    with suppress(OSError):
        holder = (folder / LOCK).read_text("utf-8", "replace").strip()
    figures = {figure: progress[figure] for figure in _FIGURES if figure in progress}
    record = _read_fields(run / "training.json")
    if record and not holder and progress.get("phase", "finished") == "finished":
        return TrainingStatus(name, **{**figures, **_finished_training(record)})
    now = time.time()
    figures["owner"] = holder.partition(":")[0] or progress.get("owner")
    written = _time_of_state(folder, progress.get("state") or "*")
    if written is not None:
        figures["state_seconds"] = max(0.0, now - written)
    silent = max(0.0, now - float(progress.get("written", 0.0)))
    trains = bool(holder) and progress.get("owner") == holder
    is_elsewhere = not holder.endswith(f" on {os.uname().nodename}")
    if _is_held(folder / LOCK) or (trains and is_elsewhere and silent < SILENT_SECONDS):
        figures["silent_seconds"] = silent
        condition, why = _held_training(_read_fields(folder / REFUSED), progress, holder)
    else:
        condition, why = _ended_training(progress, holder)
    if condition == "running":
        figures |= {figure: progress.get(figure) for figure in _OF_RUNNING}
    elif condition == "crashed":
        _, last = _read_ends(_log_of_training(run))
        figures["log"] = tuple(last[-SHOWN_LINES:])
    return TrainingStatus(name, condition, why, **figures)


def _finished_training(record: Values) -> Values:
    """Return how a training is that has left its record."""
    why = record.get("stop_reason")
    ratio = (record.get("source_use") or {}).get("ratio")
    if ratio:
        why = f"{why}; permuted sources {ratio:.3g} times"
    return {
        "condition": "finished",
        "why": why,
        "epoch": record.get("epochs"),
        "epochs": None,
        "batch": None,
        "batches": None,
        "updates": record.get("updates"),
        "perplexity": record.get("validation_perplexity"),
        "best_epoch": record.get("best_epoch"),
    }


def _time_of_state(folder: Path, state: str) -> float | None:
    """Return when the last state was written, of those whose folders have such a name."""
    times = []
    for file in folder.glob(f"{state}/last.safetensors"):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times, default=None)


def _log_of_training(run: Path) -> Path:
    """Return the log of the workflow's job, else what the trainer keeps."""
    if len(run.parts) > 4 and run.parts[-3] == "models":
        task, _, model, seed = run.parts[-4:]
        log = run.parents[3] / "logs" / task / model / seed / "train.log"
        if log.is_file():
            return log
    return run / STATE / LOG_NAME


def _held_training(refused: Values, progress: Values, holder: str) -> Outcome:
    """Return how a training is whose lock is held, by who last noted its progress or another."""
    if holder and refused.get("owner") == holder:
        return "locked", f"{holder} holds it; {refused.get('refused')} was refused"
    if not holder or progress.get("owner") != holder:
        name = holder or "a process that does not say its name"
        return "locked", f"{name} holds it and says nothing of a training"
    phase = progress.get("phase")
    return "running", None if phase == "training" else phase


def _ended_training(progress: Values, holder: str) -> Outcome:
    """Return how a training is that nobody works on, and that has left no record."""
    phase = progress.get("phase")
    if not holder:
        if phase != "finished":
            return "not started", None
        return "finished", f"{progress.get('why')}; its record is missing: rerun to write it"
    owner, ended, stated = holder.partition(": ")
    if not ended:
        return "crashed", f"{owner} has ended without a word: killed, or its machine went down"
    stopped = progress.get("owner") == owner and phase == "stopped"
    return "stopped" if stopped else "crashed", stated


def _failed_training(name: str, log: Path) -> TrainingStatus:
    """Return how a training is that has a log and no states: it failed before it began."""
    first, last = _read_ends(log)
    owner = _OWNER.search(first)
    by = owner[1] if owner else None
    reason = reason_in(log)
    if not reason:
        return TrainingStatus(name, "not started", owner=by)
    return TrainingStatus(
        name,
        "stopped" if reason == STOPPED else "crashed",
        why=reason.removeprefix("failed: "),
        owner=by,
        log=tuple(last[-SHOWN_LINES:]),
    )


def _job_status(log: Path, name: str) -> JobStatus:
    """Return how a job is: its log has an end, its lock is held, or it was cut short."""
    first, last = _read_ends(log)
    shown = tuple(last[-SHOWN_LINES:])
    owner = _OWNER.match(first)
    if owner is None:  # of a command, which says nothing of its process
        if reason_in(log):
            return JobStatus(name, "crashed", log=shown)
        return JobStatus(name, "finished")
    if last and last[-1].startswith("done in "):
        return JobStatus(name, "finished", owner[1])
    if _is_held(lock_beside(log)):
        return JobStatus(name, "running", owner[1])
    return JobStatus(name, "crashed", owner[1], shown)


def _run_folders(root: Path) -> Iterator[Path]:
    """Yield the folders in which there is, or was, a training: those with its states or record."""
    for place, folders, names in os.walk(root, followlinks=True):
        folder = Path(place)
        is_run = STATE in folders or "training.json" in names
        if is_run:
            yield folder
        if is_run or len(folder.relative_to(root).parts) == _DEEPEST:
            folders.clear()
        others = sorted(set(folders) - _NO_RUNS)
        folders[:] = [name for name in others if not name.startswith(".")]


def _job_logs(results: Path) -> Iterator[tuple[Path, str]]:
    """Yield the jobs' logs of a results folder and its scales, or of a task's folder.

    Each comes with its name: the path below the folder of logs, without ``.log``.
    """
    places = {f"{scale.name}/": scale / "logs" for scale in results.glob("scales/*")}
    places[""] = results / "logs"
    places[f"{results.name}/"] = results.parent / "logs" / results.name  # of a task
    for prefix, place in places.items():
        for log in whole_files(place):
            if log.suffix == ".log":
                yield log, prefix + str(log.relative_to(place)).removesuffix(".log")


def _is_held(path: Path) -> bool:
    """Return whether a process, here or on another machine, holds a file's lock."""
    try:
        with path.open("rb") as stream:
            return not try_lock(stream, shared=True)  # shared, so that several may ask at once
    except OSError:
        return False  # no such file, or a file system without locks


def _read_fields(path: Path, form: Any = Values) -> Values:
    """Return what a JSON file of a form says; nothing where it is missing, or damaged."""
    try:
        stated: Values = json.loads(path.read_bytes())
        TypeAdapter(form).validate_python(stated)
    except (OSError, ValueError):
        return {}
    return stated


def _read_ends(path: Path) -> tuple[str, list[str]]:
    """Return the first line of a log and its last ones, those without a word left out."""
    try:
        with path.open("rb") as stream:
            first = stream.readline(_TAIL_BYTES)
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL_BYTES))
            last = stream.read()
    except OSError:
        return "", []
    lines = last.decode("utf-8", "replace").splitlines()
    said = [line for line in lines if line.strip()]
    return first.decode("utf-8", "replace").rstrip("\n"), said
