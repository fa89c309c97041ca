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

# Elements within a segment of a translation memory whose content is another format's code.
_CODE = frozenset({"bpt", "ept", "ph", "it", "ut", "sub"})


def speaks(tag: str, language: str) -> bool:
    """Return whether a file's name of a language, such as en-US, means the task's, such as en.

    Of a task's language, the part before an underscore counts: en_title is English.
    """
    primary = re.split("[-_]", tag.strip().lower())[0]
    return primary == language.partition("_")[0]


def read_tmx(stream: BinaryIO, languages: Languages, name: str) -> Iterator[LinePair]:
    """Yield the two texts of each translation unit of a translation memory.

    A text that the unit does not have is empty. A language's variants, such as en-US, are the
    language; if a unit has several, the first counts. Codes of the format of the translated
    document within a segment are left out.

    Raises:
        UserError: the file is not XML, has entities, or has no unit in both languages. The message
            begins with ``name``, the name of the file.
    """
    # The languages in the file, in the order in which they occur first.
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
        languages: Those of the source and of the references.
        reference: The translator of the reference, such as A. None takes the only reference.
        name: Name of the file for messages.

    Raises:
        UserError: the file is not XML, has entities, has no such reference, or has several and
            ``reference`` is None. The message begins with ``name``.
    """
    # The sides in the file, as a message shows them, in the order in which they occur first.
    found: dict[str, None] = {}
    is_paired = False
    for document in _elements(stream, "doc", name):
        sources: dict[str, str] = {}
        references: dict[
            str, dict[str, str]
        ] = {}  # translator -> id of a segment -> text
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
        is_paired = is_paired or any(translations.get(number) for number in sources)
        for number, source in sources.items():
            yield source, translations.get(number, "")
    if not is_paired:
        wanted = f"reference {reference}" if reference else "reference"
        raise UserError(
            f"{name}: no {wanted} from {languages.source} to {languages.target}; it has: "
            f"{', '.join(found) or 'none'}"
        )


def _add(found: dict[str, None], shown: str) -> None:
    """Add what a message shows of a file, of which it may have any number."""
    if len(found) < MOST_LANGUAGES_SHOWN:
        found.setdefault(shown)


def _segments(side: Element) -> dict[str, str]:
    """Return the texts of the segments below an element by their ids."""
    return {segment.get("id", ""): _line(segment) for segment in side.iter("seg")}


def _line(segment: Element) -> str:
    """Return the text of a segment as one line, without code."""
    for element in segment.iter():
        if element.tag in _CODE:
            following = element.tail
            element.clear()
            element.tail = following
    return _BLANKS.sub(" ", "".join(segment.itertext())).strip(" ")


class _Builder:
    """Builds the elements that have a tag. Of everything outside of them, nothing is kept."""

    def __init__(self, tag: str) -> None:
        self.complete: list[Element] = []
        self.depth = 0  # number of open elements, from the one with the tag on
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
    """Parse a file, and yield each element with a tag when it has ended."""
    builder = _Builder(tag)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.EntityDeclHandler = _refuse_entity
    parser.XmlDeclHandler = _check_encoding
    read = 0
    kept = 0  # bytes of the open element, or of a tag that is not complete
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
        is_between = not builder.depth and parser.CurrentByteIndex > read - len(block)
        kept = 0 if builder.complete or is_between else kept + len(block)
        if kept > LARGEST_ELEMENT_BYTES:
            raise UserError(
                f"{name}:{parser.CurrentLineNumber}: a tag, or a <{tag}>, of more than "
                f"{LARGEST_ELEMENT_BYTES} bytes"
            )
        yield from builder.complete
        builder.complete.clear()
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
