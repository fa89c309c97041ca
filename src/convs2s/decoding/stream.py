"""Lines as they arrive: those that are there go together, and none waits for a later one."""

import select
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader, UnsupportedOperation

from convs2s.errors import UserError

_BLOCK_BYTES = 1 << 16


class ArrivingBytes:
    """A stream that can tell whether its next line is there yet."""

    def __init__(self, stream: BufferedReader) -> None:
        """Read from a pipe, a terminal, a file or bytes in memory, which are always there."""
        self._stream = stream
        self._pending = bytearray()
        self._ended = False
        try:
            self._descriptor: int | None = stream.fileno()
        except UnsupportedOperation:
            self._descriptor = None

    def readline(self, limit: int) -> bytes:
        """Return the next line, waiting for it; at most ``limit`` bytes, none at the end."""
        while b"\n" not in self._pending and len(self._pending) < limit and not self._ended:
            self._fill()
        end = self._pending.find(b"\n", 0, limit) + 1 or min(limit, len(self._pending))
        line = bytes(self._pending[:end])
        del self._pending[:end]
        return line

    def waits(self) -> bool:
        """Return whether the next line would have to be waited for."""
        while b"\n" not in self._pending and not self._ended and self._ready():
            self._fill()
        return b"\n" not in self._pending and not self._ended

    def _fill(self) -> None:
        block = self._stream.read1(_BLOCK_BYTES)
        self._pending += block
        self._ended = not block

    def _ready(self) -> bool:
        return self._descriptor is None or bool(select.select([self._descriptor], [], [], 0)[0])


def arriving(lines: Iterable[str], waits: Callable[[], bool], most: int) -> Iterator[list[str]]:
    """Group lines: a group ends where the next line is not there yet, or at ``most`` lines.

    Args:
        lines: the lines; taking one may wait for it.
        waits: whether the next one would have to be waited for.
        most: lines of a group at most.

    Raises:
        UserError: as ``lines`` does, after the group before the fault.
    """
    group: list[str] = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == most or waits():
                yield group
                group = []
    except UserError:
        if group:
            yield group
        raise
    if group:
        yield group
