"""Heartbeats: the launcher of each machine kills workers that are frozen or that hang.

A worker that was stopped (SIGSTOP) or hangs does not close its connections, so the other workers
would wait for it as for a slow one. Each worker therefore writes its ``Pulse`` into a file, from a
thread that also runs during validation, compilation and slow reads. The launcher looks at the
files. It counts looks instead of measuring time: if the launcher and the workers are suspended
together, no look is missed.

- A worker that writes no beats is frozen.
- A worker that writes beats but makes no update hangs, unless it waits for other workers or does
  something else that may take long (``Pulse.patience``).
"""

import json
import os
import signal
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from convs2s.errors import LostWorkerError
from convs2s.files.locks import try_lock, wait_for_lock
from convs2s.training.log import log
from convs2s.training.tries import line_of

HEARTBEATS = "CONVS2S_HEARTBEATS"
"""Environment variable with the path of the folder of heartbeats.

Each worker of the machine has a file there, named by its process ID.
"""

SECONDS_BETWEEN_BEATS = 1.0
SECONDS_BETWEEN_LOOKS = 5.0
# A worker is killed after this many looks in a row without a beat (two minutes).
MOST_MISSED = 24

MOST_MEDIANS = 20
"""A worker hangs if an update takes this many times as long as the median of its last updates."""

LEAST_PATIENCE = 300.0
"""An update may always take this many seconds: a file system or a network may be slow."""

LEAST_PATIENCE_COMPILED = 1200.0
"""The same for a compiled network, which an update of a new shape may compile again."""


@dataclass
class Pulse:
    """What a worker's file says: where the worker is in its training."""

    worker: int = 0  # the worker's number, over all machines
    updates: int = 0  # the number of the update that it is making
    # Seconds that the update may take. None: any time, as before the first update of an epoch,
    # which may compile the network, during validation and while a state is written.
    patience: float | None = None
    is_waiting: bool = False  # whether it waits for other workers
    words: str | None = None  # the error that it has ended with

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Say that the block waits for other workers."""
        self.is_waiting = True
        try:
            yield
        finally:
            self.is_waiting = False

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Say that the block may take any time."""
        patience = self.patience
        self.patience = None
        try:
            yield
        finally:
            self.patience = patience


PULSE = Pulse()
"""The pulse of this process."""


class Pace:
    """Measures how long updates take, and sets the patience of this process's pulse by that."""

    def __init__(self, *, is_compiled: bool) -> None:
        """Start the clock; ``is_compiled`` says whether updates may compile the network."""
        self._least = LEAST_PATIENCE_COMPILED if is_compiled else LEAST_PATIENCE
        self._noted = time.monotonic()  # time of the last call of ``note``
        # Seconds per update, for the last calls.
        self._seconds: deque[float] = deque(maxlen=100)

    def note(self, updates: int) -> None:
        """Note that this many updates were computed since the last call."""
        now = time.monotonic()
        self._seconds.append((now - self._noted) / updates)
        self._noted = now
        median = statistics.median(self._seconds)
        PULSE.patience = max(self._least, MOST_MEDIANS * median)


@contextmanager
def beating(folder: str | None) -> Iterator[None]:
    """Write this process's pulse into the folder of heartbeats while the block runs.

    If the block ends with an error, the error is written too, unless it says only that another
    worker was lost. If ``folder`` is None, no launcher watches this process: nothing is written.
    """
    if folder is None:
        yield
        return
    with Path(folder, str(os.getpid())).open("w") as stream:
        # The lock ends with this process. It shows the launcher that the process ID is still that
        # of this worker, and not of a later process.
        wait_for_lock(stream)

        def beat() -> None:
            # Write in one call, so that the launcher never reads a part of a line. It reads one
            # line only: the end of a longer line from before may follow.
            line = json.dumps(asdict(PULSE)) + "\n"
            os.pwrite(stream.fileno(), line.encode(), 0)

        with _repeating(beat, SECONDS_BETWEEN_BEATS):
            try:
                yield
            except Exception as error:
                if not isinstance(error, LostWorkerError):
                    PULSE.words = line_of(error)
                    beat()
                raise


