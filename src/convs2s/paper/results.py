"""What the cells of the papers' tables show, from a ledger's lines alone."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from convs2s.paper.cells import Cell
from convs2s.paper.ledger_entry import LedgerEntry


@dataclass(frozen=True)
class Result:
    """What the runs of a cell scored.

    Attributes:
        cell: the cell.
        entries: run -> its line of a ledger, of the runs that are there.
        published: those of them that come from a published ledger.
        failures: run -> why it failed, of those that are not there.
    """

    cell: Cell
    entries: Mapping[str, LedgerEntry]
    published: frozenset[str] = frozenset()
    failures: Mapping[str, str] | None = None

    @property
    def scores(self) -> dict[str, float]:
        """Run -> its score."""
        measure = self.cell.measure
        return {run: float(entry.scores[measure]["score"]) for run, entry in self.entries.items()}

    @property
    def is_of_one_kind(self) -> bool:
        """Whether the runs' scores compare: by one metric, and times by one machine."""
        return len(self.signatures) < 2

    @property
    def mean(self) -> float | None:
        """The mean over the runs; None where there is none, or they are not of one kind."""
        compares = self.entries and self.is_of_one_kind
        return statistics.mean(self.scores.values()) if compares else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the runs; None of fewer than two, or not of one kind."""
        compares = len(self.entries) > 1 and self.is_of_one_kind
        return statistics.stdev(self.scores.values()) if compares else None

    @property
    def signatures(self) -> list[str]:
        """Those of the metric, each once."""
        stated = (entry.scores[self.cell.measure]["signature"] for entry in self.entries.values())
        return list(dict.fromkeys(one for one in stated if one))

    @property
    def lines(self) -> int | None:
        """The number of lines of the test set; None where no entry says."""
        return next((one.lines for one in self.entries.values() if one.lines is not None), None)

    @property
    def missing(self) -> list[str]:
        """The runs that are not there."""
        return [run for run in self.cell.runs if run not in self.entries]


def results(
    cells: Iterable[Cell],
    entries: Sequence[LedgerEntry],
    *,
    published: Sequence[LedgerEntry] = (),
    failures: Mapping[str, str] | None = None,
) -> list[Result]:
    """Return what each cell shows: the runs whose inputs have the fingerprints of its own.

    Args:
        cells: those of a table.
        entries: of the runs made here.
        published: of a published ledger; what was run here comes first.
        failures: path of a run's numbers -> why it failed.
    """
    own, others = ({one.fingerprint: one for one in group} for group in (entries, published))
    return [_result(cell, own, others, failures or {}) for cell in cells]


def _result(
    cell: Cell,
    own: Mapping[str, LedgerEntry],
    others: Mapping[str, LedgerEntry],
    failures: Mapping[str, str],
) -> Result:
    found, published, failed = {}, set(), {}
    for run, path, fingerprint in zip(cell.runs, cell.paths, cell.fingerprints, strict=True):
        entry = own.get(fingerprint) or others.get(fingerprint)
        if entry and cell.measure in entry.scores:
            found[run] = entry
            if fingerprint not in own:
                published.add(run)
        elif path in failures:
            failed[run] = failures[path]
    return Result(cell, found, frozenset(published), failed)
