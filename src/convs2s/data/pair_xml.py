"""Read pairs of sentences from XML: translation memories (TMX), and WMT's test sets since 2021.

The files need not be trusted. They are parsed in blocks, so that memory does not grow with the
file. Entities are refused, because a small file can have entities that grow to gigabytes.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, Protocol
from xml.parsers import expat

from convs2s.config.corpus import Languages
from convs2s.data.corpus import LinePair
from convs2s.errors import UserError
from convs2s.files.encodings import encoding_advice
from convs2s.files.limits import (
    LARGEST_DOCUMENT,
    LONGEST_SEGMENT,
    MOST_LANGUAGES_SHOWN,
    STEP_BYTES,
)

_BLANKS = re.compile(r"[ \t\r\n]+")

# What a segment takes in memory besides its text.
_BYTES_OF_ENTRY = 64
# The encodings that the parser itself knows.
_ENCODINGS = frozenset({"utf-8", "utf-16", "us-ascii", "iso-8859-1"})
# Number of bytes before a fault that are shown to tell the encoding.
_BYTES_BEFORE = 40

# Elements within a segment of a translation memory whose content is another format's code.
_CODE = frozenset({"bpt", "ept", "ph", "it", "ut", "sub"})


def speaks(tag: str, language: str) -> bool:
    """Return whether a file's name of a language, such as en-US, means the task's, such as en.

    Of a task's language, the part before an underscore counts: en_title is English.
    """
    primary = re.split("[-_]", tag.strip().lower())[0]
    return primary == language.partition("_")[0]


class _Elements(Protocol):
    """What the elements of a format mean."""

    pairs: list[LinePair]
    """The pairs of the elements that have ended, which the parser empties."""

    def start(self, element: str, attributes: dict[str, str]) -> None: ...
    def end(self, element: str) -> None: ...
    def text(self, text: str) -> None: ...


def read_tmx(stream: BinaryIO, languages: Languages, name: str) -> Iterator[LinePair]:
    """Yield the two texts of each translation unit of a translation memory.

    A text that the unit does not have is empty. A language's variants, such as en-US, are the
    language; if a unit has several, the first counts. Codes of the format of the translated
    document within a segment are left out.

    Raises:
        UserError: the file is not XML, has entities, or has no unit in both languages. The message
            begins with ``name``, the name of the file.
    """
    units = _Units(languages)
    is_paired = False
    for pair in _parsed(stream, units, name):
        is_paired = is_paired or all(pair)
        yield pair
    if not is_paired:
        found = ", ".join(units.found) or "none"
        raise UserError(
            f"{name}: no unit has text in both {languages.source} and {languages.target}; the "
            f"languages of its <tuv> elements are: {found}"
        )


class _Units:
    """The translation units of a translation memory."""

    def __init__(self, languages: Languages) -> None:
        self.pairs: list[LinePair] = []
        # The names of languages in the file, in the order in which they occur first.
        self.found: dict[str, None] = {}
        self._sides = (languages.source, languages.target)
        self._unit = ["", ""]
        self._side: int | None = None
        self._segment: _SegmentText | None = None

    def start(self, element: str, attributes: dict[str, str]) -> None:
        """Note that an element begins."""
        if element == "tu":
            self._unit = ["", ""]
        elif element == "tuv":
            tag = attributes.get("xml:lang", attributes.get("lang", ""))
            if len(self.found) < MOST_LANGUAGES_SHOWN:
                self.found.setdefault(tag[:20])
            self._side = None
            for side, language in enumerate(self._sides):
                if speaks(tag, language) and not self._unit[side]:
                    self._side = side
        elif element == "seg":
            self._segment = _SegmentText()
        elif self._segment and element in _CODE:
            self._segment.codes += 1

    def end(self, element: str) -> None:
        """Note that an element ends; the end of a unit or document adds its pairs."""
        if element == "tu":
            self.pairs.append((self._unit[0], self._unit[1]))
        elif element == "seg" and self._segment:
            if self._side is not None:
                self._unit[self._side] = self._segment.line()
            self._segment = None
        elif self._segment and element in _CODE:
            self._segment.codes -= 1

    def text(self, text: str) -> None:
        """Add text, which counts within a segment alone."""
        if self._segment:
            self._segment.add(text)


class _SegmentText:
    """The text of a segment, in pieces."""

    def __init__(self) -> None:
        self.codes = 0  # number of open elements whose content is code
        self._pieces: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        if self.codes:
            return
        self._pieces.append(text)
        self._length += len(text)
        if self._length > LONGEST_SEGMENT:
            raise UserError("this <seg> is too long to be a sentence")

    def line(self) -> str:
        """Return the text as one line."""
        return _BLANKS.sub(" ", "".join(self._pieces)).strip(" ")


def read_wmt(
    stream: BinaryIO,
    languages: Languages,
    reference: str | None,
    name: str,
) -> Iterator[LinePair]:
    """Yield the segments of a test set of WMT, each with its translation in a reference.

    Args:
        stream: The file, in the format of WMT 2021 and later.
        languages: Those of the source and of the references.
        reference: The translator of the reference, such as A. None takes the only reference.
        name: Name of the file for messages.

    Raises:
        UserError: the file is not XML, has entities, has no such reference, or has several and
            ``reference`` is None. The message begins with ``name``.
    """
    documents = _Documents(languages, reference)
    is_paired = False
    for pair in _parsed(stream, documents, name):
        is_paired = is_paired or all(pair)
        yield pair
    if not is_paired:
        found = ", ".join(documents.found) or "none"
        wanted = f"reference {reference}" if reference else "reference"
        raise UserError(
            f"{name}: no {wanted} from {languages.source} to {languages.target}; it has: {found}"
        )


class _Documents:
    """The documents of a test set of WMT."""

    def __init__(self, languages: Languages, reference: str | None) -> None:
        self.pairs: list[LinePair] = []
        # The sides in the file, as a message shows them, in the order in which they occur first.
        self.found: dict[str, None] = {}
        self._languages = languages
        self._reference = reference
        self._source: dict[str, str] = {}
        self._references: dict[str, dict[str, str]] = {}
        # The segments of the open element <src> or <ref>.
        self._side: dict[str, str] | None = None
        self._id = ""
        self._segment: _SegmentText | None = None
        self._size = 0

    def start(self, element: str, attributes: dict[str, str]) -> None:
        """Note that an element begins."""
        if element == "doc":
            self._source = {}
            self._references = {}
            self._size = 0
        elif element == "src":
            self._start_side(element, attributes)
            if speaks(attributes.get("lang", ""), self._languages.source):
                self._side = self._source
        elif element == "ref":
            self._start_side(element, attributes)
            if speaks(attributes.get("lang", ""), self._languages.target):
                translator = attributes.get("translator", "")
                self._side = self._references.setdefault(translator, {})
        elif element == "seg" and self._side is not None:
            self._id = attributes.get("id", "")
            self._segment = _SegmentText()

    def _start_side(self, element: str, attributes: dict[str, str]) -> None:
        """Note a side of the file, and let no segment be read until its language is known."""
        self._side = None
        translator = attributes.get("translator", "")[:20]
        shown = f"{element} {attributes.get('lang', '')[:20]} {translator}".strip()
        if len(self.found) < MOST_LANGUAGES_SHOWN:
            self.found.setdefault(shown)

    def end(self, element: str) -> None:
        """Note that an element ends; the end of a unit or document adds its pairs."""
        if element == "seg" and self._segment and self._side is not None:
            line = self._segment.line()
            self._side[self._id] = line
            self._segment = None
            self._size += len(line) + _BYTES_OF_ENTRY
            if self._size > LARGEST_DOCUMENT:
                raise UserError("this <doc> is too long to be a document")
        elif element in ("src", "ref"):
            self._side = None
        elif element == "doc":
            self._end_document()

    def _end_document(self) -> None:
        """Add the pairs of the document that has ended."""
        reference = self._reference
        if reference is None:
            if len(self._references) > 1:
                names = ", ".join(self._references)
                raise UserError(
                    f"has several references, of the translators {names}: choose one by --reference"
                )
            reference = next(iter(self._references), "")
        translations = self._references.get(reference, {})
        for number, source in self._source.items():
            self.pairs.append((source, translations.get(number, "")))

    def text(self, text: str) -> None:
        """Add text, which counts within a segment alone."""
        if self._segment:
            self._segment.add(text)


def _parsed(stream: BinaryIO, elements: _Elements, name: str) -> Iterator[LinePair]:
    """Parse a file, and yield the pairs of its elements as they end."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = elements.start
    parser.EndElementHandler = elements.end
    parser.CharacterDataHandler = elements.text
    parser.EntityDeclHandler = _refuse_entity
    parser.XmlDeclHandler = _check_encoding
    read = 0
    while True:
        block = stream.read(STEP_BYTES)
        read += len(block)
        try:
            parser.Parse(block, not block)
        except expat.ExpatError as error:
            place = max(0, parser.ErrorByteIndex - read + len(block))
            reason = f"{expat.errors.messages[error.code]}; make the file again"
            if block[place : place + 1] >= b"\x80":
                advice = encoding_advice(block[max(0, place - _BYTES_BEFORE) :])
                reason = f"not UTF-8, and it states no other encoding; {advice}"
            raise UserError(
                f"{name}:{error.lineno}: not well-formed XML: {reason}"
            ) from None
        except UserError as error:
            raise UserError(f"{name}:{parser.CurrentLineNumber}: {error}") from None
        # A tag is kept in memory until it is complete.
        if read - parser.CurrentByteIndex > 2 * STEP_BYTES and block:
            raise UserError(
                f"{name}:{parser.CurrentLineNumber}: a tag of more than {STEP_BYTES} bytes"
            )
        yield from elements.pairs
        elements.pairs.clear()
        if not block:
            return


def _check_encoding(_version: str, encoding: str | None, _standalone: int) -> None:
    if encoding is not None and encoding.lower() not in _ENCODINGS:
        raise UserError(
            f"states the encoding {encoding}, which is not read: iconv -f {encoding} -t UTF-8 "
            "OLD > NEW, and state UTF-8 in the first line of NEW"
        )


def _refuse_entity(*_declaration: object) -> None:
    raise UserError("refused: it declares an entity, which can grow without limit")
