"""Find the text of subtitles: SubRip (srt) and WebVTT (vtt). All else is kept byte for byte."""

import re
from collections.abc import Iterator
from itertools import pairwise

from convs2s.documents.passages import (
    ENTITY,
    Passage,
    TextDocument,
    inline_items,
)

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TIMES = re.compile(r"[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]*-->")
_NUMBER = re.compile(r"\s*\d+\s*")

# Tags like those of HTML, times of WebVTT, and positions of SubStation Alpha, which some players
# read.
_MARKUP = re.compile(
    r"(?P<closes></)[a-z]*>|(?P<opens><[a-z])[^>]*>|<[\d:.]+>|\{\\[^}]*\}", re.I
)

_SPEAKER = re.compile(
    rf"[ \t]*(?:(?:{_MARKUP.pattern})[ \t]*)*[-–—][ \t]*", re.IGNORECASE
)
"""The beginning of a line at which another person speaks."""


def read_srt(content: str) -> TextDocument:
    """Return the passages of SubRip subtitles.

    After the first line with times, all lines are text except those with times, and the numbers
    before them.
    """
    lines = _LINE.findall(content)
    is_text = list[bool]()
    has_begun = False
    for line, following in pairwise([*lines, ""]):
        is_time = _TIMES.match(line) is not None
        is_number = _NUMBER.fullmatch(line) is not None and _TIMES.match(following)
        has_begun = has_begun or is_time
        is_text.append(has_begun and not is_time and not is_number)
    return _subtitles(lines, is_text, None)


def read_vtt(content: str) -> TextDocument:
    """Return the passages of WebVTT subtitles: the lines from a time to the next empty line."""
    lines = _LINE.findall(content)
    is_text = list[bool]()
    is_cue = False
    for line in lines:
        is_time = _TIMES.match(line) is not None
        is_cue = (is_cue or is_time) and line.strip() != ""
        is_text.append(is_cue and not is_time)
    return _subtitles(lines, is_text, ENTITY)


def _subtitles(
    lines: list[str],
    is_text: list[bool],
    spelling: re.Pattern[str] | None,
) -> TextDocument:
    """Return the passages in the lines that are text. ``spelling`` is as in `inline_items`."""
    items = list[str | Passage]()
    for raw, is_spoken in _utterances(lines, is_text):
        if is_spoken:
            written = {ord("<"): "&lt;", ord("&"): "&amp;"} if spelling else {}
            items.append(Passage(inline_items(raw, _MARKUP, spelling, written)))
        else:
            items.append(raw)
    return TextDocument(items)


def _utterances(lines: list[str], is_text: list[bool]) -> Iterator[tuple[str, bool]]:
    """Yield what each person says in a subtitle, with True, and all other strings, with False."""
    said = ""
    for line, is_spoken in zip(lines, is_text, strict=True):
        is_spoken = is_spoken and line.strip() != ""
        speaker = _SPEAKER.match(line) if is_spoken else None
        if said and (speaker or not is_spoken):
            yield said, True
            said = ""
        if speaker:
            yield speaker[0], False
            line = line[speaker.end() :]
        if is_spoken:
            said += line
        else:
            yield line, False
    if said:
        yield said, True
