"""Transcripts of TED talks as IWSLT has them (``train.tags.de-en.de``).

Among the lines that somebody says stand lines about the talk. Of those the title and the
description are text, translated like all other; an address, numbers, keywords and names are not.
"""

import re
from collections.abc import Iterable, Iterator

_ABOUT = re.compile(r"\s*</?(?:doc|url|keywords|speaker|talkid|reviewer|translator)\b[^<>]*>")
_TAG_OF_TEXT = re.compile(r"</?(?:title|description)>")


def is_of_talks(name: str) -> bool:
    """Tell such a file by its name."""
    return name.startswith("train.tags.")


def spoken_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield what is text in a transcript: lines without tags, those about the talk left out."""
    for line in lines:
        if not _ABOUT.match(line):
            yield _TAG_OF_TEXT.sub("", line).strip(" \t\r")
