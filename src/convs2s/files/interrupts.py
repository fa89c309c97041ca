"""Ctrl-C and SIGTERM during work that the same command resumes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what schedulers and ``kill`` send


class Interrupted(KeyboardInterrupt):
    """A signal that asks this process to stop; its text is the signal's name."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Have either signal raise ``Interrupted`` in the block, for it to be answered in words."""
    before = {number: signal.signal(number, _interrupt) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(signal.Signals(number).name)
