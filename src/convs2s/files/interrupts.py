"""Handle signals while a block runs, for example Ctrl-C during work that can be resumed."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)
"""Signals that tell a process to stop: SIGINT from Ctrl-C, SIGTERM from schedulers and ``kill``."""


class Interrupted(KeyboardInterrupt):
    """A signal told this process to stop. The message is the name of the signal."""


@contextmanager
def handling(
    signals: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Install ``handler`` for signals while the block runs; then restore the previous handlers."""
    previous_handlers = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, previous in previous_handlers.items():
            signal.signal(number, previous)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``Interrupted``; a handler to pass to ``handling``."""
    raise Interrupted(signal.Signals(number).name)
