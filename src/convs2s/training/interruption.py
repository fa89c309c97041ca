"""When a training stops before its end: a time limit, a signal, a launcher that has gone."""

import math
import os
import signal
import time
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""What schedulers send before they kill, Ctrl-C, and a terminal that is closed."""

LONGEST_MARGIN = 10.0
SHORTEST_MARGIN = 0.5
"""Minutes before a time limit at which the last state is written: a tenth of it between these."""


def margin(time_limit: float) -> float:
    """Return how many minutes before a time limit the last state is written; at most half of it."""
    tenth = max(SHORTEST_MARGIN, 0.1 * time_limit)
    return min(tenth, LONGEST_MARGIN, 0.5 * time_limit)


def signals_to_handle() -> list[signal.Signals]:
    """Return the signals that stop a training; under nohup a closed terminal does not."""
    handled = list(SIGNALS)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        handled.remove(signal.SIGHUP)
    return handled


class Interruption:
    """Asked after each update; answers why training should stop, if it should."""

    def __init__(
        self, time_limit: float | None = None, launcher: int | None = None, end: float | None = None
    ) -> None:
        """Start the clock.

        ``time_limit``: minutes from now on. ``launcher`` is the process that started this one and
        should outlive it. ``end``: when the scheduler kills the job, in seconds since 1970, where
        it says so: it counts instead, as the job's start was some time ago.
        """
        self.launcher = launcher
        self._signal: str | None = None
        self._end = math.inf
        self._limit = "the end of the job"  # what is near, in words
        if time_limit is not None:
            self._limit = f"the time limit of {time_limit:g} minutes"
        minutes = time_limit if end is None else (end - time.time()) / 60.0
        if minutes is not None:
            self._end = time.monotonic() + 60.0 * (minutes - margin(minutes))

    def reason(self) -> str | None:
        """Return why to stop now, in words, or None."""
        if self._signal is not None:
            return f"{self._signal} was received"
        if time.monotonic() > self._end:
            return f"{self._limit} is near"
        if self.launcher is not None and os.getppid() != self.launcher:
            return "the process that started the workers has ended"
        return None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Note a signal rather than die of it."""
        self._signal = signal.Signals(number).name
