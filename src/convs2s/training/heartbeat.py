"""Heartbeats: the launcher of each machine kills workers that are frozen.

A worker that was stopped (SIGSTOP) or hangs does not close its connections, so the other workers
would wait for it as for a slow one. Each worker therefore updates the time of a file, from a thread
that also runs during validation, compilation and slow reads. The launcher looks at the files. It
counts looks without a new beat instead of measuring time: if the launcher and the workers are
suspended together, no look is missed.
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
"""Environment variable with the path of the folder of heartbeats.

Each worker of the machine has a file there, named by its process ID.
"""

SECONDS_BETWEEN_BEATS = 1.0
SECONDS_BETWEEN_LOOKS = 5.0
# A worker is killed after this many looks in a row without a beat (two minutes).
MOST_MISSED = 24


@contextmanager
def beating(folder: str | None) -> Iterator[None]:
    """Update this process's file in the folder of heartbeats while the block runs.

    ``folder`` is None if no launcher watches this process; then nothing is written.
    """
    if folder is None:
        yield
        return
    with Path(folder, str(os.getpid())).open("w") as stream:
        # The lock ends with this process. It shows the launcher that the process ID is still that
        # of this worker, and not of a later process.
        wait_for_lock(stream)
        with _repeating(lambda: os.utime(stream.fileno()), SECONDS_BETWEEN_BEATS):
            yield


@contextmanager
def ending_frozen_workers(folder: Path) -> Iterator[None]:
    """Watch the folder of heartbeats while the block runs; kill each worker that is frozen."""
    beats: dict[Path, int] = {}  # file of a worker -> time of its last beat, in ns
    # File of a worker -> number of looks without a new beat.
    looks: dict[Path, int] = {}

    def look() -> None:
        """Look once at each worker's file, and kill the workers that have missed too many looks."""
        for path in folder.iterdir():
            beat = path.stat().st_mtime_ns
            if beat == beats.get(path):
                looks[path] += 1
            else:
                beats[path] = beat
                looks[path] = 0
            if looks[path] == MOST_MISSED:
                with path.open("r+") as stream:
                    if not try_lock(stream):  # the worker has not ended
                        seconds = SECONDS_BETWEEN_LOOKS * MOST_MISSED
                        log(
                            f"worker process {path.name} is frozen (no sign of life for "
                            f"{seconds:g} s) and is killed"
                        )
                        os.kill(int(path.name), signal.SIGKILL)

    with _repeating(look, SECONDS_BETWEEN_LOOKS):
        yield


@contextmanager
def _repeating(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call ``action`` every ``seconds`` seconds in a thread, until the block ends."""
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
