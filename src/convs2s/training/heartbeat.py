"""Workers that no longer move: each says that it lives, and the launcher of its machine ends them.

A worker that is stopped (SIGSTOP), or in which nothing runs any more, ends no connection: the
others would wait for it as long as for a slow one. What lives is a thread of the worker, which runs
through validations, compilation and reads that take long. The launcher counts how often it has
looked in vain, and reads no clock: where all of them are suspended together, nothing is missed.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from convs2s.files.locks import try_lock, wait_for_lock
from convs2s.training.log import log

HEARTBEATS = "CONVS2S_HEARTBEATS"
"""Environment variable: the folder in which each worker of a machine has a file."""

SECONDS_BETWEEN_BEATS = 1.0
SECONDS_BETWEEN_LOOKS = 5.0
MOST_MISSED = 24  # so many looks in a row without a beat, two minutes, end a worker


@contextmanager
def beating(folder: str | None) -> Iterator[None]:
    """Say that this process lives while the block runs, if a launcher listens in a folder."""
    if folder is None:
        yield
        return
    with Path(folder, str(os.getpid())).open("w") as stream:
        wait_for_lock(stream)  # it dies with this process: a number may become another's
        with _repeating(lambda: os.utime(stream.fileno()), SECONDS_BETWEEN_BEATS):
            yield


@contextmanager
def ending_frozen_workers(folder: Path) -> Iterator[None]:
    """Kill each process that has a file in a folder and no longer beats, while the block runs."""
    beats: dict[Path, int] = {}  # when each worker's last beat was
    looks: dict[Path, int] = {}  # looks in vain since then

    def look() -> None:
        """Count the looks without a beat of each worker; kill one that has missed too many."""
        for path in folder.iterdir():
            beat = path.stat().st_mtime_ns
            if beat == beats.get(path):
                looks[path] += 1
            else:
                beats[path] = beat
                looks[path] = 0
            if looks[path] == MOST_MISSED:
                with path.open("r+") as stream:
                    if not try_lock(stream):  # else it has ended
                        seconds = SECONDS_BETWEEN_LOOKS * MOST_MISSED
                        log(
                            f"process {path.name}, a worker, is frozen: no sign of life for "
                            f"{seconds:g} s: killed"
                        )
                        os.kill(int(path.name), signal.SIGKILL)

    with _repeating(look, SECONDS_BETWEEN_LOOKS):
        yield


@contextmanager
def _repeating(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Have a thread do something again and again while the block runs."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            action()

    thread = threading.Thread(target=repeat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
