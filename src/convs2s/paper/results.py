"""Which runs a cell shows: from records to the cells that have them."""

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell, CellAddress
from convs2s.paper.ledger import LedgerEntry, RunNames, read_ledger
from convs2s.paper.records import record_of


def results(
    cells: Iterable[Cell], entries: Iterable[LedgerEntry], failures: Mapping[str, str] | None = None
) -> list[Cell]:
    """Return the cells with what their runs scored: the records of their own fingerprints.

    Of a run that several processors have made, it is the user's own before a published one, then
    that of the processor with most runs of the cell, then of all cells, then the last by name.
    ``failures`` are the fingerprint of a run -> why there are no numbers of it.
    """
    cells = list(cells)
    by_cell = runs_by_cell(cells, entries)
    of_all = Counter[str | None]()
    for entries_of_cell in by_cell.values():
        for entry in entries_of_cell:
            of_all[entry.processor] += 1
    shown = []
    for cell in cells:
        here = Counter[str | None]()
        for entry in by_cell[cell.address]:
            here[entry.processor] += 1
        ranked = sorted(
            by_cell[cell.address],
            key=lambda entry: (entry.origin is None, *rank_of(entry.processor, here, of_all)),
        )
        best = {}
        for entry in ranked:
            best[entry.run.run] = entry  # the last one, which ranks highest
        shown.append(_with_entries(cell, best, failures or {}))
    return shown


def _with_entries(cell: Cell, best: Mapping[str, LedgerEntry], failures: Mapping[str, str]) -> Cell:
    """Return a cell with the best record of each run that has one."""
    entries = {}
    scores = {}
    signatures: dict[str, None] = {}
    missing = []
    failed = {}
    for record in cell.records:
        run = record.run.run
        if run not in best:
            missing.append(record)
            if record.fingerprint in failures:
                failed[run] = failures[record.fingerprint]
            continue
        entries[run] = best[run]
        of_run = best[run].scores[cell.measure]
        scores[run] = of_run.score
        if of_run.signature:
            signatures[of_run.signature] = None
    comparable = len(signatures) < 2
    return replace(
        cell,
        entries=entries,
        missing=missing,
        failures=failed,
        scores=scores,
        signatures=list(signatures),
        mean=statistics.mean(scores.values()) if scores and comparable else None,
        deviation=statistics.stdev(scores.values()) if len(scores) > 1 and comparable else None,
    )


def rank_of(
    processor: str | None, here: Counter[str | None], of_all: Counter[str | None]
) -> tuple[int, int, str]:
    """Return what one processor is preferred to another by: runs here, runs of all, its name."""
    return here[processor], of_all[processor], processor or ""


def runs_by_cell(
    cells: Iterable[Cell], entries: Iterable[LedgerEntry]
) -> dict[CellAddress, list[LedgerEntry]]:
    """Return the records of each cell's runs, on every processor that has made them.

    They have the cell's names: another configuration may have others for the same inputs.
    """
    of_run: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        of_run.setdefault(entry.fingerprint, []).append(entry)
    by_cell: dict[CellAddress, list[LedgerEntry]] = {}
    for cell in cells:
        shown = by_cell[cell.address] = []
        for record in cell.records:
            for entry in of_run.get(record.fingerprint, ()):
                if cell.measure in entry.scores:
                    shown.append(replace(entry, run=record.run))
    return by_cell


def entries_of(
    settings: Settings, cells: Iterable[Cell], scores: Collection[str], published: str | None = None
) -> list[LedgerEntry]:
    """Return the records of the cells' runs: of those made here by file, then the published ones.

    ``scores`` are those of the cells' paths that exist; ``published`` is a published ledger, which
    gives what was not made here, or on another processor. A UserError names a file that is damaged.
    """
    names: dict[str, RunNames] = {}
    there: dict[str, tuple[LedgerEntry, str]] = {}
    for cell in cells:
        for record in cell.records:
            names.setdefault(record.fingerprint, record.run)
            if record.file in scores:
                there.setdefault(record.file, (record, cell.measure))
    # Models of the same recipe under two names are one run.
    made: dict[tuple[str, str | None], LedgerEntry] = {}
    for path in sorted(there):
        record, measure = there[path]
        entry = record_of(record, measure)
        made[entry.key] = entry
    entries = list(made.values())
    origin = settings.options.published or published
    for entry in read_ledger(Path(published)) if published else ():
        if entry.key not in made and entry.fingerprint in names:
            entries.append(replace(entry, run=names[entry.fingerprint], origin=origin))
    return entries


def write_ledger(
    settings: Settings,
    *,
    cells: Iterable[Cell],
    scores: Collection[str],
    published: str | None,
    output: Path,
) -> None:
    """Write the ledger of all tables as JSON lines; the arguments are those of `entries_of`."""
    cells = list(cells)
    entries = entries_of(settings, cells, scores, published)
    shown_by: dict[tuple[str, str | None], list[str]] = {}
    for address, runs in runs_by_cell(cells, entries).items():
        for entry in runs:
            shown_by.setdefault(entry.key, []).append(str(address))
    lines = []
    for entry in entries:
        if addresses := shown_by.get(entry.key):
            lines.append(replace(entry, table_cells=tuple(addresses)).line())
    write_lines(output, lines)
