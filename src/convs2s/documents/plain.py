"""Find the paragraphs of plain text."""

import re
from collections.abc import Sequence
from itertools import groupby

from convs2s.documents.passages import Fragment, Passage, TextDocument

NARROWEST = 40
"""Minimum number of characters of the longest line of a paragraph that is wrapped.

The lines of a narrower one are titles, verses or items of a list.
"""

_LINE = re.compile(
    r"(?P<margin>[ \t>]*)(?P<mark>(?:[-*+•–]|\d{1,3}[.)])[ \t]+)?(?P<text>[^\n]*)\n?"
)


def read_plain_text(content: str) -> TextDocument:
    """Return the passages of plain text: a line, or several lines of a paragraph that is wrapped.

    A line goes on in the next one if the first word of the next line would not have fitted into it,
    where the longest line of the paragraph shows the width. An empty line, another margin, and the
    mark of an item, such as "-" or "2.", always begin a passage.
    """
    items = list[str | Passage]()
    lines = [line for line in _LINE.finditer(content) if line[0]]
    for has_text, group in groupby(lines, lambda line: line["text"].strip() != ""):
        if has_text:
            items += _passages(list(group))
        else:
            items += [line[0] for line in group]
    return TextDocument(items)


def _passages(paragraph: Sequence[re.Match[str]]) -> list[str | Passage]:
    """Return the passages in lines with text, and the strings between the passages."""
    width = max(len(line[0].rstrip()) for line in paragraph)
    items = list[str | Passage]()
    text = ""
    breaks = list[str]()
    previous = paragraph[0]
    for line in paragraph:
        line_start = line["margin"] + (line["mark"] or "")
        previous_end = previous[0][len(previous[0].rstrip()) :]
        begins_paragraph = line is previous
        if not begins_paragraph and _goes_on(previous, line, width, not breaks):
            text += "\n"
            breaks.append(previous_end + line_start)
        else:
            if not begins_paragraph:
                items += [_passage(text, breaks), previous_end]
            items.append(line_start)
            text = ""
            breaks = []
        text += line["text"].rstrip()
        previous = line
    items += [_passage(text, breaks), previous[0][len(previous[0].rstrip()) :]]
    return items


def _goes_on(
    line: re.Match[str],
    following: re.Match[str],
    width: int,
    is_first: bool,
) -> bool:
    """Return whether the text of a line goes on in the following line.

    The margin may change only after the first line of a passage (``is_first``).
    """
    first_word = following["text"].split()[0]
    fits = len(line[0].rstrip()) + 1 + len(first_word) <= width
    margins = [line["margin"], following["margin"]]
    are_quoted_alike = margins[0].count(">") == margins[1].count(">")
    has_same_margin = margins[0] == margins[1] or (is_first and are_quoted_alike)
    return width >= NARROWEST and not fits and has_same_margin and not following["mark"]


def _passage(text: str, breaks: Sequence[str]) -> Passage:
    return Passage([Fragment(text, text)], breaks=breaks)
