"""Read pairs of sentences from XML: translation memories (TMX), and WMT's test sets since 2021.

The files need not be trusted. They are parsed in blocks, and one unit or document at a time is in
memory. Entities are refused, because a small file can have entities that grow to gigabytes.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from convs2s.config.corpus import Languages
from convs2s.data.corpus import LinePair
from convs2s.errors import UserError
from convs2s.files.encodings import encoding_advice
from convs2s.files.limits import (
    LARGEST_ELEMENT_BYTES,
    MOST_LANGUAGES_SHOWN,
    STEP_BYTES,
)

_BLANKS = re.compile(r"[ \t\r\n]+")

# The encodings that the parser itself knows.
_ENCODINGS = frozenset({"utf-8", "utf-16", "us-ascii", "iso-8859-1"})
# Number of bytes before a fault that are shown to tell the encoding.
_BYTES_BEFORE = 40

# Elements within a segment of a translation memory that contain markup of the translated document.
_CODE = frozenset({"bpt", "ept", "ph", "it", "ut", "sub"})


def speaks(tag: str, language: str) -> bool:
    """Return whether the tag of a language in a file, such as en-US, means a task's, such as en.

    Only the part of the task's language before an underscore counts: en_title is English.
    """
    primary = re.split("[-_]", tag.strip().lower())[0]
    return primary == language.partition("_")[0]


def read_tmx(stream: BinaryIO, languages: Languages, name: str) -> Iterator[LinePair]:
    """Yield the two texts of each translation unit of a translation memory.

    A text that the unit does not have is empty. A variant, such as en-US, counts as the language
    itself. If a unit has several texts in a language, the first one that is not empty is used.
    Markup of the translated document within a segment is left out.

    Raises:
        UserError: the file is not XML, has entities, or has no unit in both languages. The message
            begins with ``name``, the name of the file.
    """
    # The languages in the file, in the order of their first occurrence, for the message.
    found: dict[str, None] = {}
    is_paired = False
    for unit in _elements(stream, "tu", name):
        source = ""
        target = ""
        for variant in unit.iter("tuv"):
            language = variant.get("xml:lang", variant.get("lang", ""))
            _add(found, language[:20])
            text = " ".join(map(_line, variant.iter("seg")))
            if speaks(language, languages.source):
                source = source or text
            if speaks(language, languages.target):
                target = target or text
        is_paired = is_paired or bool(source and target)
        yield source, target
    if not is_paired:
        raise UserError(
            f"{name}: no unit has text in both {languages.source} and {languages.target}; the "
            f"languages of its <tuv> elements are: {', '.join(found) or 'none'}"
        )


def read_wmt(
    stream: BinaryIO,
    languages: Languages,
    reference: str | None,
    name: str,
) -> Iterator[LinePair]:
    """Yield the segments of a test set of WMT, each with its translation in a reference.

    Args:
        stream: The file, in the format of WMT 2021 and later.
        languages: The languages of the source and of the references.
        reference: The translator of the reference, such as A. None takes the only reference.
        name: Name of the file for messages.

    Raises:
        UserError: the file is not XML, has entities, has no such reference, or has several and
            ``reference`` is None. The message begins with ``name``.
    """
    # The sides in the file, in the order of their first occurrence, for the message.
    found: dict[str, None] = {}
    is_paired = False
    for document in _elements(stream, "doc", name):
        # Id of a segment -> text.
        sources: dict[str, str] = {}
        # Translator -> id of a segment -> text.
        references: dict[str, dict[str, str]] = {}
        for side in document.iter():
            language = side.get("lang", "")
            translator = side.get("translator", "")
            if side.tag in ("src", "ref"):
                _add(found, f"{side.tag} {language[:20]} {translator[:20]}".strip())
            if side.tag == "src" and speaks(language, languages.source):
                sources |= _segments(side)
            if side.tag == "ref" and speaks(language, languages.target):
                references.setdefault(translator, {}).update(_segments(side))
        if reference is None and len(references) > 1:
            raise UserError(
                f"{name}: has several references, of the translators {', '.join(references)}: "
                "choose one by --reference"
            )
        chosen = next(iter(references), "") if reference is None else reference
        translations = references.get(chosen, {})
        for segment_id, source in sources.items():
            translation = translations.get(segment_id, "")
            is_paired = is_paired or bool(translation)
            yield source, translation
    if not is_paired:
        wanted = f"reference {reference}" if reference else "reference"
        raise UserError(
            f"{name}: no {wanted} from {languages.source} to {languages.target}; it has: "
            f"{', '.join(found) or 'none'}"
        )


def _add(found: dict[str, None], shown: str) -> None:
    """Add a text for a message, up to a limit, because a file may have any number of them."""
    if len(found) < MOST_LANGUAGES_SHOWN:
        found.setdefault(shown)


def _segments(side: Element) -> dict[str, str]:
    """Return the text of each segment below an element, by the segment's id."""
    return {segment.get("id", ""): _line(segment) for segment in side.iter("seg")}


