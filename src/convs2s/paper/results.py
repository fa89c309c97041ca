"""The scores of cells, from the entries of a ledger or from files of numbers."""

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell, CellAddress
from convs2s.paper.ledger import LedgerEntry, RunNames, read_ledger
from convs2s.paper.records import record_of


def results(
    cells: Iterable[Cell],
    entries: Iterable[LedgerEntry],
    failures: Mapping[str, str] = {},
) -> list[Cell]:
    """Return the cells with the scores of their runs.

    An entry of the ledger belongs to the run with the same fingerprint. If a run was made on
    several processors, its cell shows only one of the entries. These rules choose it, and each
    rule matters only if the rules before it do not decide:

    1. An entry that was made here is preferred to a published one.
    2. The processor with more entries of this cell is preferred.
    3. The processor with more entries of all cells is preferred.
    4. The processor whose name comes later in alphabetical order is preferred.

    ``failures`` maps the fingerprint of a run to the reason why it has no numbers.
    """
    cells = list(cells)
    by_cell = runs_by_cell(cells, entries)
    processor_of = attrgetter("processor")
    in_all_cells = Counter(map(processor_of, chain.from_iterable(by_cell.values())))
    shown = []
    for cell in cells:
        found = by_cell[cell.address]
        in_cell = Counter(map(processor_of, found))
        found.sort(
            key=lambda entry: (
                entry.origin is None,
                *rank_of(entry.processor, in_cell, in_all_cells),
            )
        )
        best = {}
        for entry in found:
            # The preferred entry of a run is sorted last, and replaces the others.
            best[entry.run.run] = entry
        shown.append(_with_entries(cell, best, failures))
    return shown


def _with_entries(
    cell: Cell,
    best: Mapping[str, LedgerEntry],
    failures: Mapping[str, str],
) -> Cell:
    """Return a cell with the entries of its runs, their scores, and the mean and deviation.

    ``best`` maps the name of a run to the entry that is shown. For ``failures`` see `results`.
    """
    entries = {}
    scores = {}
    signatures: dict[str, None] = {}  # an ordered set
    missing = []
    failed = {}
    for record in cell.records:
        run = record.run.run
        if run in best:
            entries[run] = best[run]
            score = best[run].scores[cell.measure]
            scores[run] = score.score
            if score.signature:
                signatures[score.signature] = None
        else:
            missing.append(record)
            if record.fingerprint in failures:
                failed[run] = failures[record.fingerprint]
    mean = deviation = None
    # Scores with different signatures are not comparable, so they have no mean.
    if scores and len(signatures) < 2:
        mean = statistics.mean(scores.values())
        if len(scores) > 1:
            deviation = statistics.stdev(scores.values())
    return replace(
        cell,
        entries=entries,
        missing=missing,
        failures=failed,
        scores=scores,
        signatures=list(signatures),
        mean=mean,
        deviation=deviation,
    )


def rank_of(
    processor: str | None,
    in_cell: Counter[str | None],
    in_all_cells: Counter[str | None],
) -> tuple[int, int, str]:
    """Return the sort key of a processor; the processor with the highest key is preferred.

    The key is the number of the processor's entries in the cell, their number in all cells, and the
    processor's name.
    """
    return in_cell[processor], in_all_cells[processor], processor or ""


def runs_by_cell(
    cells: Iterable[Cell], entries: Iterable[LedgerEntry]
) -> dict[CellAddress, list[LedgerEntry]]:
    """Return, for each cell, the entries of its runs on all processors.

    An entry belongs to the run with the same fingerprint. Entries without the cell's measure are
    left out. The returned entries have the names of the cell's run, because the configuration that
    the ledger was made with may have other names for the same inputs.
    """
    by_fingerprint: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        by_fingerprint.setdefault(entry.fingerprint, []).append(entry)
    by_cell: dict[CellAddress, list[LedgerEntry]] = {}
    for cell in cells:
        entries_of_cell = []
        for record in cell.records:
            for entry in by_fingerprint.get(record.fingerprint, ()):
                if cell.measure in entry.scores:
                    entries_of_cell.append(replace(entry, run=record.run))
        by_cell[cell.address] = entries_of_cell
    return by_cell


def entries_of(
    settings: Settings,
    cells: Iterable[Cell],
    scores: Collection[str],
    published: str | None = None,
) -> list[LedgerEntry]:
    """Return the entries of the cells' runs: those made here, sorted by file, then published ones.

    ``scores`` are the files of numbers that exist here. ``published`` is the path of a published
    ledger. A published entry is left out if an entry with the same fingerprint and processor was
    made here.

    Raises:
        UserError: a file is damaged; the message names it.
    """
    names: dict[str, RunNames] = {}  # fingerprint -> names of the run
    # File -> the planned record of its run, and one of its measures.
    available: dict[str, tuple[LedgerEntry, str]] = {}
    for cell in cells:
        for record in cell.records:
            names.setdefault(record.fingerprint, record.run)
            if record.file in scores:
                available.setdefault(record.file, (record, cell.measure))
    # Two models of the configuration may have the same recipe. Then their files have the same key,
    # and count as one run.
    made: dict[tuple[str, str | None], LedgerEntry] = {}
    for path in sorted(available):
        record, measure = available[path]
        entry = record_of(record, measure)
        made[entry.key] = entry
    entries = list(made.values())
    if published:
        # The option may be a URL. Then ``published`` is the file that was downloaded from it.
        origin = settings.options.published or published
        for entry in read_ledger(Path(published)):
            if entry.key not in made and entry.fingerprint in names:
                run = names[entry.fingerprint]
                entries.append(replace(entry, run=run, origin=origin))
    return entries


def write_ledger(
    settings: Settings,
    *,
    cells: Iterable[Cell],
    scores: Collection[str],
    published: str | None,
    output: Path,
) -> None:
    """Write the ledger of all tables as JSON lines, with the cells that show each entry.

    For the arguments see `entries_of`. Entries that no cell shows are omitted.
    """
    cells = list(cells)
    entries = entries_of(settings, cells, scores, published)
    # Key of an entry -> the addresses of the cells that show it.
    shown_by: dict[tuple[str, str | None], list[str]] = {}
    for address, runs in runs_by_cell(cells, entries).items():
        for entry in runs:
            shown_by.setdefault(entry.key, []).append(str(address))
    lines = []
    for entry in entries:
        if addresses := shown_by.get(entry.key):
            lines.append(replace(entry, table_cells=tuple(addresses)).line())
    write_lines(output, lines)
