"""A table of text as Markdown, LaTeX, CSV or SVG."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd
from tabulate import SEPARATING_LINE, tabulate

from convs2s.scoring.reports.layout import text_templates

_LETTERS = 69  # how many letters fit side by side into a column of a paper
_NARROWEST = 14
"""A table's column is at least this many letters wide, or as wide as its longest word if shorter.

So no word of at most this length is broken. The drawing may become wider than `_LETTERS`.
"""


CellText = str | Mapping[str, str]
"""The content of a row in a column: one text, or a mapping with a text for each value of the row.

A row has a value for each of the paper's columns, such as BLEU and perplexity. The keys of the
mapping are the names of these columns. `as_one_text` says how a mapping is printed.
"""


@dataclass(frozen=True)
class Sheet:
    """A table as text, with its headings and footnotes. All rows have the same columns."""

    headings: Sequence[str]  # lines above the table, the title first
    rows: Sequence[Mapping[str, CellText]]  # column -> content
    marked: str  # the column in which the numbers of a row's footnotes follow the text
    footnotes: Mapping[str, str] = field(default_factory=dict)
    """Columns that are printed as footnotes -> the format string of the footnote."""
    joined: Mapping[str, str] = field(default_factory=dict)
    """Column -> the column that is printed in parentheses after its text."""
    left_out: Sequence[str] = ()  # columns and footnotes that only CSV has
    shared: Collection[str] = ()
    """Columns of ``footnotes`` whose text is printed once above the table if most rows have it.

    Then only rows with another text have a footnote for the column.
    """

    @cached_property
    def common(self) -> dict[str, dict[str, str]]:
        """The texts that most rows share: column -> name of a value -> text.

        The columns are those of ``shared`` that are not left out. A text is shared if more than
        half of the rows that have the value have this text. Without such a text, the text is "".
        """
        common: dict[str, dict[str, str]] = {}
        for column in set(self.shared).difference(self.left_out):
            counts_of: dict[str, Counter[str]] = {}  # name of a value -> its texts
            for row in self.rows:
                for value, text in _texts_by_value(row[column]).items():
                    counts_of.setdefault(value, Counter())[text] += 1
            common[column] = {}
            for value, counts in counts_of.items():
                text, count = counts.most_common(1)[0]
                common[column][value] = text if 2 * count > counts.total() else ""
        return common

    @property
    def above(self) -> list[str]:
        """The lines above the printed table; the last one states the texts that most rows share."""
        stated = []
        for column in self.shared:
            texts = self.common.get(column, {})
            if any(texts.values()):
                stated.append(self.footnotes[column].format(as_one_text(texts)))
        if not stated:
            return list(self.headings)
        shared = f"Unless a footnote says otherwise: {'; '.join(stated)}."
        return [*self.headings, shared]

    @property
    def filled(self) -> list[str]:
        """The columns that have a text in at least one row, in the order of the table."""
        columns = self.rows[0] if self.rows else ()
        return [column for column in columns if any(row[column] for row in self.rows)]

    def printed(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the header of the printed table, its rows, and its numbered footnotes.

        Columns without any text are left out. Rows with the same footnote share its number.
        """
        unprinted = {*self.footnotes, *self.left_out, *self.joined.values()}
        header = [column for column in self.filled if column not in unprinted]
        printed = []
        numbers: dict[str, int] = {}  # footnote -> its number, from 1
        for row in self.rows:
            texts = {}
            for column in header:
                texts[column] = as_one_text(row[column])
            for column, joined in self.joined.items():
                if row[joined]:
                    texts[column] += f" ({as_one_text(row[joined])})"
            row_numbers = []
            for note in self._notes_of(row):
                # A new footnote gets the next number.
                row_numbers.append(numbers.setdefault(note, len(numbers) + 1))
            if row_numbers:
                texts[self.marked] += f" [{', '.join(map(str, sorted(row_numbers)))}]"
            printed.append(list(texts.values()))
        notes = [f"[{number}] {note}" for note, number in numbers.items()]
        return header, printed, notes

    def _notes_of(self, row: Mapping[str, CellText]) -> list[str]:
        """Return a row's footnotes, without the texts that most rows share."""
        notes = []
        for column, form in self.footnotes.items():
            if column in self.left_out:
                continue
            shared_texts = self.common.get(column, {})
            own_texts: dict[str, str] = {}
            for value, text in _texts_by_value(row[column]).items():
                own_texts[value] = "" if text == shared_texts.get(value) else text
            if any(own_texts.values()):
                notes.append(form.format(as_one_text(own_texts)))
        return notes


