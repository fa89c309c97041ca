"""Read and write lines of text, tables and JSON.

Text is in UTF-8. Only a line feed ends a line, not a carriage return, U+2028 or the like. Files
whose names end in ``.gz``, ``.zst``, ``.xz`` or ``.bz2`` are compressed.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TextIO, TypeVar

from pydantic import TypeAdapter

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import atomic_path
from convs2s.files.compressed import decompressed_file, open_input, open_text
from convs2s.files.encodings import encoding_advice
from convs2s.files.limits import (
    ENCODING_SAMPLE_BYTES,
    LONGEST_LINE_BYTES,
    LONGEST_LINE_OF_FILES_BYTES,
)

T = TypeVar("T")

BYTE_ORDER_MARK = "\ufeff"
"""The mark with which a downloaded file or a user's own file may begin.

It is not part of the text.
"""

NO_MARK = ""
"""Pass this as ``mark`` to read the workflow's own text, which has no byte order mark.

There, U+FEFF at the start of the first line is text, because this line may come from the middle of
another file.
"""


def read_lines(path: str | Path, *, mark: str = BYTE_ORDER_MARK) -> Iterator[str]:
    """Yield the lines of a text file without their line feeds.

    ``mark`` is removed at the start of the file; pass ``NO_MARK`` for the workflow's own text. All
    other characters are kept. The preparation of text handles carriage returns and NUL.

    Raises:
        UserError: the file is missing or damaged, or a line is not UTF-8 or longer than 16 MiB. The
            message names the line.
    """
    with decompressed_file(path) as stream:
        yield from text_lines(
            stream.readline, str(path), LONGEST_LINE_OF_FILES_BYTES, mark=mark
        )


def text_lines(
    readline: Callable[[int], bytes],
    name: str,
    longest: int = LONGEST_LINE_BYTES,
    *,
    mark: str = BYTE_ORDER_MARK,
) -> Iterator[str]:
    """Yield the lines of a buffered stream without their line feeds.

    ``readline`` is the stream's method. ``mark`` is removed at the start of the stream.

    Raises:
        UserError: a line is not UTF-8 or has more than ``longest`` bytes without its line feed. The
            message begins with ``name`` and the number of the line.
    """
    # Call readline until it returns nothing. Of a line that is too long, it reads only one byte
    # more than the limit.
    lines = iter(partial(readline, longest + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > longest and not line.endswith(b"\n"):
            raise UserError(
                f"{name}:{number}: a line of more than {longest} bytes: is this text "
                "with one sentence per line?"
            )
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}:{number}: not UTF-8: byte 0x{line[error.start]:02x} at column "
                f"{error.start + 1}; {encoding_advice(_sample(line, lines))}; or if it is "
                "compressed, give a file whose name ends in .gz, .bz2, .xz or .zst"
            ) from None
        if number == 1:
            text = text.removeprefix(mark)
        yield text.removesuffix("\n")


def _sample(line: bytes, following: Iterator[bytes]) -> bytes:
    """Return a line and as many lines after it as are needed to guess the encoding of the text."""
    sample = bytearray(line)
    for further in following:
        sample += further
        if len(sample) >= ENCODING_SAMPLE_BYTES:
            break
    return bytes(sample)


def read_rows(path: str | Path, header: str) -> Iterator[list[str]]:
    """Yield the fields of each row of a tab-separated table whose first line is ``header``.

    Raises:
        UserError: the first line is not ``header``, or a row has another number of fields or an
            empty field. The message names the line.
    """
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
        if len(fields) != len(columns) or "" in fields:
            raise bad_line(number)
        yield fields


def read_line_pairs(
    source: str | Path,
    target: str | Path,
    *,
    mark: str = BYTE_ORDER_MARK,
) -> Iterator[tuple[str, str]]:
    """Yield the line pairs of two parallel files; see `read_lines` and `paired`."""
    return paired(
        read_lines(source, mark=mark), read_lines(target, mark=mark), source, target
    )


def paired(
    source_lines: Iterable[str],
    target_lines: Iterable[str],
    source: object,
    target: object,
) -> Iterator[tuple[str, str]]:
    """Yield the lines of the two sides of a corpus as pairs.

    Raises:
        UserError: the sides have different numbers of lines. The message gives both numbers and the
            names of the sides, ``source`` and ``target``. The longer side is read to its end to
            count its lines.
    """
    pairs = zip_longest(source_lines, target_lines)
    for pairs_before, (source_line, target_line) in enumerate(pairs):
        if source_line is None or target_line is None:
            shorter = pairs_before
            lines_after = sum(1 for _ in pairs)
            longer = pairs_before + 1 + lines_after
            source_count = shorter if source_line is None else longer
            target_count = shorter if target_line is None else longer
            raise UserError(
                f"{source} has {source_count} lines but {target} has {target_count}: both sides of "
                "a corpus need the same number of lines, and line N of the target must translate "
                "line N of the source"
            )
        yield source_line, target_line


@contextmanager
def atomic_text(path: str | Path) -> Iterator[TextIO]:
    """Open a file for writing text. It gets its name ``path`` only if the block succeeds."""
    with atomic_path(path) as temporary, open_text(temporary) as stream:
        yield stream


def write_text(path: str | Path, text: str) -> None:
    """Write a text unchanged; a file that exists is replaced atomically."""
    with atomic_text(path) as stream:
        stream.write(text)


def write_lines(path: str | Path, lines: Iterable[str]) -> int:
    """Write lines, each with a line feed at its end, and return their number."""
    count = 0
    with atomic_text(path) as stream:
        for line in lines:
            stream.write(line + "\n")
            count += 1
    return count


def read_json(path: str | Path) -> object:
    """Return the content of a JSON file.

    Raises:
        UserError: the file cannot be read, or is not JSON. The message gives the position.
    """
    with failures_of_file(path, "not JSON"), open_input(path) as stream:
        return json.loads(stream.read())


def read_checked(path: str | Path, kind: type[T], problem: str) -> T:
    """Return the content of a JSON file as an object of the type ``kind``, checked by pydantic.

    Raises:
        UserError: the file cannot be read, or its content does not have this type. The message
            begins with the file and ``problem``.
    """
    with failures_of_file(path, problem), open_input(path) as stream:
        return TypeAdapter(kind).validate_json(stream.read())


def write_json(path: str | Path, content: object) -> None:
    """Write ``content``, which may be or contain dataclasses, as indented JSON."""
    write_text(
        path, json.dumps(content, ensure_ascii=False, indent=2, default=asdict) + "\n"
    )
