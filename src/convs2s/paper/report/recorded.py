"""The runs of a ledger, with what the files beside their scores say of them."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.runs import members
from convs2s.files import read_json, read_lines
from convs2s.paper import ledger_entry
from convs2s.paper.ledger_entry import LedgerEntry
from convs2s.training.history import EpochRecord


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


@dataclass(frozen=True)
class Training:
    """A training that cells rest on.

    Attributes:
        task, model, run: its names; the run is of one seed.
        folder: where its files are.
        epochs: its history; empty where that is not there.
        summary: its training.json; empty where that is not there.
    """

    task: str
    model: str
    run: str
    folder: Path
    epochs: tuple[EpochRecord, ...]
    summary: Mapping[str, object]

    @property
    def anchor(self) -> str:
        """The name by which the report's links find it."""
        return f"run-{self.task}-{self.model}-{self.run}"

    @property
    def manifest(self) -> Mapping[str, object]:
        """What made it: versions, machine, recipe."""
        found = self.summary.get("manifest", {})
        assert isinstance(found, Mapping)
        return found

    @property
    def seconds(self) -> float | None:
        """How long its epochs took; None where there is no history."""
        timed = [one.tokens / one.tokens_per_second for one in self.epochs if one.tokens_per_second]
        return sum(timed) if timed else None


def read_ledger(path: Path) -> list[RecordedScore]:
    """Read a ledger.

    Raises:
        UserError: the file is missing, or a line is not one of a ledger.
    """
    return [_score(entry) for entry in ledger_entry.read_ledger(path)]


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
            history, record = folder / "history.jsonl", folder / "training.json"
            found[one.task, one.model, member] = Training(
                one.task,
                one.model,
                member,
                folder,
                tuple(_epochs(history)) if history in present else (),
                _summary(record) if record in present else {},
            )
    return [found[key] for key in sorted(found)]


def _epochs(history: Path) -> Iterator[EpochRecord]:
    for line in read_lines(history):
        row = json.loads(line)
        if "epoch" in row:  # the last line may say why it stopped
            yield EpochRecord(**row)


def _summary(record: Path) -> Mapping[str, object]:
    found = read_json(record)
    assert isinstance(found, Mapping)
    return found


def _score(entry: LedgerEntry) -> RecordedScore:
    named = {key: entry.run[key] for key in ("testset", "decoding")}
    task, model, run = (str(entry.run[key]) for key in ("task", "model", "run"))
    return RecordedScore(
        file=entry.file,
        cells=tuple(map(_place, entry.table_cells)),
        task=task,
        model=model,
        run=run,
        **named,
        sha256=entry.sha256,
        processor=entry.processor,
        revision=entry.revision,
        date=entry.date,
    )


def _place(stated: str) -> tuple[str, int, str]:
    """Split "TABLE, row NUMBER, COLUMN"."""
    table, row, column = stated.split(", ")
    return table, int(row.removeprefix("row ")), column