def as_one_text(content: CellText) -> str:
    """Return the content of a row in a column as one text.

    If the texts of all values are equal, the text is printed once. Otherwise each text follows the
    name of its value, and empty texts are omitted.
    """
    texts = _texts_by_value(content)
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "")
    return "; ".join(f"{value}: {text}" for value, text in texts.items() if text)


def _texts_by_value(content: CellText) -> Mapping[str, str]:
    """Return name of a value -> its text; a single text for the whole row has the name ""."""
    if isinstance(content, str):
        return {"": content} if content else {}
    return content


def markdown(sheet: Sheet) -> str:
    """Return the table as GitHub's Markdown; the line that starts with STAND-IN is bold."""
    header, rows, notes = sheet.printed()
    title, *others = sheet.above
    parts = [f"# {title}"]
    for line in others:
        parts.append(f"**{line}**" if line.startswith("STAND-IN") else line)
    # The cells are not padded, so that a changed value changes only its own line.
    lines = []
    for cells in (header, ["---"] * len(header), *rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n\n".join([*parts, "\n".join(lines), *notes]) + "\n"


def latex(sheet: Sheet) -> str:
    """Return the table as a LaTeX table environment, with footnotes below. It needs no package."""
    header, rows, notes = sheet.printed()
    templates = text_templates("convs2s.paper")
    # The template replaces the characters that LaTeX reads as commands.
    templates.filters["translate"] = lambda text, signs: text.translate(
        str.maketrans(signs)
    )
    return templates.get_template("table.tex.j2").render(
        above=sheet.above, header=header, rows=rows, notes=notes
    )


def csv(sheet: Sheet) -> str:
    """Return the table as comma-separated values with a header line; no column is left out."""
    texts = pd.DataFrame(sheet.rows).map(as_one_text)
    return texts.to_csv(index=False, lineterminator="\n")


def svg(sheet: Sheet) -> str:
    """Return the printed table as an SVG drawing.

    It is as wide as a column of a paper, or wider if the columns cannot be narrowed that far. The
    font is monospaced, so that every viewer aligns the columns in the same way.
    """
    header, rows, notes = sheet.printed()
    widths = fitted(list(zip(header, *rows, strict=True)), _LETTERS)
    across = max(_letters_across(widths), _LETTERS)  # width of the drawing in letters
    # The header is passed as a row, because tabulate pads the columns below a header argument.
    ruled: list[object] = [header]  # the header, then a line and a row for each row
    for row in rows:
        ruled += [SEPARATING_LINE, row]
    body = tabulate(
        ruled, tablefmt="simple", disable_numparse=True, maxcolwidths=widths
    )
    text = "\n\n".join([_wrapped(sheet.above, across), body, _wrapped(notes, across)])
    template = text_templates("convs2s.paper").get_template("table.svg.j2")
    return template.render(lines=text.splitlines(), across=across)


def _wrapped(lines: Sequence[str], width: int) -> str:
    """Return the lines as one text, each wrapped at spaces to at most ``width`` letters."""
    rows = [[line] for line in lines]
    text: str = tabulate(
        rows, tablefmt="plain", maxcolwidths=width, disable_numparse=True
    )
    return text


def _letters_across(widths: Sequence[int]) -> int:
    """Return the width of a table in letters, with two spaces between its columns."""
    return sum(widths) + 2 * (len(widths) - 1)


def fitted(columns: Sequence[Sequence[str]], letters: int) -> list[int]:
    """Return the width of each column, in letters, so that the table has at most ``letters``.

    The widest column is narrowed by one letter at a time. No column becomes narrower than its
    longest word or `_NARROWEST`, whichever is less. So the table may stay wider than ``letters``.
    """
    widths = []
    minimum_widths = []
    for column in columns:
        widths.append(max(1, *map(len, column)))
        words = " ".join(column).split()
        minimum_widths.append(min(_NARROWEST, max(map(len, words), default=1)))
    while _letters_across(widths) > letters and widths != minimum_widths:
        narrowable = [
            index for index, width in enumerate(widths) if width > minimum_widths[index]
        ]
        widest = max(narrowable, key=widths.__getitem__)
        widths[widest] -= 1
    return widths


FORMATS = {".md": markdown, ".tex": latex, ".csv": csv, ".svg": svg}
