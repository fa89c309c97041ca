"""The papers' tables as the report shows them: each cell with the trainings that it rests on."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.text import read_json
from convs2s.paper.claims import JudgedClaim
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import Result
from convs2s.paper.tables import TableValue, for_readers, sheet, table_rows
from convs2s.paper.trained import Hours, Training, read_training

_MACHINE = ("processor", "gpu", "system", "threads", "python", "convs2s", "revision")

Trainings = Mapping[tuple[str, str, str], Training]  # task, model and run -> the training


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
    notes: Sequence[str] = ()  # footnotes

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


def shown_tables(
    settings: Settings, name: str, results: Sequence[Result], trained: Trainings
) -> tuple[list[str], ShownTable, ShownTable]:
    """Return a table of config/paper.yaml as it is printed, below its lines, and every column."""
    values = table_rows(settings, name, results)
    written = for_readers(sheet(settings, name, results))
    header, texts, notes = written.printed()
    printed = [
        [
            replace(_cell(row[heading], trained), text=text)
            for heading, text in zip(header, of_row, strict=True)
        ]
        for row, of_row in zip(values, texts, strict=True)
    ]
    columns = [heading for heading in written.filled if heading != "Scale"]
    every = [[_cell(row[heading], trained) for heading in columns] for row in values]
    return written.above, ShownTable(header, printed, notes), ShownTable(columns, every)


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


def read_claims(path: Path) -> list[JudgedClaim]:
    """Return the claims with their verdicts; a UserError says that the JSON file has none."""
    content = read_json(path)
    with failures_of_file(str(path), "not a list of claims; delete the file and ask for it again"):
        stated = TypeAdapter(dict[str, object]).validate_python(content)["claims"]
        return TypeAdapter(list[JudgedClaim]).validate_python(stated)
