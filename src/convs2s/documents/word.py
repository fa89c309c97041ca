"""Find the text of Word documents (docx), and write its translation into the same XML.

Libraries for such documents write all XML anew, and do not show footnotes. Here only the bytes of
the texts are replaced. An XML parser tells the offsets of these bytes.
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from xml.parsers import expat

from convs2s.documents.passages import (
    ENTITY,
    Fragment,
    Passage,
    inline_items,
    texts_of,
)
from convs2s.download.archives import open_zip
from convs2s.errors import UserError, failures_of_file
from convs2s.files.compressed import refuse_bomb

_PART = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")

_NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)

_BREAKS = {"br", "cr", "tab", "ptab"}
"""Elements that end a passage within a paragraph."""

_START_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
_KEEPS_BLANKS = re.compile(rb"\sxml:space\s*=")
_INVISIBLE = re.compile(rb"<\w+:(?:lang|noProof)\b[^>]*>")
"""Properties of a run that a reader does not see."""

# Matches nothing: the texts of a run have no markup between them.
_NO_MARKUP = re.compile(r"(?!)")
_WRITTEN = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}

_Place = tuple[tuple[int, ...], bytes]


@dataclass
class _Text:
    """A text in an XML part: the byte offset of its tag, and those of its content.

    ``place`` has the elements between its paragraph and its run, by the offsets of their tags, and
    the properties of its run. Texts with the same place look the same to a reader.
    """

    tag: int
    start: int
    end: int = 0
    place: _Place = ((), b"")


@dataclass
class _Paragraph:
    """The texts of each passage of a paragraph."""

    depth: int  # number of open elements, with the paragraph itself
    passages: list[list[_Text]] = field(default_factory=lambda: [[]])


class WordDocument:
    """A Word document. Its ``texts`` are those of paragraphs, also in tables, notes and headers."""

    def __init__(
        self,
        content: bytes,
        name: str,
        largest: int,
    ) -> None:
        """Read a document; ``name`` is for messages.

        Raises:
            UserError: the content is not such a document, is damaged or encrypted, or its parts
                have more than ``largest`` bytes.
        """
        self._members = list[tuple[zipfile.ZipInfo, bytes]]()
        archive = open_zip(io.BytesIO(content), Path(name))
        size = sum(member.file_size for member in archive.infolist())
        refuse_bomb(len(content), size, name)
        if size > largest:
            raise UserError(
                f"{name}: its parts have {size:,} bytes, and {largest:,} is the most: split the "
                "document, or remove its pictures"
            )
        with failures_of_file(name, "damaged or encrypted; save it again"):
            for member in archive.infolist():
                self._members.append((member, archive.read(member)))
        self._parts = dict[str, _Part]()
        for member, xml in self._members:
            if _PART.fullmatch(member.filename):
                self._parts[member.filename] = _Part(xml, f"{name}#{member.filename}")
        if not any(path.startswith("word/document") for path in self._parts):
            raise UserError(
                f"{name}: a zip archive without word/document.xml: expected a Word document (docx)"
            )
        parts = self._parts.values()
        self.passages = list(chain.from_iterable(part.passages for part in parts))
        self.texts = texts_of(self.passages)

    def translated(self, translations: Iterable[str]) -> bytes:
        """Return the document with the translations of its ``texts``."""
        stream = io.BytesIO()
        rest = iter(translations)
        with zipfile.ZipFile(stream, "w") as archive:
            for member, content in self._members:
                if part := self._parts.get(member.filename):
                    content = part.translated(rest)
                # A copy, because writestr changes the entry that it is given.
                archive.writestr(copy(member), content, member.compress_type)
        return stream.getvalue()


class _Part:
    """An XML part of a document, and the ``texts`` to translate in it."""

    def __init__(self, xml: bytes, name: str) -> None:
        self._xml = xml
        with failures_of_file(name, "not XML in UTF-8; save the document again"):
            xml.decode()
            paragraphs = _ParagraphReader(xml).paragraphs
        # Each passage with the texts of each of its fragments.
        self._passages = list[tuple[Passage, list[list[_Text]]]]()
        for paragraph in paragraphs:
            for texts in filter(None, paragraph.passages):
                self._add(texts)
        self.passages = [passage for passage, _ in self._passages]
        self.texts = texts_of(self.passages)

    def _add(self, texts: list[_Text]) -> None:
        """Add the passage that consists of some texts."""
        runs = [list(group) for _, group in groupby(texts, lambda text: text.place)]
        sizes = Counter[_Place]()
        for text in texts:
            sizes[text.place] += text.end - text.start
        # The look of most of the text is plain, if possible of text that is in no further element
        # such as a link. Text that looks different is marked.
        plain = max(sizes, key=lambda place: (not place[0], sizes[place]))
        fragments = list[Fragment]()
        for run in runs:
            written = b"".join(self._xml[text.start : text.end] for text in run)
            (fragment,) = inline_items(written.decode(), _NO_MARKUP, ENTITY, _WRITTEN)
            assert isinstance(fragment, Fragment)
            is_plain = run[0].place == plain
            fragments.append(replace(fragment, kind="plain" if is_plain else "marked"))
        self._passages.append((Passage(fragments), runs))

    def translated(self, translations: Iterator[str]) -> bytes:
        """Return the translated part. Take the translations of ``texts`` from ``translations``."""
        edits = list[tuple[int, int, bytes]]()
        for passage, runs in self._passages:
            translated = passage.translated(translations)
            for fragment, text, run in zip(
                passage.fragments, translated, runs, strict=True
            ):
                if text != fragment.written:
                    edits += self._edits(run, text)
        edited = list[bytes]()
        end = 0
        for first, last, content in sorted(edits):
            edited += [self._xml[end:first], content]
            end = last
        return b"".join([*edited, self._xml[end:]])

    def _edits(self, run: list[_Text], text: str) -> Iterator[tuple[int, int, bytes]]:
        """Yield edits that put ``text`` into the first text of a run, and empty the others.

        An edit consists of the first and the last offset of bytes, and what replaces them.
        """
        first, *others = run
        tag = self._xml[first.tag : first.start]
        if text != text.strip() and not _KEEPS_BLANKS.search(tag):
            tag = tag[:-1] + b' xml:space="preserve">'
        yield first.tag, first.end, tag + text.encode()
        for other in others:
            yield other.start, other.end, b""


class _ParagraphReader:
    """Finds the texts of an XML part. A paragraph may be within another, as in a text box."""

    def __init__(self, xml: bytes) -> None:
        self.paragraphs = list[_Paragraph]()
        self._xml = xml
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._open_tags = list[int]()  # the offsets of the tags of the open elements
        self._open_paragraphs = list[_Paragraph]()
        self._properties = b""
        self._parser.Parse(xml, True)

    def _refuse_doctype(self, *_: object) -> None:
        raise ValueError("a document type declaration")

    def _start(self, full_name: str, attributes: dict[str, str]) -> None:
        offset = self._parser.CurrentByteIndex
        namespace, _, name = full_name.rpartition(" ")
        self._open_tags.append(offset)
        if namespace not in _NAMESPACES:
            return
        if name == "p":
            self._open_paragraphs.append(_Paragraph(len(self._open_tags)))
        elif not self._open_paragraphs:
            return
        elif name == "r":
            self._properties = b""
        elif name in _BREAKS:
            self._open_paragraphs[-1].passages.append([])
        elif name == "t":
            paragraph = self._open_paragraphs[-1]
            # The last two are the run and the text itself.
            elements = tuple(self._open_tags[paragraph.depth : -2])
            place = (elements, self._properties)
            text = _Text(offset, self._end_of_tag(offset), place=place)
            paragraph.passages[-1].append(text)

    def _end(self, full_name: str) -> None:
        offset = self._parser.CurrentByteIndex
        started = self._open_tags.pop()
        namespace, _, name = full_name.rpartition(" ")
        if namespace not in _NAMESPACES or not self._open_paragraphs:
            return
        texts = self._open_paragraphs[-1].passages[-1]
        if name == "p":
            self.paragraphs.append(self._open_paragraphs.pop())
        elif name == "rPr":
            properties = self._xml[self._end_of_tag(started) : offset]
            self._properties = _INVISIBLE.sub(b"", properties)
        elif name == "t" and texts:
            texts[-1].end = offset
            # Leave out an empty element, and one that has more than text, such as a comment.
            content = self._xml[texts[-1].start : offset]
            if offset <= started or not content or b"<" in content:
                texts.pop()

    def _end_of_tag(self, offset: int) -> int:
        tag = _START_TAG.match(self._xml, offset)
        assert tag is not None
        return tag.end()
