"""Files: text lines in, whole files out.

Text is UTF-8, its lines end in a line feed only (never in a carriage return, U+2028 and the like),
compressed where the name ends in ``.gz``, ``.zst``, ``.xz`` or ``.bz2``. A file under its final
name is always complete.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, TextIO, cast

from xopen import xopen

from convs2s.errors import UserError

_LONGEST_LINE_BYTES = 1 << 20


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` if the block succeeds.

    The temporary name keeps the suffixes of ``path``, so that compression follows from it. If the
    block raises, the temporary file is removed and ``path`` is left as it was. What a killed
    process leaves behind is overwritten by the next one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".partial.{path.name}")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_text(path: str | Path) -> Iterator[TextIO]:
    """Open ``path`` for writing text; it appears under its name only when the block succeeds."""
    with atomic_path(path) as temporary, open_text(temporary, "w") as stream:
        yield stream


def open_text(path: str | Path, mode: str = "r") -> TextIO:
    """Open UTF-8 text, compressed if its suffix says so, without any newline translation."""
    return cast(
        TextIO, xopen(path, cast(Any, mode + "t"), encoding="utf-8", newline="\n", threads=0)
    )


def open_bytes(path: str | Path, mode: str = "r") -> BinaryIO:
    """Open bytes, compressed if the suffix says so."""
    return cast(BinaryIO, xopen(path, cast(Any, mode + "b"), threads=0))


def read_lines(path: str | Path, start: int = 0) -> Iterator[str]:
    """Yield the lines of a text file without their line feeds.

    A byte order mark at the start is dropped. Every other character is kept: what to do about a
    carriage return or a NUL is for the preparation to say.

    Args:
        path: the file.
        start: how many lines to pass over first, at the speed of the disk.

    Raises:
        UserError: the file is missing, is not in its compression format, or a line is not UTF-8.
    """
    try:
        if Path(path).stat().st_size == 0:
            return  # also what a compressor writes that was given no line
        with open_bytes(path) as stream:
            next(islice(stream, start, start), None)
            yield from decode_lines(stream, str(path), start)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (EOFError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


class LineSource(Protocol):
    """What lines of bytes are read from: any binary stream is one."""

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, or its first ``limit`` bytes; none at the end."""


def bounded_lines(stream: LineSource, name: str) -> Iterator[bytes]:
    """Yield lines that fit into memory, so that what has no line feeds is an error.

    Raises:
        UserError: a line is longer than 1 MiB; the message names ``name`` and the line.
    """
    lines = iter(partial(stream.readline, _LONGEST_LINE_BYTES + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > _LONGEST_LINE_BYTES:
            raise UserError(
                f"{name}:{number}: a line of more than {_LONGEST_LINE_BYTES} bytes: is this text "
                "with one sentence a line?"
            )
        yield line


def decode_lines(stream: IO[bytes] | Iterable[bytes], name: str, before: int = 0) -> Iterator[str]:
    """Yield the lines of an open binary stream as text, without their line feeds.

    Args:
        stream: where the lines come from.
        name: how errors call it.
        before: lines that were passed over already.

    Raises:
        UserError: a line is not UTF-8; the message names ``name`` and the line.
    """
    for number, line in enumerate(stream, start=before + 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}:{number}: not UTF-8: byte 0x{line[error.start]:02x} at column "
                f"{error.start + 1}; convert the file, for example with: iconv -f LATIN1 -t UTF-8"
            ) from None
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield text.removesuffix("\n")


def read_line_pairs(
    source: str | Path, target: str | Path, start: int = 0
) -> Iterator[tuple[str, str]]:
    """Yield the line pairs of two parallel files, from pair ``start`` (counted from 0) on.

    Raises:
        UserError: one side has more lines than the other; the message names both counts.
    """
    sides = read_lines(source, start), read_lines(target, start)
    number = start
    for number, line in enumerate(sides[0], start=start + 1):
        other = next(sides[1], None)
        if other is None:
            raise misaligned(source, number + sum(1 for _ in sides[0]), target, number - 1)
        yield line, other
    extra = sum(1 for _ in sides[1])
    if extra:
        raise misaligned(source, number, target, number + extra)


def misaligned(
    source: str | Path, source_lines: int, target: str | Path, target_lines: int
) -> UserError:
    """Return the error that says that two sides of a corpus differ in their number of lines."""
    return UserError(
        f"{source} has {source_lines} lines but {target} has {target_lines}: both sides of a "
        "corpus need the same number of lines, line N of one translating line N of the other"
    )


def write_lines(path: str | Path, lines: Iterable[str]) -> int:
    """Write lines, each ended by a line feed; return their number."""
    count = 0
    with atomic_text(path) as stream:
        for line in lines:
            stream.write(line + "\n")
            count += 1
    return count


def read_json(path: str | Path) -> object:
    """Return the content of a JSON file.

    Raises:
        UserError: the file is missing, or is not JSON; the message names the line.
    """
    try:
        return json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8: {error.reason}") from None


def write_json(path: str | Path, content: object) -> None:
    """Write a dataclass, or plain data that may hold some, as indented JSON."""
    with atomic_text(path) as stream:
        json.dump(content, stream, ensure_ascii=False, indent=2, default=asdict)
        stream.write("\n")


def join_texts(parts: Sequence[Path], path: Path) -> None:
    """Write text files end to end; the bytes depend on the text alone, not on where it was cut."""
    with atomic_path(path) as temporary, open_bytes(temporary, "w") as joined:
        for part in parts:
            if part.stat().st_size:  # none is what a compressor writes that was given no line
                with open_bytes(part) as stream:
                    shutil.copyfileobj(stream, joined)


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
