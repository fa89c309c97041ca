"""Lines of text, and JSON, in and out.

Text is UTF-8, its lines end in a line feed only (never in a carriage return, U+2028 and the like),
compressed where the name ends in ``.gz``, ``.zst``, ``.xz`` or ``.bz2``.
"""

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import atomic_path
from convs2s.files.compressed import decompressed_file, open_input, open_text
from convs2s.files.limits import LONGEST_LINE_BYTES, LONGEST_LINE_OF_FILES_BYTES

BYTE_ORDER_MARK = "\ufeff"
"""What may stand before the first line of a file from elsewhere, and is no part of it."""

NO_MARK = ""  # likewise of the workflow's own text, whose first line may be any line of a file


def read_lines(path: str | Path, *, mark: str = BYTE_ORDER_MARK) -> Iterator[str]:
    """Yield the lines of a text file without their line feeds.

    A byte order mark (``mark``; ``NO_MARK`` for the workflow's own text) at the start is dropped.
    Every other character is kept: a carriage return or a NUL is the preparation's affair.

    Raises:
        UserError: there is no such file, it is not in its compression format, or the line that it
            names is not UTF-8 or longer than 16 MiB.
    """
    with decompressed_file(path) as stream:
        yield from text_lines(stream.readline, str(path), LONGEST_LINE_OF_FILES_BYTES, mark=mark)


def text_lines(
    readline: Callable[[int], bytes],
    name: str,
    longest: int = LONGEST_LINE_BYTES,
    *,
    mark: str = BYTE_ORDER_MARK,
) -> Iterator[str]:
    """Yield the lines that ``readline`` gives of a buffered stream, without their line feeds.

    Raises:
        UserError: the line that it names, after ``name``, is not UTF-8 or has more than ``longest``
            bytes, as without line feeds.
    """
    lines = iter(partial(readline, longest + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > longest and not line.endswith(b"\n"):
            raise UserError(
                f"{name}:{number}: a line of more than {longest} bytes: is this text "
                "with one sentence a line?"
            )
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            encoding = "UTF-16" if line[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "LATIN1"
            raise UserError(
                f"{name}:{number}: not UTF-8: byte 0x{line[error.start]:02x} at column "
                f"{error.start + 1}; convert it, such as by: iconv -f {encoding} -t UTF-8, or "
                "if it is compressed, give a file whose name ends in .gz, .bz2, .xz or .zst"
            ) from None
        if number == 1:
            text = text.removeprefix(mark)
        yield text.removesuffix("\n")


def read_rows(path: str | Path, header: str) -> Iterator[list[str]]:
    """Yield the fields of each row of a table; a UserError names a line without its columns."""
    columns = header.split("\t")

    def bad_line(number: int) -> UserError:
        return UserError(
            f"{path}:{number}: expected the columns {columns} separated by tabs: make the table "
            "again"
        )

    lines = read_lines(path)
    if next(lines, "") != header:
        raise bad_line(1)
    for number, line in enumerate(lines, start=2):
        fields = line.split("\t")
        if len(fields) != len(columns) or not all(fields):
            raise bad_line(number)
        yield fields


def read_line_pairs(
    source: str | Path, target: str | Path, *, mark: str = BYTE_ORDER_MARK
) -> Iterator[tuple[str, str]]:
    """Yield the line pairs of two parallel files."""
    return paired(read_lines(source, mark=mark), read_lines(target, mark=mark), source, target)


def paired(
    lines: Iterable[str], others: Iterable[str], source: object, target: object
) -> Iterator[tuple[str, str]]:
    """Yield the lines of a corpus' two sides, so named, pair by pair.

    A UserError names the numbers of lines, where they differ.
    """
    sides = zip_longest(lines, others)
    for number, (line, other) in enumerate(sides):
        if line is None or other is None:
            shorter = number
            longer = number + 1 + sum(1 for _ in sides)
            raise UserError(
                f"{source} has {shorter if line is None else longer} lines but {target} has "
                f"{longer if line is None else shorter}: both sides of a corpus need the same "
                "number of lines, line N of one translating line N of the other"
            )
        yield line, other


@contextmanager
def atomic_text(path: str | Path) -> Iterator[TextIO]:
    """Open ``path`` for writing text; it appears under its name only when the block succeeds."""
    with atomic_path(path) as temporary, open_text(temporary) as stream:
        yield stream


def write_text(path: str | Path, text: str) -> None:
    """Write a text as it stands; what was there is replaced as a whole."""
    with atomic_text(path) as stream:
        stream.write(text)


def write_lines(path: str | Path, lines: Iterable[str]) -> int:
    """Write lines, each ended by a line feed; return their number."""
    count = 0
    with atomic_text(path) as stream:
        for line in lines:
            stream.write(line + "\n")
            count += 1
    return count


def read_json(path: str | Path) -> object:
    """Return the content of a JSON file; a UserError says where it is not JSON."""
    with failures_of_file(str(path), "not JSON"), open_input(path) as stream:
        return json.loads(stream.read())


def write_json(path: str | Path, content: object) -> None:
    """Write a dataclass, or plain data that may hold some, as indented JSON."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=2, default=asdict) + "\n")
