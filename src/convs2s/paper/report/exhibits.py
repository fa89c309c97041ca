"""The papers' tables as the report shows them: each cell with the trainings that it rests on."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_json
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import Result
from convs2s.paper.tables import TableValue, table_rows
from convs2s.paper.trained import Hours, Training, read_training

_BESIDE = ("Runs", "Test set", "Lines", "Metric", "Notes")
"""Columns that stand beside the values; what else a row has is shown on demand."""
_VALUES = (" (paper)", " (ours)", " (difference)")
_MACHINE = ("processor", "gpu", "system", "threads", "python", "convs2s", "revision")

Trainings = Mapping[tuple[str, str, str], Training]  # task, model and run -> the training
ClaimRow = dict[str, str]  # heading -> text

_OF_CLAIMS = {"says": "claim"}
_OF_FINDINGS = {
    "verdict": "verdict of the comparison",
    "value": "difference",
    "p_holm": "p (Holm)",
    "p_error": "error of p",
}


@dataclass(frozen=True)
class ShownCell:
    """A cell of a table of the report."""

    text: str
    number: float | None  # its value, by which it is sorted; None without one
    origin: str  # paper, ours, absent (of ours, without a value) or text
    runs: tuple[Training, ...] = ()  # the trainings that it rests on


@dataclass(frozen=True)
class ShownTable:
    """A table of the report: its columns' names, and rows of a cell for each."""

    header: Sequence[str]
    rows: Sequence[Sequence[ShownCell]]

    @property
    def main(self) -> "ShownTable":
        """The table with those columns alone that are read first: names, values, what they are."""
        values = [place for place, name in enumerate(self.header) if name.endswith(_VALUES)]
        chosen = [
            place
            for place, name in enumerate(self.header)
            if place < min(values, default=1) or name in _BESIDE or name.endswith(_VALUES)
        ]
        rows = [[row[place] for place in chosen] for row in self.rows]
        return ShownTable([self.header[place] for place in chosen], rows)

    def count(self, origin: str) -> int:
        """Return how many cells are of a kind."""
        return sum(cell.origin == origin for row in self.rows for cell in row)


def trainings(entries: Iterable[LedgerEntry], present: Collection[Path]) -> Trainings:
    """Return the trainings that a ledger rests on, sorted, an ensemble's members among them."""
    folders = {
        (entry.run.task, entry.run.model, member): Path(entry.file).parent.with_name(member)
        for entry in entries
        for member in members(entry.run.run)
    }
    return {
        names: read_training(*names, folders[names], lambda path: path in present)
        for names in sorted(folders)
    }


def shown_table(
    settings: Settings, name: str, results: Iterable[Result], trained: Trainings
) -> ShownTable:
    """Return a table of config/paper.yaml by what its cells show."""
    rows = [
        {heading: value for heading, value in row.items() if heading != "Scale"}
        for row in table_rows(settings, name, results)
    ]
    cells = [[_cell(value, trained) for value in row.values()] for row in rows]
    return ShownTable(list(rows[0]) if rows else [], cells)


def _cell(value: TableValue, trained: Trainings) -> ShownCell:
    origin: str = value.of or "text"
    if origin == "ours" and value.number is None:
        origin = "absent" if value.text else "text"
    names = dict.fromkeys(
        (entry.run.task, entry.run.model, member)
        for entry in (value.result.entries.values() if value.result else ())
        for member in members(entry.run.run)
    )
    return ShownCell(value.text, value.number, origin, tuple(trained[run] for run in names))


@dataclass(frozen=True)
class TimeOfTrainings:
    """What trainings took, each counted once; the hours are of those with a history here."""

    trainings: int
    untimed: int  # how many have no history here
    hours: Hours


def cost_of(trained: Iterable[Training]) -> TimeOfTrainings:
    """Return what trainings took, each counted once."""
    distinct = {run.anchor: run for run in trained}.values()
    timed = [run.hours for run in distinct if run.hours is not None]
    return TimeOfTrainings(len(distinct), len(distinct) - len(timed), sum(timed, Hours()))


def environment(trained: Iterable[Training]) -> Mapping[str, Mapping[str, int]]:
    """Return, of what manifests say -> each value -> the number of trainings that it made."""
    counts: dict[str, Counter[str]] = {}
    for run in trained:
        packages = run.manifest.get("packages", {})
        assert isinstance(packages, Mapping)
        for key, value in [*((key, run.manifest.get(key)) for key in _MACHINE), *packages.items()]:
            if value:
                counts.setdefault(key, Counter())[str(value)] += 1
    return counts


def read_claims(path: Path) -> list[ClaimRow]:
    """Return a row for each comparison of each claim, and one for a claim without any.

    A UserError says that the JSON file is missing, or has no list of claims under ``claims``.
    """
    expected = "not a list of claims; delete the file and ask for it again"
    content = read_json(path)
    claims = content.get("claims") if isinstance(content, dict) else None
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise UserError(f"{path}: {expected}")
    rows = list[ClaimRow]()
    with failures_of_file(str(path), expected):
        for claim in claims:
            stated = {
                _heading(key, _OF_CLAIMS): _text(value)
                for key, value in claim.items()
                if key not in ("name", "findings")
            }
            for finding in claim.get("findings") or [{}]:
                compared = {_heading(key, _OF_FINDINGS): _text(finding[key]) for key in finding}
                rows.append(stated | compared)
    said = dict.fromkeys(key for row in rows for key, text in row.items() if text)
    return [{key: row.get(key, "") for key in said} for row in rows]


def _heading(key: str, headings: Mapping[str, str]) -> str:
    return headings.get(key, key.replace("_", " "))


def _text(value: object) -> str:
    """Return a value as a person reads it; empty for None."""
    if isinstance(value, list):
        return " to ".join(map(_text, value))
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)
