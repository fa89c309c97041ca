"""The files of a results folder that tell how its trainings and jobs are.

They may lie on a shared file system while the work is done elsewhere, so nothing here asks the
process table: who works holds a lock on a file, which the kernel frees at any death.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from convs2s.config.section import Values
from convs2s.training.log import LOG_NAME
from convs2s.training.state_folder import STATE

_NO_RUNS = frozenset(
    ("alignment", "benchmarks", "corpus", "dataset", "downloads", "logs", "paper", "vocabulary")
)
"""Folders of a task or of the results in which nobody trains."""

_DEEPEST = 6
"""Folders between the results and a run: ``scales/SCALE/TASK/models/MODEL/RUN``."""

_TAIL_BYTES = 4096


def runs_in(folder: Path, depth: int = _DEEPEST) -> Iterator[Path]:
    """Yield the folders in which there is, or was, a training: those with its states or record."""
    inside = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == STATE or entry.name == "training.json":
                yield folder
                return
            if entry.name not in _NO_RUNS and not entry.name.startswith("."):
                inside.append(entry)
    for entry in sorted(inside, key=lambda one: one.name):
        if depth and entry.is_dir():
            yield from runs_in(Path(entry.path), depth - 1)


def logs_of(results: Path) -> Iterator[tuple[Path, str]]:
    """Yield the jobs' logs of a results folder and its scales, or of a task's folder.

    Each comes with its name: the path below the folder of logs, without ``.log``.
    """
    places = {f"{scale.name}/": scale / "logs" for scale in results.glob("scales/*")}
    of_task = results.parent / "logs" / results.name
    for prefix, place in {**places, "": results / "logs", f"{results.name}/": of_task}.items():
        start = len(f"{place}/")
        for folder, _, names in os.walk(place):
            for name in sorted(names):
                if name.endswith(".log"):
                    path = f"{folder}/{name}"
                    yield Path(path), prefix + path[start : -len(".log")]


def log_of(run: Path) -> Path:
    """Return the log of a run's training: the workflow's job, else what the trainer keeps."""
    if len(run.parts) > 4 and run.parts[-3] == "models":
        results, task = run.parents[3], run.parts[-4]
        log = results / "logs" / task / run.parts[-2] / run.name / "train.log"
        if log.is_file():
            return log
    return run / STATE / LOG_NAME


def is_held(path: Path) -> bool:
    """Return whether a process, here or on another machine, holds a file's lock.

    To ask is to have it for a moment, together with others that ask.
    """
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no such file, or a file system without locks
    return False


def text_of(path: Path) -> str:
    """Return a small file's text; nothing where there is none."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def fields_of(path: Path) -> Values:
    """Return what a JSON file says; nothing where it is missing, or damaged."""
    try:
        stated = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return stated if isinstance(stated, dict) else {}


def ends_of(path: Path) -> tuple[str, list[str]]:
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
    return first.decode("utf-8", "replace").rstrip("\n"), [one for one in lines if one.strip()]


def modified(path: Path) -> float | None:
    """Return when a file was written, in seconds since 1970; None where there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def last_state(folder: Path, name: str) -> Path | None:
    """Return the last state of a training, by the name of its states' folder, or the newest one."""
    if name:
        return folder / name / "last.safetensors"
    found = folder.glob("*/last.safetensors")
    return max(found, key=lambda path: modified(path) or 0.0, default=None)
