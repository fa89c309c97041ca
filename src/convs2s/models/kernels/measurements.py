"""What has been measured on this machine, kept in the user's cache folder."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import writing
from convs2s.files.text import read_json, write_json
from convs2s.manifest import processor

Kept = dict[str, dict[str, float]]
"""What was measured, and on what -> each candidate's operations a second."""


def measured_here(
    work: Sequence[object], measure: Callable[[], Mapping[Any, float]]
) -> dict[str, float]:
    """Return each candidate's rate at some work, as it was first measured by this user here.

    *Here* is on such a processor, by this version of torch and with as many threads.

    Args:
        work: what is measured, as plain data.
        measure: does it, where nothing is kept; it asks for no other measurement, which would wait
            for this one to end.

    Raises:
        UserError: the cache folder cannot be written to, or its file is damaged.
    """
    key = json.dumps([processor(), torch.__version__, torch.get_num_threads(), *work])
    path = cache_file()
    with writing(path), _alone(path.parent):
        kept = _kept(path)
        if key not in kept:
            kept |= {key: dict(measure())}
            write_json(path, kept)
    return kept[key]


def cache_file() -> Path:
    """Return the file that keeps what was measured, below the user's cache folder.

    Raises:
        UserError: nothing says where that is.
    """
    try:
        folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user whom the system does not know, as in some containers
        raise UserError("no folder to keep measurements in: set XDG_CACHE_HOME") from None
    return Path(folder) / "convs2s" / "kernels.json"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process of this user measure at a time: the others take what it has found."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _kept(path: Path) -> Kept:
    if not path.is_file():
        return {}
    with failures_of_file(str(path), "not what this program keeps there; remove it"):
        return TypeAdapter(Kept).validate_python(read_json(path))


@contextmanager
def one_thread() -> Iterator[None]:
    """Have this thread compute alone while the block runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
