"""Text in files of records: a field of each JSON line, the fields of a tab-separated table."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from convs2s.errors import UserError

_FIELD = re.compile(r"(?P<name>[^\[\]]+)(?:\[(?P<number>\d{1,9})\])?")


def read_field(lines: Iterable[str], field: str, name: str) -> Iterator[str]:
    """Yield a field of each JSON line as one line of text, its blanks single spaces.

    Args:
        lines: the file's lines.
        field: NAME of a text, or of a list of texts, which are joined by spaces; NAME[N] of item N
            of a list, counted from 0: an empty line where the list is shorter.
        name: how errors call the file.

    Raises:
        UserError: a line is no JSON object, has no such field, or that is no text.
    """
    found = _FIELD.fullmatch(field)
    if not found:
        raise UserError(f"{name}: expected a field NAME or NAME[N] after #, not {field!r}")
    for number, line in enumerate(lines, start=1):
        record = _object(line, f"{name}:{number}")
        if found["name"] not in record:
            known = ", ".join(record)
            raise UserError(f"{name}:{number}: no field '{found['name']}'; there are {known}")
        value = record[found["name"]]
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{name}:{number}: '{found['name']}' is neither text nor a list of it")
        if found["number"]:
            texts = texts[int(found["number"]) :][:1]
        yield _one_line(texts, f"{name}:{number}: '{found['name']}'")


def _one_line(texts: Iterable[str], where: str) -> str:
    """Join texts by single blanks; JSON can write halves of characters, which no file can hold."""
    text = " ".join(" ".join(texts).split())
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            f"{where} holds \\u{ord(text[error.start]):04x} alone, which is half a character: "
            "write the whole one, or leave it out"
        ) from None
    return text


def _object(line: str, where: str) -> dict[str, object]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON: {error.msg}; expected one record a line") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not a record: {error}") from None
    if not isinstance(record, dict):
        raise UserError(f"{where}: expected a JSON object in braces")
    return record


def read_columns(
    lines: Iterable[str], columns: Sequence[str], name: str
) -> Iterator[tuple[str, ...]]:
    """Yield columns of a tab-separated table, whose quoted fields may hold tabs and line feeds.

    Args:
        lines: the table's lines without their line feeds; the first one names the columns.
        columns: those wanted.
        name: how errors call the table.

    Raises:
        UserError: a column is missing, a row has too few fields, or a quote is never closed.
    """
    rows = csv.reader((f"{line}\n" for line in lines), delimiter="\t", strict=True)
    try:
        header = next(rows, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise UserError(
                f"{name}:1: no column {', '.join(missing)}: expected a tab-separated table whose "
                "first line names its columns"
            )
        places = [header.index(column) for column in columns]
        for row in rows:
            if len(row) != len(header):
                raise UserError(
                    f"{name}:{rows.line_num}: {len(row)} fields, but the first line names "
                    f"{len(header)}"
                )
            yield tuple(row[place] for place in places)
    except csv.Error as error:
        raise UserError(f"{name}:{rows.line_num}: not a tab-separated table: {error}") from None
