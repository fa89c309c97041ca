"""Read the text of downloaded corpora in other formats than one sentence a line.

The formats are JSON records, tab-separated tables, WMT's test sets in sgm, and IWSLT's transcripts
of talks.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from html.entities import html5
from itertools import islice

from convs2s.errors import UserError
from convs2s.files.limits import LONGEST_SEGMENT

_FIELD = re.compile(r"(?P<name>[^\[\]]+)(?:\[(?P<number>\d{1,9})\])?")

# Only these tags of an sgm file are read. An XML parser cannot be used, because the published files
# are not well-formed: newstest2014 has a raw &, and some files have <p> or <hl> around segments.
_TAG = re.compile(r"(<(?:doc|seg)\b[^<>]*>|</seg\s*>)", re.IGNORECASE)
# WMT's XML of 2021 and later has sources, references and systems' outputs in one file.
_SIDE = re.compile(r"<(src|ref|hyp)\b[^<>]*>", re.IGNORECASE)
_ID_ATTRIBUTE = re.compile(r"\s(?:docid|id)\s*=\s*[\"']?([^\s\"'>]*)", re.IGNORECASE)
_ENTITY = re.compile(r"&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]*);", re.IGNORECASE)
# str.strip() would also remove no-break spaces, which belong to the text.
_BLANKS = " \t\r\n"

# Lines about a talk that are not translated text: addresses, numbers, keywords and names. The title
# and the description are translated text like all other lines.
_ABOUT = re.compile(
    r"\s*</?(?:doc|url|keywords|speaker|talkid|reviewer|translator)\b[^<>]*>"
)
_TAG_OF_TEXT = re.compile(r"</?(?:title|description)>")

# A line that begins and ends with a tag.
_TAGGED = re.compile(r"\s*<[a-z/?!].*>\s*", re.IGNORECASE)
# The beginning of a file in XML or HTML.
_MARKUP = re.compile(r"\s*<(?:\?xml|!doctype|tmx|xliff|html)\b", re.IGNORECASE)
# A line that is a JSON object.
_RECORD = re.compile(r"\s*\{\s*\".*\}\s*")
# Number of lines at the beginning of a file that decide whether it is plain text.
_LINES_OF_HEAD = 20
# Number of these lines that may begin and end with a tag, as a few lines of plain text can.
_MOST_TAGGED = 2
_NEW_TASK = "convs2s new-task makes a task of it (docs/own_language_pair.md)"


def read_field(
    lines: Iterable[str],
    field: str,
    name: str,
) -> Iterator[str]:
    """Yield a field of each JSON object as one line of text.

    Each of the ``lines`` is a JSON object. Runs of blanks in the text become single spaces.
    ``field`` is one of:

    - ``NAME``: the value is a text, or a list of texts, which are joined by spaces.
    - ``NAME[N]``: the value is a list, and its item N, counted from 0, is the text. If the list
      has no item N, an empty line is yielded.

    Raises:
        UserError: ``field`` is malformed, or a line is not a JSON object with such a text. The
            message begins with ``name``, the name of the file. If a line is at fault, its number
            follows.
    """
    match = _FIELD.fullmatch(field)
    if not match:
        raise UserError(
            f"{name}: expected a field NAME or NAME[N] after #, not {field!r}"
        )
    key = match["name"]
    item = match["number"]
    for number, line in enumerate(lines, start=1):
        place = f"{name}:{number}"
        record = record_of_line(line, place)
        if key not in record:
            raise UserError(f"{place}: no field '{key}'; there are {', '.join(record)}")
        texts = record[key]
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, list) or not all(
            isinstance(text, str) for text in texts
        ):
            raise UserError(f"{place}: '{key}' is neither a text nor a list of texts")
        if item:
            index = int(item)
            # A slice, because it is empty if the list has no such item.
            texts = texts[index : index + 1]
        joined = " ".join(" ".join(texts).split())
        try:
            # JSON can escape half of a surrogate pair, which cannot be written to a file.
            joined.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UserError(
                f"{place}: '{key}' holds \\u{ord(joined[error.start]):04x} alone, which is half a "
                "character: write the whole one, or leave it out"
            ) from None
        yield joined


def record_of_line(line: str, place: str) -> dict[str, object]:
    """Return the JSON object that a line of JSON lines has.

    Raises:
        UserError: the line is not a JSON object. The message begins with ``place``.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{place}: not JSON: {error}; expected one record a line"
        ) from None
    if not isinstance(record, dict):
        raise UserError(f"{place}: expected a JSON object in braces")
    return record


def read_columns(
    lines: Iterable[str],
    columns: Sequence[str],
    name: str,
) -> Iterator[tuple[str, ...]]:
    """Yield the values of ``columns`` in each row of a tab-separated table.

    The first line names the columns of the table. Quoted fields may contain tabs and line feeds.

    Raises:
        UserError: a column is missing, a row has another number of fields than the first line, or
            a quote is not closed. The message begins with ``name``, the name of the table, and the
            number of the last line that was read.
    """
    # The csv module keeps a line feed within quotes only if the line that it gets ends in one, and
    # ``lines`` have none.
    rows = csv.DictReader((f"{line}\n" for line in lines), delimiter="\t", strict=True)
    try:
        header = rows.fieldnames or ()
        if missing := [column for column in columns if column not in header]:
            raise UserError(
                f"{name}:1: no column {', '.join(missing)}: expected a tab-separated table whose "
                "first line names its columns"
            )
        for row in rows:
            # DictReader stores surplus fields under the key None, and None for missing fields.
            if None in row or None in row.values():
                raise UserError(
                    f"{name}:{rows.line_num}: expected {len(header)} fields, as many as the first "
                    "line has"
                )
            yield tuple(row[column] for column in columns)
    except csv.Error as error:
        # DictReader updates its own line_num only after a row that could be read.
        raise UserError(
            f"{name}:{rows.reader.line_num}: not a tab-separated table: {error}"
        ) from None


