"""An output that grows chunk by chunk and survives being killed.

``OUTPUT.part`` holds what is finished, ``OUTPUT.part.json`` how much of it counts, and of which
work it is. The final name appears when everything is there.
"""

import bz2
import fcntl
import gzip
import json
import lzma
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import zstandard

from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path, check_place, is_written_in_place, writing
from convs2s.files.text import read_json

_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": partial(gzip.compress, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
"""Each chunk is compressed on its own: what these formats' readers see as one text."""


class GrowingOutput:
    """An unfinished output.

    Attributes:
        done: how many lines of the input are in it.
    """

    def __init__(self, path: Path, part: BinaryIO, identity: Mapping[str, object]) -> None:
        """Go on after the last complete chunk, if what is there is of the same work."""
        self._path, self._part, self._identity = path, part, dict(identity)
        self._state = _state_of(path)
        self._compress = _COMPRESSORS.get(path.suffix, bytes)
        self.done, size = self._resume(path)
        part.truncate(size)
        part.seek(size)

    def append(self, text: str, lines: int) -> None:
        """Add the output of the next ``lines`` lines of the input."""
        self._part.write(self._compress(text.encode()))
        self._part.flush()
        os.fsync(self._part.fileno())
        self.done += lines
        state = {"identity": self._identity, "lines": self.done, "bytes": self._part.tell()}
        with atomic_path(self._state) as temporary:
            temporary.write_text(json.dumps(state), "utf-8")

    def kept(self, lines: int) -> str:
        """Return, in words, what of the input's lines stays, and how to go on."""
        # What the state says counts: a signal may come while a chunk is being added.
        done = _read_state(self._state)[1] if self._state.is_file() else 0
        return (
            f"{done} of {lines} lines are in {self._path}.part: run the same command again to go on"
        )

    def _resume(self, path: Path) -> tuple[int, int]:
        """Return how many lines and bytes count; say why where they do not."""
        if not self._state.is_file():
            return 0, 0
        identity, lines, size = _read_state(self._state)
        names = {**identity, **self._identity}
        others = [name for name in names if identity.get(name) != self._identity.get(name)]
        if not identity:
            reason = "its state cannot be read"
        elif others:
            reason = f"its {', '.join(others)} differ from this command's"
        elif os.fstat(self._part.fileno()).st_size < size:
            reason = "its text is shorter than its state says"
        else:
            print(f"{path}: going on after line {lines}", file=sys.stderr)
            return lines, size
        print(
            f"{path}: starting over: there is an unfinished output, but {reason}", file=sys.stderr
        )
        return 0, 0


def _read_state(path: Path) -> tuple[dict[str, object], int, int]:
    """Return of what work an output is, and how many lines and bytes count; nothing if damaged."""
    try:
        state = read_json(path)
    except UserError:
        return {}, 0, 0
    match state:
        case {"identity": dict(identity), "lines": int(lines), "bytes": int(size)}:
            return identity, max(0, lines), max(0, size)
    return {}, 0, 0


class DirectOutput:
    """A device or a pipe, where nothing can be gone on with."""

    done = 0

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def append(self, text: str, lines: int) -> None:
        """Write the output of the next ``lines`` lines of the input."""
        self._stream.write(text.encode())
        self._stream.flush()
        self.done += lines

    def kept(self, lines: int) -> str:
        """Return, in words, what of the input's lines was written."""
        return f"{self.done} of {lines} lines were written, which no command can go on with"


@contextmanager
def growing_output(
    path: Path, identity: Mapping[str, object]
) -> Iterator[GrowingOutput | DirectOutput]:
    """Open an output; it gets its name if the block succeeds, else stays to be gone on with.

    Args:
        path: the output; compressed if its suffix says so; a device or a pipe is written to.
        identity: what its bytes depend on, as JSON can hold it. Where it differs from that of an
            unfinished output, that one is thrown away.

    Raises:
        UserError: another process writes the same output, or it cannot be written.
    """
    if is_written_in_place(path):
        with writing(path), path.open("wb") as stream:
            yield DirectOutput(stream)
        return
    check_place(path)
    unfinished = path.with_name(f"{path.name}.part")
    with writing(path), unfinished.open("ab") as part:
        try:
            # A record lock: unlike flock's it dies with this process, whatever workers outlive it.
            fcntl.lockf(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            raise UserError(
                f"{unfinished}: another process is writing it: wait for it, or name another output"
            ) from None
        except OSError as error:
            raise UserError(
                f"{unfinished}: cannot be locked ({error.strerror}), and two processes must not "
                "write it at once: name an output on a file system with locks"
            ) from None
        if not unfinished.exists() or not os.path.samestat(
            unfinished.stat(), os.fstat(part.fileno())
        ):
            raise UserError(f"{path}: another process has written it just now")
        yield GrowingOutput(path, part, identity)
        os.fsync(part.fileno())
        unfinished.replace(path)
        _state_of(path).unlink(missing_ok=True)


def _state_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part.json")