def _pulse(path: Path) -> Pulse:
    """Return what a worker's file says, or an empty pulse if nothing has been written yet."""
    line = path.read_text("utf-8").partition("\n")[0]
    return Pulse(**json.loads(line)) if line else Pulse()


def last_words(folder: Path) -> str | None:
    """Return the error that a worker of this machine ended with, and the worker's number, or None.

    A worker that ended only because another one had ended leaves no words.
    """
    pulses = map(_pulse, folder.iterdir())
    spoken = [pulse for pulse in pulses if pulse.words is not None]
    if not spoken:
        return None
    first = min(spoken, key=lambda pulse: pulse.worker)
    return f"worker {first.worker}: {first.words}"


@dataclass
class _Watched:
    """A worker as the launcher sees it."""

    beat: int = 0  # time of its last beat, in ns
    missed: int = 0  # looks in a row that found no new beat
    pulse: Pulse = field(default_factory=Pulse)
    # Looks in a row at which it was in the same update, without waiting for others.
    stuck: int = 0

    def look(self, path: Path) -> None:
        """Look once at the worker's file."""
        beat = path.stat().st_mtime_ns
        self.missed = self.missed + 1 if beat == self.beat else 0
        self.beat = beat
        pulse = _pulse(path)
        may_take_long = pulse.is_waiting or pulse.patience is None
        if may_take_long or pulse.updates != self.pulse.updates:
            self.stuck = 0
        else:
            self.stuck += 1
        self.pulse = pulse

    @property
    def hangs(self) -> bool:
        """Whether the worker's update takes longer than it may."""
        patience = self.pulse.patience
        return patience is not None and self.stuck * SECONDS_BETWEEN_LOOKS >= patience


@contextmanager
def ending_stuck_workers(folder: Path) -> Iterator[None]:
    """Watch the folder of heartbeats while the block runs; kill workers that freeze or hang."""
    watched: dict[Path, _Watched] = {}
    killed: set[Path] = set()
    # The earliest update in which a worker has hung. Workers whose GPUs wait for this worker seem
    # to hang, too, but have begun a later update. They are not killed.
    earliest = sys.maxsize

    def look() -> None:
        """Look once at each worker's file, and kill the workers that are frozen or hang."""
        nonlocal earliest
        for path in set(folder.iterdir()) - killed:
            watched.setdefault(path, _Watched()).look(path)
        hanging = {path: worker for path, worker in watched.items() if worker.hangs}
        for worker in hanging.values():
            earliest = min(earliest, worker.pulse.updates)
        reasons = {}  # file of a worker to kill -> why it is killed
        for path, worker in hanging.items():
            if worker.pulse.updates == earliest:
                seconds = SECONDS_BETWEEN_LOOKS * worker.stuck
                reasons[path] = f"hangs (in update {earliest} for {seconds:g} s)"
        for path, worker in watched.items():
            if worker.missed == MOST_MISSED:
                seconds = SECONDS_BETWEEN_LOOKS * MOST_MISSED
                reasons[path] = f"is frozen (no sign of life for {seconds:g} s)"
        for path, reason in reasons.items():
            killed.add(path)
            number = watched.pop(path).pulse.worker
            with path.open("r+") as stream:
                if not try_lock(stream):  # the worker has not ended
                    log(f"worker {number}, process {path.name}, {reason} and is killed")
                    os.kill(int(path.name), signal.SIGKILL)

    with _repeating(look, SECONDS_BETWEEN_LOOKS):
        yield


@contextmanager
def _repeating(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call ``action`` every ``seconds`` seconds in a thread, until the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            # On a disk that is full for a moment, the next call may succeed.
            with suppress(OSError):
                action()

    thread = threading.Thread(target=repeat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