class Segment(str):
    """The text of a segment of an sgm file, as one line."""

    __slots__ = ("ids",)
    ids: tuple[str | None, str | None]
    """The ids of the segment's document and of the segment; None if the file does not give one."""

    def is_beside(self, other: "Segment") -> bool:
        """Return whether the two can be the same segment in two languages.

        They cannot if both give an id of the document and these ids differ, or if both give an id
        of the segment and these ids differ.
        """
        for own_id, other_id in zip(self.ids, other.ids, strict=True):
            if None not in (own_id, other_id) and own_id != other_id:
                return False
        return True


def read_segments(lines: Iterable[str], name: str) -> Iterator[Segment]:
    """Yield the segments of an sgm file in their order.

    Raises:
        UserError: a ``<seg>`` is not closed, a tag of a segment is in the wrong place, a segment is
            too long, there is no segment, or the file has a source with its translations (WMT's
            XML). The message begins with ``name``, the name of the file. Unless the file has no
            segment, the number of a line follows.
    """
    # Number of the line on which the current segment begins, 0 outside of segments.
    opened = 0
    count = 0  # segments so far
    number = 0
    sides = set[str]()  # the tags of WMT's XML so far
    document_id = None
    segment_id = None
    # The text of the current segment so far, in pieces, and its number of characters.
    text: list[str] = []
    length = 0
    for number, line in enumerate(lines, start=1):
        sides.update(_SIDE.findall(line.lower()))
        if len(sides) > 1:
            raise UserError(
                f"{name}:{number}: holds the source and its translations together: {_NEW_TASK}"
            )
        # Pieces of text and tags take turns: text, tag, text, ..., text.
        for index, piece in enumerate(_TAG.split(line)):
            is_tag = index % 2 == 1
            closes = piece.startswith("</")
            is_open = opened > 0
            if not is_tag:
                if is_open:
                    text.append(piece)
                    length += len(piece)
            elif piece.lower().startswith("<doc"):
                document_id = _id(piece)
            elif closes != is_open:  # <seg> within a segment, or </seg> outside
                raise UserError(
                    f"{name}:{number}: unexpected {piece}: segments cannot be nested"
                )
            elif closes:
                segment = Segment(_joined(text))
                segment.ids = (document_id, segment_id)
                yield segment
                count += 1
                opened = 0
            else:
                segment_id = _id(piece)
                opened = number
                text = []
                length = 0
        if opened and length > LONGEST_SEGMENT:
            raise UserError(f"{name}:{opened}: this <seg> is too long to be a sentence")
    if opened:
        raise UserError(
            f"{name}:{opened}: this <seg> is not closed by </seg> before the file ends"
        )
    if not count:
        raise UserError(
            f"{name}: no <seg> in its {number} lines: is it really an sgm file?"
        )


def _id(tag: str) -> str | None:
    """Return the value of the attribute ``docid`` or ``id`` of a tag, or None if it has none."""
    match = _ID_ATTRIBUTE.search(tag)
    return match[1] if match else None


def _joined(parts: list[str]) -> str:
    """Join the parts of a segment by spaces to one line of text, and replace its entities."""

    def character(entity: re.Match[str]) -> str:
        # An entity with an unknown name stays as it is. html.unescape would replace the beginning
        # of the name if that is a known name.
        is_known = entity[1].startswith("#") or f"{entity[1]};" in html5
        return unescape(entity[0]) if is_known else entity[0]

    stripped = (part.strip(_BLANKS) for part in parts)
    text = " ".join(filter(None, stripped))
    # An entity such as &#10; is a line feed, which would break the text into two lines.
    return _ENTITY.sub(character, text).replace("\n", " ")


def plain_lines(lines: Iterator[str], name: str) -> Iterator[str]:
    """Yield the lines of a text with one sentence a line, which must not be markup or JSON.

    A translation memory (TMX) may by chance have as many lines as the other side of a corpus, and
    its tags would be trained as text.

    Raises:
        UserError: the first lines are those of XML, HTML or JSON lines. The message begins with
            ``name``, the name of the file.
    """
    head = list(islice(lines, _LINES_OF_HEAD))
    filled = [line for line in head if line.strip()]
    tagged = [line for line in filled if _TAGGED.fullmatch(line)]
    if filled and (_MARKUP.match(filled[0]) or len(tagged) > _MOST_TAGGED):
        raise UserError(
            f"{name}: holds markup, not one sentence a line: if it is a TMX file or WMT's XML, "
            f"{_NEW_TASK}; else write its text, without tags, one sentence a line"
        )
    if filled and all(_RECORD.fullmatch(line) for line in filled):
        raise UserError(
            f"{name}: holds JSON lines, not one sentence a line: name it .jsonl, with its field "
            f"after #, or {_NEW_TASK}"
        )
    yield from head
    yield from lines


def spoken_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the translated lines of a transcript of talks.

    Lines about a talk, such as its address and its speaker, are left out. The tags around titles
    and descriptions are removed.
    """
    for line in lines:
        if not _ABOUT.match(line):
            yield _TAG_OF_TEXT.sub("", line).strip(" \t\r")
