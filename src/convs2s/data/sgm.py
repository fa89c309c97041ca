"""The segments of WMT's test sets in sgm.

Upstream's files are not well-formed XML (newstest2014 holds a raw ``&``, some wrap segments in
``<p>`` or ``<hl>``), so only the ``<doc>`` and ``<seg>`` tags are read.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from html.entities import html5

from convs2s.errors import UserError
from convs2s.files.limits import LONGEST_SEGMENT_BYTES

_TAG = re.compile(r"<(?:doc|seg)\b[^<>]*>|</seg\s*>", re.IGNORECASE)
_NUMBER = re.compile(r"\s(?:docid|id)\s*=\s*[\"']?([^\s\"'>]*)", re.IGNORECASE)
_ENTITY = re.compile(r"&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]*);", re.IGNORECASE)
_BLANKS = " \t\r\n"  # not str.strip's: a no-break space belongs to the text


class Segment(str):
    """The text of a segment on one line.

    Attributes:
        place: the ids of its document and its own; None for one that is not stated.
    """

    __slots__ = ("place",)
    place: tuple[str | None, str | None]

    def is_beside(self, other: "Segment") -> bool:
        """Whether nothing says that the two are segments of different places."""
        pairs = zip(self.place, other.place, strict=True)
        return all(own == theirs or None in (own, theirs) for own, theirs in pairs)


def read_segments(lines: Iterable[str], name: str) -> Iterator[Segment]:
    """Yield the text of each segment, in the order of the file.

    Args:
        lines: the file's lines.
        name: how errors call the file.

    Raises:
        UserError: a ``<seg>`` is not closed or not opened (with its line), or there is none.
    """
    opened = count = number = length = 0
    document = own = None
    parts: list[str] = []
    for number, line in enumerate(lines, start=1):
        position = 0
        for tag in _TAG.finditer(line):
            closes = tag[0].startswith("</")
            if tag[0][1:4].lower() == "doc":
                document = _id(tag[0])
                continue
            if closes != bool(opened):
                raise UserError(f"{name}:{number}: unexpected {tag[0]}: segments cannot be nested")
            if closes:
                segment = Segment(_text([*parts, line[position : tag.start()]]))
                segment.place = document, own
                yield segment
                count += 1
            own = _id(tag[0])
            opened, parts, position, length = 0 if closes else number, [], tag.end(), 0
        if opened:
            parts.append(line[position:])
            length += len(parts[-1])
            if length > LONGEST_SEGMENT_BYTES:
                raise UserError(f"{name}:{opened}: this <seg> is too long to be a sentence")
    if opened:
        raise UserError(f"{name}:{opened}: this <seg> is not closed by </seg> before the file ends")
    if not count:
        raise UserError(f"{name}: no <seg> in its {number} lines: is it really an sgm file?")


def _id(tag: str) -> str | None:
    found = _NUMBER.search(tag)
    return found[1] if found else None


def _text(parts: list[str]) -> str:
    text = " ".join(filter(None, (part.strip(_BLANKS) for part in parts)))
    return _ENTITY.sub(_character, text).replace("\n", " ")


def _character(entity: re.Match[str]) -> str:
    """Return what an entity stands for; an unknown name is left as it is written."""
    if entity[1].startswith("#"):
        return unescape(entity[0])
    return html5.get(f"{entity[1]};", entity[0])
