"""When a training stops before its end: a time limit, a signal, a launcher that has gone."""

import os
import signal
import time
from collections.abc import Mapping
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""What schedulers send before they kill, Ctrl-C, and a terminal that is closed."""

LONGEST_MARGIN, SHORTEST_MARGIN = 10.0, 0.5
"""Minutes before a time limit at which the last state is written: a tenth of it between these."""

END_OF_SLURM_JOB = "SLURM_JOB_END_TIME"
"""Slurm's variable with the time at which it ends a job, in seconds since 1970."""


def margin(time_limit: float) -> float:
    """Return how many minutes before a time limit the last state is written; at most half of it."""
    tenth = min(LONGEST_MARGIN, max(SHORTEST_MARGIN, 0.1 * time_limit))
    return min(tenth, 0.5 * time_limit)


def end_of_job(environment: Mapping[str, str]) -> float | None:
    """Return when the scheduler ends this job, in seconds since 1970; None if it does not say."""
    stated = environment.get(END_OF_SLURM_JOB, "")
    return float(stated) if stated.isdecimal() else None


def signals_to_handle() -> list[signal.Signals]:
    """Return the signals that stop a training; under nohup a closed terminal does not."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [number for number in SIGNALS if not (ignored and number == signal.SIGHUP)]


class Interruption:
    """Asked after each update; answers why training should stop, if it should."""

    def __init__(
        self, time_limit: float | None = None, launcher: int | None = None, end: float | None = None
    ) -> None:
        """Start the clock.

        ``time_limit`` is in minutes. ``launcher`` is the process that started this one and should
        outlive it. ``end``: when the scheduler kills the job, in seconds since 1970, where it says
        so: it counts from the job's start, which was some time ago.
        """
        self.launcher, self.time_limit = launcher, time_limit
        self._signal: str | None = None
        self._end: float | None = None
        if time_limit is not None:
            left = 60.0 * time_limit if end is None else min(60.0 * time_limit, end - time.time())
            self._end = time.monotonic() + left - 60.0 * margin(time_limit)

    def reason(self) -> str | None:
        """Return why to stop now, in words, or None."""
        if self._signal is not None:
            return f"{self._signal} was received"
        if self._end is not None and time.monotonic() > self._end:
            return f"the time limit of {self.time_limit:g} minutes is near"
        if self.launcher is not None and os.getppid() != self.launcher:
            return "the process that started the workers has ended"
        return None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Note a signal rather than die of it."""
        self._signal = signal.Signals(number).name
