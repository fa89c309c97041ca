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
"""Kind of a document -> a pattern that its first line matches."""

_KINDS_OF_LINES = {
    "subtitles": rb"(?:\d+:)?\d\d:\d\d[.,]\d{3}[ \t]*-->[ \t]*(?:\d+:)?\d\d:\d\d[.,]\d{3}",
    "gettext's messages (po)": rb'(?:msgid|msgstr(?:\[\d\])?)[ \t]+".*"\s*$',
    "a page in HTML": rb"\s*<(?:!doctype\s+html|html)\b[^<>]*>",
}
"""Kind of a document -> a pattern that one of its first lines matches, not always the first."""

_REMEDY = (
    "translate html, md, srt, vtt, docx and po by `convs2s translate-document`, and save other "
    "documents as text first"
)


class PlainLines:
    """A substitute for the method `readline` of a stream, which refuses documents."""

    def __init__(self, readline: Callable[[int], bytes], name: str) -> None:
        """Take the method of the stream, and the name of the stream for messages."""
        self._readline = readline
        self._name = name
        self._count = 0

    def __call__(self, limit: int) -> bytes:
        """Return the next line of at most ``limit`` bytes, as the method of the stream does.

        Raises:
            UserError: the line shows that the stream is a document.
        """
        line = self._readline(limit)
        if self._count < JUDGED_LINES:
            self._count += 1
            self._judge(line)
        return line

    def _judge(self, line: bytes) -> None:
        """Raise a UserError if the line is that of a document."""
        kinds = _KINDS_OF_LINES
        if self._count == 1:
            # A byte order mark in UTF-8.
            line = line.removeprefix(b"\xef\xbb\xbf")
            kinds = _KINDS | _KINDS_OF_LINES
        for kind, pattern in kinds.items():
            if re.match(pattern, line, re.IGNORECASE):
                raise UserError(
                    f"{self._name}:{self._count}: is {kind}, not plain text with a "
                    f"sentence on each line: {_REMEDY}"
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
