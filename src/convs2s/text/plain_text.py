"""Tell lines of plain text from documents, whose markup must not be translated."""

import re
from collections.abc import Callable
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.compressed import decompressed_file
from convs2s.files.limits import LONGEST_LINE_OF_FILES_BYTES

JUDGED_LINES = 100
"""Number of lines at the beginning of a text that are searched for signs of a document."""

MARKUP_SUFFIXES = frozenset(
    {".docx", ".htm", ".html", ".markdown", ".md", ".po", ".pot", ".srt", ".vtt"}
)
"""Suffixes of documents with markup, which `convs2s translate-document` reads."""

_KINDS = {
    "a Word document or another zip archive": rb"PK\x03\x04",
    "a PDF document": rb"%PDF-\d",
    "a document of old Word or Excel": rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "an RTF document": rb"\{\\rtf\d",
    "an image": rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a",
    "WebVTT subtitles": rb"WEBVTT(?:[ \t].*)?\r?\n?$",
    "a part of a page in HTML": rb"\s*<(?:head|body|p|div|h[1-6]|ul|ol|table)(?:\s[^<>]*)?>",
    "XML": rb"\s*<\?xml\s",
}
"""What the first line of a document matches."""

_KINDS_OF_LINES = {
    "subtitles": rb"(?:\d+:)?\d\d:\d\d[.,]\d{3}[ \t]*-->[ \t]*(?:\d+:)?\d\d:\d\d[.,]\d{3}",
    "gettext's messages (po)": rb'(?:msgid|msgstr(?:\[\d\])?)[ \t]+".*"\s*$',
    "a page in HTML": rb"\s*<(?:!doctype\s+html|html)\b[^<>]*>",
}
"""What a further line at the beginning of a document may match as well."""


class PlainLines:
    """Reads lines of plain text, and refuses documents: what `readline` of a stream returns."""

    def __init__(self, readline: Callable[[int], bytes], name: str) -> None:
        """Read by the method ``readline`` of a stream, which messages call ``name``."""
        self._readline = readline
        self._name = name
        self._count = 0

    def __call__(self, limit: int) -> bytes:
        """Return the next line, as the method of the stream does.

        Raises:
            UserError: the line shows that the stream is a document.
        """
        line = self._readline(limit)
        if self._count < JUDGED_LINES:
            self._count += 1
            self._judge(line)
        return line

    def _judge(self, line: bytes) -> None:
        kinds = _KINDS_OF_LINES
        if self._count == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            kinds = _KINDS | _KINDS_OF_LINES
        for kind, pattern in kinds.items():
            if re.match(pattern, line, re.IGNORECASE):
                raise UserError(
                    f"{self._name}:{self._count}: is {kind}, not plain text with a "
                    f"sentence on each line: {_REMEDY}"
                )


_REMEDY = (
    "translate html, md, srt, vtt, docx and po by `convs2s translate-document`, and save other "
    "documents as text first"
)


def check_plain_text(path: Path) -> None:
    """Check that a file is not a document, by its suffix and its first lines.

    Raises:
        UserError: it is a document, or cannot be read.
    """
    if path.suffix.lower() in MARKUP_SUFFIXES:
        raise UserError(
            f"{path}: its lines are not sentences: {_REMEDY}; as plain text, give it to the "
            "standard input"
        )
    with decompressed_file(path) as stream:
        readline = PlainLines(stream.readline, str(path))
        for _ in range(JUDGED_LINES):
            readline(LONGEST_LINE_OF_FILES_BYTES)
