"""Signals that are handled while a block runs, such as Ctrl-C during work that can be resumed."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what schedulers and ``kill`` send


class Interrupted(KeyboardInterrupt):
    """A signal that asks this process to stop; its text is the signal's name."""


@contextmanager
def handling(
    signals: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Have signals that come while the block runs handled."""
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal by an ``Interrupted``."""
    raise Interrupted(signal.Signals(number).name)
