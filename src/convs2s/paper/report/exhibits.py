"""The papers' tables as the report shows them: their CSV files, cells with the runs behind them."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.paper import Table
from convs2s.config.runs import members
from convs2s.errors import UserError
from convs2s.files.text import read_lines
from convs2s.paper.bleu_by_layers import Depth
from convs2s.paper.report.recorded import RecordedScore
from convs2s.paper.trained import Training

_DEVIATION = re.compile(r"± *([0-9.]+)")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_PAPER, _OURS, _DIFFERENCE = " (paper)", " (ours)", " (difference)"
_BESIDE = ("Runs", "Test set", "Lines", "Metric", "Notes")
"""Columns that stand beside the values; what else a CSV file has is shown on demand."""


@dataclass(frozen=True)
class ShownCell:
    """A cell of a table of the report.

    Attributes:
        text: what it says.
        number: the number that it begins with, by which it is sorted; None without one.
        kind: ``paper``, ``ours``, ``absent`` (of ours, without a value) or ``text``.
        runs: the trainings that it rests on.
    """

    text: str
    number: float | None
    kind: str
    runs: tuple[Training, ...] = ()


@dataclass(frozen=True)
class ShownTable:
    """A table of the report.

    Attributes:
        header: the columns' names.
        rows: a cell for each of them.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[ShownCell]]

    @property
    def main(self) -> "ShownTable":
        """The table with those columns alone that are read first."""
        values = [place for place, one in enumerate(self.header) if one.endswith(_PAPER)]
        chosen = [
            place
            for place, one in enumerate(self.header)
            if place < min(values, default=1)
            or one in _BESIDE
            or one.endswith((_PAPER, _OURS, _DIFFERENCE))
        ]
        rows = [[row[place] for place in chosen] for row in self.rows]
        return ShownTable([self.header[place] for place in chosen], rows)

    @property
    def filled(self) -> int:
        """How many cells of ours have a value."""
        return self._count("ours")

    @property
    def absent(self) -> int:
        """How many cells of ours have none."""
        return self._count("absent")

    def _count(self, kind: str) -> int:
        return sum(cell.kind == kind for row in self.rows for cell in row)


def read_table(
    name: str,
    printed: Table,
    shown: Sequence[int],
    path: Path,
    scores: Iterable[RecordedScore],
    trained: Sequence[Training],
) -> ShownTable:
    """Read a table's CSV file, and find the trainings that its cells rest on.

    Args:
        name: of the table.
        printed: the table as the configuration has it.
        shown: which of its rows the file has, from 0.
        path: the CSV file.
        scores: of the ledger.
        trained: the trainings that the ledger's scores rest on.

    Raises:
        UserError: the file is missing, or has no header.
    """
    header, *lines = list(csv.reader(io.StringIO("\n".join(read_lines(path))))) or [[]]
    if not header:
        raise UserError(f"{path}: no header, so it is no table; delete it and ask for it again")
    kept = [place for place, column in enumerate(header) if column != "Scale"]
    resting = _runs_of_cells(name, printed, scores, trained)
    rows = [
        [
            _cell(header[place], line[place], resting.get((number + 1, header[place]), ()))
            for place in kept
        ]
        for number, line in zip(shown, lines, strict=True)
    ]
    return ShownTable([header[place] for place in kept], rows)


def leading_number(text: str) -> float | None:
    """Return the number that a cell begins with; None without one."""
    found = _NUMBER.match(text)
    return float(found[0]) if found else None


def networks(printed: Table, shown: Sequence[int], table: ShownTable) -> list[Depth]:
    """Return the networks of a figure by layers, from its table."""
    places = [
        next(place for place, name in enumerate(table.header) if name.endswith(whose))
        for whose in (_PAPER, _OURS)
    ]
    depths = []
    for number, cells in zip(shown, table.rows, strict=True):
        row, (paper, ours) = printed.rows[number], (cells[place] for place in places)
        deviation = _DEVIATION.search(ours.text)
        depths.append(
            Depth(
                side=row.group or "",
                layers=int(row.x or 0),
                paper=paper.number,
                bleu=ours.number,
                deviation=float(deviation[1]) if deviation else None,
                seeds=len(ours.runs),
            )
        )
    return depths


def _runs_of_cells(
    name: str, printed: Table, scores: Iterable[RecordedScore], trained: Sequence[Training]
) -> dict[tuple[int, str], tuple[Training, ...]]:
    """Return (row from 1, heading) of each cell of a table -> the trainings that it rests on."""
    headings = {column.key: f"{column.name}{_OURS}" for column in printed.columns}
    known: Mapping[tuple[str, str, str], Training] = {
        (one.task, one.model, one.run): one for one in trained
    }
    found: dict[tuple[int, str], dict[str, Training]] = {}
    for score in scores:
        for table, row, key in score.cells:
            if table == name:
                runs = found.setdefault((row, headings[key]), {})
                for member in members(score.run):
                    training = known[score.task, score.model, member]
                    runs[training.anchor] = training
    return {place: tuple(runs.values()) for place, runs in found.items()}


def _cell(heading: str, text: str, runs: tuple[Training, ...]) -> ShownCell:
    number = leading_number(text)
    if heading.endswith(_PAPER):
        return ShownCell(text, number, "paper")
    if not heading.endswith(_OURS):
        return ShownCell(text, float(text) if _NUMBER.fullmatch(text) else None, "text")
    kind = "ours" if number is not None else "absent" if text else "text"
    return ShownCell(text, number, kind, runs)
