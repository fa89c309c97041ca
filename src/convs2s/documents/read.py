"""Read a document of any format."""

import codecs
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from convs2s.documents.html import read_html
from convs2s.documents.passages import Passage, TranslatableDocument
from convs2s.documents.plain import read_plain_text
from convs2s.documents.subtitles import read_srt, read_vtt
from convs2s.errors import UserError, failures_of_file
from convs2s.files.compressed import open_input
from convs2s.files.encodings import encoding_advice
from convs2s.files.limits import ENCODING_SAMPLE_BYTES, LARGEST_DOCUMENT_BYTES
from convs2s.files.text import BYTE_ORDER_MARK

_TEXTS = {
    ".txt": read_plain_text,
    ".srt": read_srt,
    ".vtt": read_vtt,
    ".html": read_html,
    ".htm": read_html,
}
"""The formats that need no further package: suffix -> the function that reads it."""

SERVED = (*_TEXTS, ".docx")
"""The suffixes of the formats that a server reads.

The time to read a document of these formats grows with its size alone.
"""

SUFFIXES = (*SERVED, ".md", ".markdown", ".po", ".pot")
"""The suffixes of all formats."""

_CHARSET = re.compile(
    rb"""<meta\b[^<>]*\bcharset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE
)
_CHARSET_BYTES = 1024
"""Number of bytes at the beginning of HTML that must state its encoding, by its standard."""

_PO_CHARSET = re.compile(rb'"Content-Type:[^"\n]*\bcharset=([\w.:-]+)', re.IGNORECASE)


class Document(Protocol):
    """A document, whose ``texts`` are to be translated."""

    texts: list[str]
    passages: list[Passage]

    def translated(self, translations: Iterable[str]) -> bytes:
        """Return the document with the translations of its texts in their places."""


class _Encoded:
    """A document as text, in the encoding of its file."""

    def __init__(
        self,
        document: TranslatableDocument,
        encoding: str,
        mark: str,
        errors: str,
    ) -> None:
        """Take a document, and how to write it.

        ``mark`` is the byte order mark of the file, or empty. ``errors`` tells ``str.encode`` what
        to do with characters that the encoding lacks.
        """
        self._document = document
        self._encoding = encoding
        self._mark = mark
        self._errors = errors
        self.texts = document.texts
        self.passages = document.passages

    def translated(self, translations: Iterable[str]) -> bytes:
        text = self._mark + self._document.translated(translations)
        return text.encode(self._encoding, self._errors)


def read_document(path: Path) -> Document:
    """Read a document. The suffix of its name tells the format.

    Raises:
        UserError: the format is unknown, or the file is missing, too large, or not of the format.
    """
    with open_input(path) as stream:
        content = stream.read(LARGEST_DOCUMENT_BYTES + 1)
    return document_of(content, path)


def document_of(
    content: bytes,
    path: Path,
    largest: int = LARGEST_DOCUMENT_BYTES,
) -> Document:
    """Return the document in a file's content.

    The content may have at most ``largest`` bytes, also after it is unpacked.

    Raises:
        UserError: as for ``read_document``.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(
            f"{path}: unknown kind of document: expected a name that ends in "
            f"{', '.join(SUFFIXES)}"
        )
    if len(content) > largest:
        raise UserError(f"{path}: more than {largest:,} bytes: split the document")
    if suffix == ".docx":
        from convs2s.documents.word import WordDocument

        return WordDocument(content, str(path), largest)
    encoding = _encoding(content, suffix, path)
    text = _decoded(content, encoding, path)
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    text = text.removeprefix(mark)
    # HTML can write the characters that its encoding lacks as numbers, such as &#8364;.
    errors = "xmlcharrefreplace" if suffix in (".html", ".htm") else "strict"
    return _Encoded(_read(text, suffix, path), encoding, mark, errors)


def _read(
    text: str,
    suffix: str,
    path: Path,
) -> TranslatableDocument:
    """Return the document in a text. Some formats need packages, which are imported here."""
    if suffix in (".md", ".markdown"):
        from convs2s.documents.markdown import read_markdown

        return read_markdown(text)
    if suffix in (".po", ".pot"):
        from convs2s.documents.po import Catalogue

        with failures_of_file(path, "not a catalogue of gettext"):
            return Catalogue(text)
    return _TEXTS[suffix](text)


def _encoding(
    content: bytes,
    suffix: str,
    path: Path,
) -> str:
    """Return the encoding that a document states, or UTF-8 if it states none."""
    stated = None
    if suffix in (".html", ".htm") and not content.startswith(codecs.BOM_UTF8):
        stated = _CHARSET.search(content[:_CHARSET_BYTES])
    if suffix in (".po", ".pot"):
        stated = _PO_CHARSET.search(content)
    if stated is None:
        return "utf-8"
    name = stated[1].decode("ascii")
    if name == "CHARSET":  # the placeholder in gettext's templates
        return "utf-8"
    try:
        codec = codecs.lookup(name)
    except LookupError:
        raise UserError(
            f"{path}: states the unknown encoding {name[:40]!r}: convert it to UTF-8"
        ) from None
    # By the standard of HTML, both names mean Windows-1252, which has more characters.
    return "cp1252" if codec.name in ("iso8859-1", "ascii") else codec.name


def _decoded(
    content: bytes,
    encoding: str,
    path: Path,
) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        start = content.rfind(b"\n", 0, error.start) + 1
        advice = encoding_advice(content[start : start + ENCODING_SAMPLE_BYTES])
        raise UserError(
            f"{path}:{line}: not {encoding.upper()}: byte 0x{content[error.start]:02x}; {advice}"
        ) from None
