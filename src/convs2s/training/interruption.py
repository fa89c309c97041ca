"""Reasons to stop a training early: a time limit, a signal, or a launcher that has ended."""

import math
import os
import signal
import time
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""Signals that stop a training.

Schedulers send SIGTERM or SIGUSR1 before they kill a job. SIGINT is sent by Ctrl-C, and SIGHUP when
a terminal is closed.
"""

LONGEST_MARGIN = 10.0  # minutes
SHORTEST_MARGIN = 0.5  # minutes


def margin(time_limit: float) -> float:
    """Return how many minutes before the end of a time limit a training stops to save its state.

    The limit is in minutes, too. The result is a tenth of the limit, but at least
    ``SHORTEST_MARGIN``, at most ``LONGEST_MARGIN``, and never more than half of the limit.
    """
    minutes = max(SHORTEST_MARGIN, 0.1 * time_limit)
    return min(minutes, LONGEST_MARGIN, 0.5 * time_limit)


def signals_to_handle() -> list[signal.Signals]:
    """Return the signals that stop a training, without SIGHUP if it is ignored, as under nohup."""
    handled = list(SIGNALS)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        handled.remove(signal.SIGHUP)
    return handled


class Interruption:
    """Knows whether a training should stop early; the trainer asks after each update."""

    def __init__(
        self,
        time_limit: float | None = None,
        launcher: int | None = None,
        end: float | None = None,
    ) -> None:
        """Start the clock of the time limit.

        Args:
            time_limit: time limit of the job in minutes, counted from now on; None: no limit.
            launcher: ID of the process that started this worker; the training stops if that
                process ends.
            end: when the scheduler will kill the job, in seconds since 1970; None: unknown. It
                replaces ``time_limit``, because the job may have started long before this process.
        """
        self.launcher = launcher
        self._signal: str | None = None
        self._end = math.inf  # when to stop, by time.monotonic
        self._limit = "the end of the job"  # the limit, in the words of the reason
        if time_limit is not None:
            self._limit = f"the time limit of {time_limit:g} minutes"
        minutes = time_limit if end is None else (end - time.time()) / 60.0
        if minutes is not None:
            self._end = time.monotonic() + 60.0 * (minutes - margin(minutes))

    def reason(self) -> str | None:
        """Return why the training should stop now, or None if it should go on."""
        if self._signal is not None:
            return f"{self._signal} was received"
        if time.monotonic() > self._end:
            return f"{self._limit} is near"
        if self.launcher is not None and os.getppid() != self.launcher:
            return "the process that started the workers has ended"
        return None

    def seconds_left(self) -> float:
        """Return the seconds until the time limit is near; infinite without a limit."""
        return self._end - time.monotonic()

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember a signal for ``reason``: a signal handler that does not end the process."""
        self._signal = signal.Signals(number).name