def _line(segment: Element) -> str:
    """Return the text of a segment as one line, without the document's markup."""
    for element in segment.iter():
        if element.tag in _CODE:
            # clear() would also remove the text after the element.
            following = element.tail
            element.clear()
            element.tail = following
    return _BLANKS.sub(" ", "".join(segment.itertext())).strip(" ")


class _Builder:
    """Builds the elements that have a given tag, and keeps nothing of what is outside of them."""

    def __init__(self, tag: str) -> None:
        self.complete: list[Element] = []
        self.depth = 0  # number of open elements, counted from the one with the tag
        self._tag = tag
        self._tree = TreeBuilder()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.depth or tag == self._tag:
            self.depth += 1
            self._tree.start(tag, attributes)

    def end(self, tag: str) -> None:
        if self.depth:
            self.depth -= 1
            element = self._tree.end(tag)
            if not self.depth:
                self.complete.append(element)
                self._tree = TreeBuilder()

    def text(self, text: str) -> None:
        if self.depth:
            self._tree.data(text)


def _elements(stream: BinaryIO, tag: str, name: str) -> Iterator[Element]:
    """Parse a file in blocks, and yield each element with the tag ``tag`` when it has ended.

    Raises:
        UserError: the file is not well-formed, has an entity or another encoding, or an element is
            too large. The message begins with ``name`` and the number of the line.
    """
    builder = _Builder(tag)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.EntityDeclHandler = _refuse_entity
    parser.XmlDeclHandler = _check_encoding
    block_start = 0  # bytes before the block
    kept = 0  # bytes of the open element, or of a tag that is not complete
    while True:
        block = stream.read(STEP_BYTES)
        is_last = not block
        try:
            parser.Parse(block, is_last)
        except expat.ExpatError as error:
            place = max(0, parser.ErrorByteIndex - block_start)
            reason = f"{expat.errors.messages[error.code]}; make the file again"
            if block[place : place + 1] >= b"\x80":
                advice = encoding_advice(block[max(0, place - _BYTES_BEFORE) :])
                reason = f"not UTF-8, and it states no other encoding; {advice}"
            raise UserError(
                f"{name}:{error.lineno}: not well-formed XML: {reason}"
            ) from None
        except UserError as error:
            raise UserError(f"{name}:{parser.CurrentLineNumber}: {error}") from None
        # No element is open, and a tag or a text has ended within this block.
        is_between = not builder.depth and parser.CurrentByteIndex > block_start
        kept = 0 if builder.complete or is_between else kept + len(block)
        if kept > LARGEST_ELEMENT_BYTES:
            raise UserError(
                f"{name}:{parser.CurrentLineNumber}: a tag, or a <{tag}>, of more than "
                f"{LARGEST_ELEMENT_BYTES} bytes"
            )
        yield from builder.complete
        builder.complete.clear()
        if is_last:
            return
        block_start += len(block)


def _check_encoding(_version: str, encoding: str | None, _standalone: int) -> None:
    if encoding is not None and encoding.lower() not in _ENCODINGS:
        raise UserError(
            f"states the encoding {encoding}, which is not read: iconv -f {encoding} -t UTF-8 "
            "OLD > NEW, and state UTF-8 in the first line of NEW"
        )


def _refuse_entity(*_declaration: object) -> None:
    raise UserError("refused: it declares an entity, which can grow without limit")
