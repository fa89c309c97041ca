"""A table of text as Markdown, LaTeX, CSV or SVG."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from convs2s.paper import table_drawing

_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "`": r"\textasciigrave{}",
        "^": r"\textasciicircum{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "†": r"$\dagger$",
    }
)


@dataclass(frozen=True)
class Sheet:
    """A table with what stands around it.

    Attributes:
        headings: lines above the table, the title first.
        frame: the table, all text.
        marked: the column whose values bear the numbers of their rows' footnotes.
        footnotes: columns that are printed as footnotes -> a format string of what stands there.
        joined: a column -> the one that is printed in parentheses behind its values.
        left_out: columns that only CSV keeps, as the headings say the same.
    """

    headings: Sequence[str]
    frame: pd.DataFrame
    marked: str
    footnotes: Mapping[str, str]
    joined: Mapping[str, str]
    left_out: Sequence[str]

    def printed(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the printed table's header, its rows, and its footnotes in order."""
        notes: list[str] = []
        marks = []
        for row in self.frame[list(self.footnotes)].to_dict("records"):
            forms = self.footnotes.items()
            stated = [form.format(row[column]) for column, form in forms if row[column]]
            notes += [note for note in stated if note not in notes]
            numbers = ", ".join(str(notes.index(note) + 1) for note in stated)
            marks.append(f" [{numbers}]" if numbers else "")
        body = self.frame.drop(columns=[*self.footnotes, *self.left_out, *self.joined.values()])
        body[self.marked] += pd.Series(marks, dtype=str)
        for column, behind in self.joined.items():
            added = self.frame[behind].map(lambda text: f" ({text})" if text else "")
            body[column] += added
        return list(body.columns), body.to_numpy().tolist(), notes


def markdown(sheet: Sheet) -> str:
    """Return the table as GitHub's Markdown; what stands in for the paper's data is set bold."""
    header, rows, notes = sheet.printed()
    title, *others = sheet.headings
    lines = [header, ["---"] * len(header), *rows]
    cells = ["| " + " | ".join(value.replace("|", "\\|") for value in row) + " |" for row in lines]
    above = [f"**{line}**" if line.startswith("STAND-IN") else line for line in others]
    below = [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]
    return "\n\n".join([f"# {title}", *above, "\n".join(cells), *below]) + "\n"


def latex(sheet: Sheet) -> str:
    """Return the table as a LaTeX table environment, footnotes below; needs no package."""
    header, rows, notes = sheet.printed()
    lines = [" & ".join(map(_escaped, row)) + r" \\" for row in [header, *rows]]
    below = [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            r"\caption{" + _escaped(" ".join(_sentence(line) for line in sheet.headings)) + "}",
            r"\begin{tabular}{" + "l" * len(header) + "}",
            r"\hline",
            lines[0],
            r"\hline",
            *lines[1:],
            r"\hline",
            r"\end{tabular}",
            *(r"\par\footnotesize " + _escaped(note) for note in below),
            r"\end{table}",
            "",
        ]
    )


def csv(sheet: Sheet) -> str:
    """Return the whole table as comma-separated values with a header line."""
    return str(sheet.frame.to_csv(index=False, lineterminator="\n"))


def svg(sheet: Sheet) -> str:
    """Return the printed table as a drawing."""
    return table_drawing.svg(sheet.headings, *sheet.printed())


FORMATS: dict[str, Callable[[Sheet], str]] = {
    ".md": markdown,
    ".tex": latex,
    ".csv": csv,
    ".svg": svg,
}


def _escaped(text: str) -> str:
    return text.translate(_LATEX)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
