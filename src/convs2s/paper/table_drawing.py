"""A table as a drawing: text of one width for each letter, so that every viewer aligns it alike."""

import textwrap
from collections.abc import Sequence
from io import StringIO
from itertools import zip_longest

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from convs2s.paper.plotting import COLUMN_WIDTH, style

_SIZE = 5.5
"""Points: of the letters."""
_LETTER = 0.602 * _SIZE / 72
"""Inches: the width of each letter of the font."""
_LINE = 1.25 * _SIZE / 72
"""Inches: the height of a line."""
_NARROWEST = 14
"""Letters: no word so long is broken, even if the table then is wider than it should be."""
_FONT = "DejaVu Sans Mono"

Line = list[tuple[int, str]]
"""Texts of a line, each with its place in letters from the left."""


def svg(
    headings: Sequence[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> str:
    """Return a table as SVG, as wide as a column of a paper where its words allow that.

    Args:
        headings: lines above the table, the title first.
        header: of the columns.
        rows: of the table, a text for each column.
        notes: its footnotes in order.
    """
    widths = fitted(list(zip(header, *rows, strict=True)), int(COLUMN_WIDTH / _LETTER) - 2)
    across = max(sum(widths) + len(widths) - 1, int(COLUMN_WIDTH / _LETTER) - 2)
    numbered = [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]
    above, below = (
        [line for text in texts for line in _row([text], [across])]
        for texts in (headings, numbered)
    )
    wrapped = [_row(row, widths) for row in rows]
    gap: list[Line] = [[]] if any(len(lines) > 1 for lines in wrapped) else []
    body = [line for lines in wrapped for line in (*lines, *gap)]
    return _drawn([block for block in (above, _row(header, widths), body, below) if block], across)


def fitted(columns: Sequence[Sequence[str]], letters: int) -> list[int]:
    """Return the width of each column in letters, the widest narrowed until all fit side by side.

    Args:
        columns: the texts of each.
        letters: room for all of them, with a blank between two.
    """
    words = [[word for text in column for word in text.split()] for column in columns]
    least = [min(_NARROWEST, max(map(len, column), default=1)) for column in words]
    widths = [max(1, *map(len, column)) for column in columns]
    while sum(widths) + len(widths) - 1 > letters and widths != least:
        spare = [width - floor and width for width, floor in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return widths


def _row(texts: Sequence[str], widths: Sequence[int]) -> list[Line]:
    """Return the lines of a row, each text wrapped to the width of its column."""
    wrapped = [textwrap.wrap(text, width) for text, width in zip(texts, widths, strict=True)]
    places = [sum(widths[:number]) + number for number in range(len(widths))]
    return [
        [(place, text) for place, text in zip(places, parts, strict=True) if text]
        for parts in zip_longest(*wrapped)
    ]


def _drawn(blocks: Sequence[Sequence[Line]], across: int) -> str:
    """Return blocks of lines as SVG, a rule between two."""
    width = (across + 2) * _LETTER
    height = (sum(map(len, blocks)) + len(blocks)) * _LINE
    with style(size=_SIZE):
        figure, top, left = Figure(figsize=(width, height)), 0.5 * _LINE, _LETTER / width
        for number, block in enumerate(blocks):
            if number:
                at = 1 - (top - 0.35 * _LINE) / height
                figure.add_artist(Line2D([left, 1 - left], [at, at], color="black", linewidth=0.5))
            for line in block:
                for place, text in line:
                    at = (1 + place) * _LETTER / width
                    figure.text(at, 1 - top / height, text, family=_FONT, va="top")
                top += _LINE
            top += 0.6 * _LINE
        drawn = StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()
