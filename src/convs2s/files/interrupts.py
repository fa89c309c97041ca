"""Handle signals while a block runs, such as Ctrl-C during work that can be resumed."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a process to stop. Ctrl-C sends SIGINT, schedulers and ``kill`` send SIGTERM."""


class Interrupted(KeyboardInterrupt):
    """A signal has asked this process to stop. The message is the name of the signal."""


@contextmanager
def handling(
    signals: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Install ``handler`` for signals while the block runs, then the previous handlers again."""
    previous_handlers = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, previous in previous_handlers.items():
            signal.signal(number, previous)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal by raising an ``Interrupted``."""
    raise Interrupted(signal.Signals(number).name)
