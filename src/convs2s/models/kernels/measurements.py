"""What this machine's processor was measured at, kept in the user's cache folder."""

import json
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import TypeAdapter

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import writing
from convs2s.files.locks import wait_for_lock
from convs2s.files.text import read_json, write_json
from convs2s.manifest import processor

Candidate = TypeVar("Candidate", bound=Hashable)

SHARED_SECONDS = 0.5
"""That all candidates of a measurement share, unless ``LEAST_ROUNDS`` take longer."""

LEAST_ROUNDS, MOST_ROUNDS = 5, 30  # Turns of each candidate; the first one sets up


def measured_here(
    work: Sequence[object], measure: Callable[[], Mapping[Any, float]]
) -> dict[str, float]:
    """Return each candidate's rate at some work, as it was first measured by this user here.

    *Here* is on such a processor, by this version of torch and with as many threads. ``work`` is
    the key by which it is kept. ``measure`` must not ask for another measurement, which would wait
    for this one to end. A UserError says that the cache folder cannot be written to, or that its
    file is damaged.
    """
    key = json.dumps([processor(), torch.__version__, torch.get_num_threads(), *work])
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "convs2s"
    except RuntimeError:  # a user whom the system does not know, as in some containers
        raise UserError("no folder to keep measurements in: set XDG_CACHE_HOME") from None
    path = folder / "kernels.json"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        # One process of this user measures at a time: the others take what it has measured.
        with (folder / "lock").open("w") as lock:
            with suppress(OSError):  # a file system without locks
                wait_for_lock(lock)
            kept: dict[str, dict[str, float]] = {}
            if path.is_file():
                with failures_of_file(str(path), "not what this program keeps there; remove it"):
                    kept = TypeAdapter(dict[str, dict[str, float]]).validate_python(read_json(path))
            if key not in kept:
                kept[key] = dict(measure())
                write_json(path, kept)
    return kept[key]


def least_seconds(
    works: Mapping[Candidate, Sequence[Callable[[], object]]],
) -> dict[Candidate, list[float]]:
    """Return the least processor time of each work of each candidate.

    The candidates take turns, and the least time counts, so that other work on the machine slows
    down none of them alone.
    """
    least = {name: [float("inf")] * len(several) for name, several in works.items()}
    end = time.perf_counter() + SHARED_SECONDS
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for name, several in works.items():
            for place, work in enumerate(several):
                least[name][place] = min(least[name][place], processor_seconds(work))
    return least


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of all threads, which others on the machine change little."""
    started = time.process_time()
    work()
    return time.process_time() - started
