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
        common: dict[str, dict[str, str]] = {}
        for column in self.shared.keys() - self.left_out:
            texts: dict[str, Counter[str]] = {}
            for row in self.rows:
                for value, text in _of_values(row[column]).items():
                    texts.setdefault(value, Counter())[text] += 1
            common[column] = {}
            for value, counts in texts.items():
                text, count = counts.most_common(1)[0]
                common[column][value] = text if 2 * count > counts.total() else ""
        return common

    @property
    def above(self) -> list[str]:
        """The lines above the printed table, the last of which says what its rows share."""
        common = self.common
        stated = []
        for column, form in self.shared.items():
            if any(common.get(column, {}).values()):
                stated.append(form.format(together(common[column])))
        shared = f"Unless a footnote says otherwise: {'; '.join(stated)}."
        return [*self.headings, shared] if stated else list(self.headings)

    @property
    def filled(self) -> list[str]:
        """The columns that have any text."""
        filled = {column for row in self.rows for column, said in row.items() if said}
        return [column for column in self.rows[0] if column in filled] if self.rows else []

    def printed(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the printed table's header, its rows, and its footnotes in order.

        Columns without any text are left out.
        """
        common = self.common
        unprinted = {*self.footnotes, *self.left_out, *self.joined.values()}
        header = [column for column in self.filled if column not in unprinted]
        printed = []
        numbers: dict[str, int] = {}  # of footnotes, each once, as rows share them
        for row in self.rows:
            texts = {}
            for column in header:
                texts[column] = together(row[column])
            for column, behind in self.joined.items():
                if row[behind]:
                    texts[column] = f"{row[column]} ({row[behind]})"
            of_row = []
            for note in self._notes_of(row, common):
                of_row.append(numbers.setdefault(note, len(numbers) + 1))
            if of_row:
                texts[self.marked] += f" [{', '.join(map(str, sorted(of_row)))}]"
            printed.append(list(texts.values()))
        return header, printed, [f"[{number}] {note}" for note, number in numbers.items()]

    def _notes_of(
        self, row: Mapping[str, Said], common: Mapping[str, Mapping[str, str]]
    ) -> list[str]:
        """Return a row's footnotes: what is said of it, but for what most rows have in common."""
        notes = []
        for column, form in self.footnotes.items():
            if column in self.left_out:
                continue
            usual = common.get(column, {})
            said: dict[str, str] = {}
            for value, text in _of_values(row[column]).items():
                said[value] = "" if text == usual.get(value) else text
            if any(said.values()):
                notes.append(form.format(together(said)))
        return notes


def together(said: Said) -> str:
    """Return as one text what is said of values, of some maybe nothing."""
    texts = _of_values(said)
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "")
    return "; ".join(f"{value}: {text}" for value, text in texts.items() if text)


def _of_values(said: Said) -> Mapping[str, str]:
    if isinstance(said, str):
        return {"": said} if said else {}
    return said


def markdown(sheet: Sheet) -> str:
    """Return the table as GitHub's Markdown; what stands in for the paper's data is set bold."""
    header, rows, notes = sheet.printed()
    title, *others = sheet.above
    parts = [f"# {title}"]
    for line in others:
        parts.append(f"**{line}**" if line.startswith("STAND-IN") else line)
    # Without padding, so that one changed value is a change of one line.
    lines = []
    for cells in (header, ["---"] * len(header), *rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n\n".join([*parts, "\n".join(lines), *notes]) + "\n"


def latex(sheet: Sheet) -> str:
    """Return the table as a LaTeX table environment, footnotes below; needs no package."""
    header, rows, notes = sheet.printed()
    caption = " ".join(line if line.endswith(".") else f"{line}." for line in sheet.above)
    escaped = []
    for row in rows:
        escaped.append([text.translate(_LATEX) for text in row])
    names = [text.translate(_LATEX) for text in header]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption.translate(_LATEX)}}}",
        tabulate(escaped, names, tablefmt="latex_raw", disable_numparse=True),
    ]
    for note in notes:
        lines.append(rf"\par\footnotesize {note.translate(_LATEX)}")
    lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def csv(sheet: Sheet) -> str:
    """Return the whole table as comma-separated values with a header line."""
    texts = pd.DataFrame(sheet.rows).map(together)
    return texts.to_csv(index=False, lineterminator="\n")


def svg(sheet: Sheet) -> str:
    """Return the printed table as a drawing, as wide as a paper's column where words allow that.

    It is text of one width for each letter, so that every viewer aligns it alike.
    """
    header, rows, notes = sheet.printed()
    widths = fitted(list(zip(header, *rows, strict=True)), _LETTERS)
    across = max(_letters_across(widths), _LETTERS)
    # The header is a row like any other: tabulate pads columns below headers of its own.
    ruled: list[object] = [header]
    for row in rows:
        ruled += [SEPARATING_LINE, row]
    body = tabulate(ruled, tablefmt="simple", disable_numparse=True, maxcolwidths=widths)
    text = "\n\n".join([_wrapped(sheet.above, across), body, _wrapped(notes, across)])
    lines = text.splitlines()
    drawn = []
    for number, line in enumerate(lines, start=1):
        place = f'x="{_LETTER:.2f}" y="{number * _LINE:.2f}"'
        drawn.append(f"<text {place}>{escape(line, quote=False)}</text>")
    width = (across + 2) * _LETTER
    height = (len(lines) + 1) * _LINE
    shown = "\n".join(drawn)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.1f}pt" height="{height:.1f}pt" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" xml:space="preserve" style="white-space: pre" '
        f'font-family="DejaVu Sans Mono, monospace" font-size="{_SIZE}">\n{shown}\n</svg>\n'
    )


def _wrapped(lines: Sequence[str], width: int) -> str:
    """Return lines, each broken at its spaces to a number of letters."""
    rows = [[line] for line in lines]
    text: str = tabulate(rows, tablefmt="plain", maxcolwidths=width, disable_numparse=True)
    return text


def _letters_across(widths: Sequence[int]) -> int:
    """Return how many letters wide a table is, with two spaces between its columns."""
    return sum(widths) + 2 * (len(widths) - 1)


def fitted(columns: Sequence[Sequence[str]], letters: int) -> list[int]:
    """Return the width of each column in letters, the widest narrowed until all fit."""
    widths = []
    least = []  # of each column: room for its longest word, but no more than is reasonable
    for column in columns:
        widths.append(max(1, *map(len, column)))
        words = " ".join(column).split()
        least.append(min(_NARROWEST, max(map(len, words), default=1)))
    while _letters_across(widths) > letters and widths != least:
        narrowable = [place for place, width in enumerate(widths) if width > least[place]]
        widest = max(narrowable, key=widths.__getitem__)
        widths[widest] -= 1
    return widths


FORMATS = {".md": markdown, ".tex": latex, ".csv": csv, ".svg": svg}
