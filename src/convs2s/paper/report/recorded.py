"""The runs of a ledger, with what the files beside their scores say of them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.runs import members
from convs2s.paper import ledger
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.trained import Training, read_training


@dataclass(frozen=True)
class RecordedScore:
    """A line of the ledger.

    Attributes:
        file: the file of numbers, from the folder of the workflow's run.
        cells: (table, row from 1, column key) of each cell that shows it.
        task, model, run: what was scored.
        testset, decoding: likewise; None where the score needs none.
        sha256: path of each file that it was computed from -> checksum.
        processor, revision: of the machine and the code; None where the run does not say.
        date: the day of the file, as YYYY-MM-DD.
    """

    file: str
    cells: tuple[tuple[str, int, str], ...]
    task: str
    model: str
    run: str
    testset: str | None
    decoding: str | None
    sha256: Mapping[str, str]
    processor: str | None
    revision: str | None
    date: str


def read_ledger(path: Path) -> list[RecordedScore]:
    """Read a ledger.

    Raises:
        UserError: the file is missing, or a line is not one of a ledger.
    """
    return [_score(entry) for entry in ledger.read_ledger(path)]


def trainings(scores: Iterable[RecordedScore], present: Collection[Path]) -> list[Training]:
    """Return the trainings that scores rest on, each once, an ensemble's members among them.

    Args:
        scores: of a ledger.
        present: the files that are there, ``history.jsonl`` and ``training.json`` among them.
    """
    found = {}
    for one in scores:
        for member in members(one.run):
            folder = Path(one.file).parent.parent / member
            found[one.task, one.model, member] = read_training(
                one.task, one.model, member, folder, lambda path: path in present
            )
    return [found[key] for key in sorted(found)]


def _score(entry: LedgerEntry) -> RecordedScore:
    return RecordedScore(
        file=entry.file,
        cells=tuple((cell.table, cell.row + 1, cell.column) for cell in entry.table_cells),
        task=entry.run.task,
        model=entry.run.model,
        run=entry.run.run,
        testset=entry.run.testset,
        decoding=entry.run.decoding,
        sha256=entry.sha256,
        processor=entry.processor,
        revision=entry.revision,
        date=entry.date,
    )
