"""A table of text as Markdown, LaTeX, CSV or SVG."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import pandas as pd
from tabulate import SEPARATING_LINE, tabulate

_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "`": r"\textasciigrave{}",
        "^": r"\textasciicircum{}",
        "|": r"\textbar{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "†": r"$\dagger$",
    }
)

_SIZE = 5.5  # points: of a drawing's letters
_LETTER = 0.602 * _SIZE  # points: the width of each letter of the font
_LINE = 1.25 * _SIZE  # points: the height of a line
_LETTERS = 69  # how many of them a column of a paper has room for
_NARROWEST = 14
"""Letters: no word so long is broken, even if the table then is wider than it should be."""


Said = str | Mapping[str, str]
"""What a row has in a column: its text, or where that is of its values, the text of each by name.

It is printed once where it is the same of all values.
"""


@dataclass(frozen=True)
class Sheet:
    """A table with what stands around it."""

    headings: Sequence[str]  # lines above the table, the title first
    rows: Sequence[Mapping[str, Said]]  # the same columns in each row
    marked: str  # the column whose values bear the numbers of their rows' footnotes
    footnotes: Mapping[str, str] = field(default_factory=dict)
    """Columns printed as footnotes -> a format string."""
    joined: Mapping[str, str] = field(default_factory=dict)
    """A column -> the one printed in parentheses behind its values."""
    left_out: Sequence[str] = ()  # columns, or footnotes, that only CSV keeps
    shared: Mapping[str, str] = field(default_factory=dict)
    """Columns of the footnotes stated once where most rows have one text -> a format string."""

    @property
    def common(self) -> dict[str, dict[str, str]]:
        """What rows have in common: column -> value -> text, empty where they differ."""
        common = {}
        for column in (column for column in self.shared if column not in self.left_out):
            counts: dict[str, Counter[str]] = {}
            for row in self.rows:
                for value, text in _of_values(row[column]).items():
                    counts.setdefault(value, Counter())[text] += 1
            most = {value: texts.most_common(1)[0] for value, texts in counts.items()}
            common[column] = {
                value: text if 2 * count > counts[value].total() else ""
                for value, (text, count) in most.items()
            }
        return common

    @property
    def above(self) -> list[str]:
        """The lines above the printed table, the last of which says what its rows share."""
        stated = [
            self.shared[column].format(together(said))
            for column, said in self.common.items()
            if any(said.values())
        ]
        shared = [f"Unless a footnote says otherwise: {'; '.join(stated)}."] if stated else []
        return [*self.headings, *shared]

    @property
    def filled(self) -> list[str]:
        """The columns that have any text."""
        columns = self.rows[0] if self.rows else ()
        return [column for column in columns if any(row[column] for row in self.rows)]

    def printed(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the printed table's header, its rows, and its footnotes in order.

        Columns without any text are left out.
        """
        common = self.common
        unprinted = {*self.footnotes, *self.left_out, *self.joined.values()}
        header = [column for column in self.filled if column not in unprinted]
        printed, notes = [], list[str]()
        for row in self.rows:
            texts = {column: together(row[column]) for column in header}
            for column, behind in self.joined.items():
                texts |= {column: f"{row[column]} ({row[behind]})"} if row[behind] else {}
            stated = []
            for column, form in self.footnotes.items():
                usual = common.get(column, {})
                said = {
                    value: text if text != usual.get(value) else ""
                    for value, text in _of_values(row[column]).items()
                }
                if any(said.values()) and column not in self.left_out:
                    stated.append(form.format(together(said)))
            notes += [note for note in stated if note not in notes]
            numbers = ", ".join(map(str, sorted(notes.index(note) + 1 for note in stated)))
            texts[self.marked] += f" [{numbers}]" if numbers else ""
            printed.append(list(texts.values()))
        return header, printed, [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]


def together(said: Said) -> str:
    """Return as one text what is said of values, of some maybe nothing."""
    texts = _of_values(said)
    if len({*texts.values()}) <= 1:
        return next(iter(texts.values()), "")
    return "; ".join(f"{value}: {text}" for value, text in texts.items() if text)


def _of_values(said: Said) -> Mapping[str, str]:
    return ({"": said} if said else {}) if isinstance(said, str) else said


def markdown(sheet: Sheet) -> str:
    """Return the table as GitHub's Markdown; what stands in for the paper's data is set bold."""
    header, rows, notes = sheet.printed()
    title, *others = sheet.above
    # Without padding, so that one changed value is a change of one line.
    lines = [header, ["---"] * len(header), *rows]
    cells = ["| " + " | ".join(value.replace("|", "\\|") for value in row) + " |" for row in lines]
    above = [f"**{line}**" if line.startswith("STAND-IN") else line for line in others]
    return "\n\n".join([f"# {title}", *above, "\n".join(cells), *notes]) + "\n"


def latex(sheet: Sheet) -> str:
    """Return the table as a LaTeX table environment, footnotes below; needs no package."""
    header, rows, notes = sheet.printed()
    caption = " ".join(line if line.endswith(".") else f"{line}." for line in sheet.above)
    escaped = [[text.translate(_LATEX) for text in row] for row in [header, *rows]]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption.translate(_LATEX)}}}",
        tabulate(escaped[1:], escaped[0], tablefmt="latex_raw", disable_numparse=True),
        *(rf"\par\footnotesize {note.translate(_LATEX)}" for note in notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def csv(sheet: Sheet) -> str:
    """Return the whole table as comma-separated values with a header line."""
    rows = [{column: together(said) for column, said in row.items()} for row in sheet.rows]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")


def svg(sheet: Sheet) -> str:
    """Return the printed table as a drawing, as wide as a paper's column where words allow that.

    It is text of one width for each letter, so that every viewer aligns it alike.
    """
    header, rows, notes = sheet.printed()
    widths = fitted(list(zip(header, *rows, strict=True)), _LETTERS)
    across = max(sum(widths) + 2 * len(widths) - 2, _LETTERS)
    # The header is a row like any other: tabulate pads columns below headers of its own.
    row_lines = [line for row in (header, *rows) for line in (row, SEPARATING_LINE)]
    body = tabulate(row_lines[:-1], tablefmt="simple", disable_numparse=True, maxcolwidths=widths)
    above, below = (
        tabulate(
            [[line] for line in lines], tablefmt="plain", maxcolwidths=across, disable_numparse=True
        )
        for lines in (sheet.above, notes)
    )
    lines = "\n\n".join((above, body, below)).splitlines()
    width, height = (across + 2) * _LETTER, (len(lines) + 1) * _LINE
    drawn = "\n".join(
        f'<text x="{_LETTER:.2f}" y="{number * _LINE:.2f}">{escape(line, quote=False)}</text>'
        for number, line in enumerate(lines, start=1)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.1f}pt" height="{height:.1f}pt" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" xml:space="preserve" style="white-space: pre" '
        f'font-family="DejaVu Sans Mono, monospace" font-size="{_SIZE}">\n{drawn}\n</svg>\n'
    )


def fitted(columns: Sequence[Sequence[str]], letters: int) -> list[int]:
    """Return the width of each column in letters, the widest narrowed until all fit."""
    words = [[word for text in column for word in text.split()] for column in columns]
    least = [min(_NARROWEST, max(map(len, column), default=1)) for column in words]
    widths = [max(1, *map(len, column)) for column in columns]
    while sum(widths) + 2 * len(widths) - 2 > letters and widths != least:
        spare = [width - floor and width for width, floor in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return widths


FORMATS = {".md": markdown, ".tex": latex, ".csv": csv, ".svg": svg}
