"""Formats of text from elsewhere: records, WMT's test sets in sgm, IWSLT's transcripts of talks."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from html.entities import html5

from convs2s.errors import UserError
from convs2s.files.limits import LONGEST_SEGMENT

_FIELD = re.compile(r"(?P<name>[^\[\]]+)(?:\[(?P<number>\d{1,9})\])?")

# Of sgm only these tags are read, as upstream's files are not well-formed XML: newstest2014 holds a
# raw &, some wrap segments in <p> or <hl>.
_TAG = re.compile(r"<(?:doc|seg)\b[^<>]*>|</seg\s*>", re.IGNORECASE)
_NUMBER = re.compile(r"\s(?:docid|id)\s*=\s*[\"']?([^\s\"'>]*)", re.IGNORECASE)
_ENTITY = re.compile(r"&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]*);", re.IGNORECASE)
_BLANKS = " \t\r\n"  # not str.strip's: a no-break space belongs to the text

# Of the lines about a talk, the title and the description are text, translated like all other; an
# address, numbers, keywords and names are not.
_ABOUT = re.compile(r"\s*</?(?:doc|url|keywords|speaker|talkid|reviewer|translator)\b[^<>]*>")
_TAG_OF_TEXT = re.compile(r"</?(?:title|description)>")


def read_field(lines: Iterable[str], field: str, name: str) -> Iterator[str]:
    """Yield a field of each JSON line as one line of text, its blanks single spaces.

    ``field`` is NAME of a text, or of a list of texts, which are joined by spaces; NAME[N] of item
    N of a list, counted from 0: an empty line where the list is shorter. A UserError has the
    ``name`` of the file and the line that is no JSON object, or has no such text.
    """
    match = _FIELD.fullmatch(field)
    if not match:
        raise UserError(f"{name}: expected a field NAME or NAME[N] after #, not {field!r}")
    key = match["name"]
    item = match["number"]
    for number, line in enumerate(lines, start=1):
        place = f"{name}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{place}: not JSON: {error}; expected one record a line") from None
        if not isinstance(record, dict):
            raise UserError(f"{place}: expected a JSON object in braces")
        if key not in record:
            raise UserError(f"{place}: no field '{key}'; there are {', '.join(record)}")
        texts = record[key]
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{place}: '{key}' is neither text nor a list of it")
        if item:
            index = int(item)
            texts = texts[index : index + 1]
        joined = " ".join(" ".join(texts).split())
        try:
            joined.encode("utf-8")  # JSON can write halves of characters, which no file can hold
        except UnicodeEncodeError as error:
            raise UserError(
                f"{place}: '{key}' holds \\u{ord(joined[error.start]):04x} alone, which is half a "
                "character: write the whole one, or leave it out"
            ) from None
        yield joined


def read_columns(
    lines: Iterable[str], columns: Sequence[str], name: str
) -> Iterator[tuple[str, ...]]:
    """Yield columns of a tab-separated table, whose quoted fields may hold tabs and line feeds.

    The first line names the columns. A UserError has the ``name`` of the table: a column is
    missing, a row has too few fields, or a quote is never closed.
    """
    rows = csv.DictReader((f"{line}\n" for line in lines), delimiter="\t", strict=True)
    try:
        named = rows.fieldnames or ()
        if missing := [column for column in columns if column not in named]:
            raise UserError(
                f"{name}:1: no column {', '.join(missing)}: expected a tab-separated table whose "
                "first line names its columns"
            )
        for row in rows:
            if None in row or None in row.values():
                raise UserError(
                    f"{name}:{rows.line_num}: more or fewer fields than the {len(named)} that the "
                    "first line names"
                )
            yield tuple(row[column] for column in columns)
    except csv.Error as error:
        raise UserError(
            f"{name}:{rows.reader.line_num}: not a tab-separated table: {error}"
        ) from None


class Segment(str):
    """The text of a segment on one line."""

    __slots__ = ("ids",)
    ids: tuple[str | None, str | None]  # of its document and its own; None: not stated

    def is_beside(self, other: "Segment") -> bool:
        """Whether nothing says that the two are segments of different places."""
        return all(
            mine in (None, its) or its is None
            for mine, its in zip(self.ids, other.ids, strict=True)
        )


def read_segments(lines: Iterable[str], name: str) -> Iterator[Segment]:
    """Yield the text of each segment of a file, in its order.

    A UserError names the line of a ``<seg>`` that is not closed or opened, or says there is none.
    """
    opened = 0  # line of the segment that is open, 0: none is
    count = 0
    number = 0
    length = 0
    document = None
    own = None
    parts: list[str] = []
    for number, line in enumerate(lines, start=1):
        position = 0
        for tag in _TAG.finditer(line):
            written = tag[0]
            closes = written.startswith("</")
            if written.lower().startswith("<doc"):
                document = _id(written)
                continue
            if closes != bool(opened):
                raise UserError(f"{name}:{number}: unexpected {written}: segments cannot be nested")
            if closes:
                parts.append(line[position : tag.start()])
                segment = Segment(_joined(parts))
                segment.ids = (document, own)
                yield segment
                count += 1
                opened = 0
            else:
                own = _id(written)
                opened = number
                parts = []
                length = 0
            position = tag.end()
        if opened:
            part = line[position:]
            parts.append(part)
            length += len(part)
            if length > LONGEST_SEGMENT:
                raise UserError(f"{name}:{opened}: this <seg> is too long to be a sentence")
    if opened:
        raise UserError(f"{name}:{opened}: this <seg> is not closed by </seg> before the file ends")
    if not count:
        raise UserError(f"{name}: no <seg> in its {number} lines: is it really an sgm file?")


def _id(tag: str) -> str | None:
    match = _NUMBER.search(tag)
    return match[1] if match else None


def _joined(parts: list[str]) -> str:
    """Return the parts of a segment as one line of text without entities."""

    def character(entity: re.Match[str]) -> str:
        # An unknown name is left as it is written, where unescape would take a part of it.
        known = entity[1].startswith("#") or f"{entity[1]};" in html5
        return unescape(entity[0]) if known else entity[0]

    stripped = [part.strip(_BLANKS) for part in parts]
    text = " ".join(part for part in stripped if part)
    return _ENTITY.sub(character, text).replace("\n", " ")


def spoken_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield what is text in a transcript of talks: lines without tags, none about the talk."""
    for line in lines:
        if not _ABOUT.match(line):
            yield _TAG_OF_TEXT.sub("", line).strip(" \t\r")
