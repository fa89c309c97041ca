"""What the ledger has on the cells that a claim names: the scores of their runs, or why none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from convs2s.config.claims import CellName, printed_number, row_index
from convs2s.config.paper import Row, Table
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.paper.cells import MEASURES, CellAddress
from convs2s.paper.ledger import LedgerEntry
from convs2s.scoring.bleu import decode_statistics
from convs2s.scoring.significance import DrawnScores, drawn_scores

LOWER_IS_BETTER = ("perplexity", "seconds_cpu", "seconds_cuda")
"""Measures; of all others the higher value is better."""


@dataclass(frozen=True)
class Evidence:
    """What is known of a cell.

    Attributes:
        name: of the cell.
        label: what a comparison calls it.
        measure: a key of `MEASURES`.
        printed: the paper's number; None where it prints none.
        is_cited: whether the printed number is all that there is.
        runs: those that have a score, by name.
        missing: why there is no score; None where there is one.
    """

    name: CellName
    label: str
    measure: str
    printed: float | None
    is_cited: bool
    runs: tuple[LedgerEntry, ...]
    missing: str | None

    @property
    def scores(self) -> list[float]:
        """The scores of the runs."""
        return [run.scores[self.measure].score for run in self.runs]

    @property
    def runs_in_words(self) -> str:
        """How many runs there are, or which ensemble."""
        ensembles = [run.run.run for run in self.runs if run.run.run.startswith("ensemble")]
        return "printed" if self.is_cited else ", ".join(ensembles) or str(len(self.runs))


EntriesOfCells = Mapping[CellAddress, Sequence[LedgerEntry]]
"""The entries of the runs that each cell shows."""


def entries_by_cell(entries: Iterable[LedgerEntry]) -> dict[CellAddress, list[LedgerEntry]]:
    """Return the entries of the runs that each cell shows."""
    shown: dict[CellAddress, list[LedgerEntry]] = {}
    for entry in entries:
        for address in entry.table_cells:
            shown.setdefault(address, []).append(entry)
    return shown


def evidence(settings: Settings, name: CellName, runs: EntriesOfCells) -> Evidence:
    """Return what there is on a cell.

    Args:
        settings: the configuration.
        name: of the cell.
        runs: of each cell.
    """
    index = row_index(name, settings.paper, "config/claims.yaml")
    row = settings.paper[name.table].rows[index]
    (column,) = (one for one in settings.paper[name.table].columns if one.key == name.column)
    measure = row.measures.get(name.column, column.measure)
    assert measure is not None
    entries = runs.get(CellAddress(name.table, index, name.column), ())
    found = sorted(entries, key=lambda entry: entry.run.run)
    is_cited = row.kind == "cited"
    return Evidence(
        name=name,
        label=_label(settings.paper[name.table], row, name),
        measure=measure,
        printed=printed_number(row, name.column),
        is_cited=is_cited,
        runs=() if is_cited else tuple(found),
        missing=_missing(row, settings.scale) if is_cited or not found else None,
    )


def why_incomparable(settings: Settings, cells: Iterable[Evidence]) -> str | None:
    """Return why scores cannot be held against each other; None where they can.

    Perplexity is of one vocabulary, any other score of one test set and one metric.
    """
    keys = dict.fromkeys(_scored_on(settings, cell, run) for cell in cells for run in cell.runs)
    if len(keys) < 2:
        return None
    return "not of one kind: " + " against ".join(keys)


def _label(table: Table, row: Row, name: CellName) -> str:
    """Return "TABLE GROUP 'ROW'", with the column where there is more than one."""
    (column,) = (one.name for one in table.columns if one.key == name.column)
    group = f"{row.group} " if row.group else ""
    return f"{name.table} {group}{row.system!r}" + (f" {column}" if len(table.columns) > 1 else "")


def _missing(row: Row, scale: Scale) -> str | None:
    if row.kind == "cited":
        return "a printed value is of the paper's data" if scale.stand_in else None
    if scale.why_left_out(row):
        return "left out at this scale"
    return "not run" if row.model and scale.model_for(row.model) else "no stand-in"


def _scored_on(settings: Settings, cell: Evidence, entry: LedgerEntry) -> str:
    if cell.measure == "perplexity":
        return f"{MEASURES[cell.measure].label} of {entry.run.task}"
    text, lines = settings.tasks[entry.run.task].text_name, f"{entry.lines} lines"
    return f"{text} {entry.run.testset} ({lines}), {entry.scores[cell.measure].signature}"


def drawn(entry: LedgerEntry, measure: str) -> DrawnScores:
    """Return the scores of test sets drawn anew from a run's sentences."""
    return _drawn(entry.sentences[measure], f"the ledger's {entry.run}")


@cache  # a cell stands in several comparisons
def _drawn(sentences: str, where: str) -> DrawnScores:
    return drawn_scores(decode_statistics(sentences, where))
