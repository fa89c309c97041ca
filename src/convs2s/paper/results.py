"""Which runs a cell shows, and what they scored: from records to results."""

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from convs2s.config.settings import Settings
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell, CellAddress, RunFile
from convs2s.paper.ledger import LedgerEntry, RunNames, read_ledger
from convs2s.paper.records import record_of
from convs2s.paper.run_inputs import RunInputs


@dataclass(frozen=True)
class Result:
    """What the runs of a cell scored, and which of them are not there."""

    cell: Cell
    entries: Mapping[str, LedgerEntry]  # run -> its record
    failures: Mapping[str, str]  # run without a record -> why it failed
    missing: Sequence[RunFile]  # all runs without a record
    scores: Mapping[str, float]  # run -> its score
    signatures: Sequence[str]  # those of the metric, each once
    mean: float | None  # over the runs; None without one, or of several signatures
    deviation: float | None  # over the runs; None of one run, or where there is no mean
    lines: int | None  # of the test set; None where no record says
    published: frozenset[str]  # the runs that come from a published ledger


def results(
    cells: Iterable[Cell], entries: Iterable[LedgerEntry], failures: Mapping[str, str] | None = None
) -> list[Result]:
    """Return what each cell shows: the runs whose inputs have the fingerprints of its own.

    Of a run that several processors have made, it is the user's own before a published one, then
    that of the processor with most runs of the cell, then of all cells, then the last by name.
    ``failures`` are the path of a run's numbers -> why there are none.
    """
    cells = list(cells)
    by_cell = runs_by_cell(cells, entries)
    of_all = Counter[str | None]()
    for runs in by_cell.values():
        for entry in runs:
            of_all[entry.processor] += 1
    shown = []
    for cell in cells:
        of_cell = Counter[str | None]()
        for entry in by_cell[cell.address]:
            of_cell[entry.processor] += 1
        ranks: dict[str, tuple[bool, int, int, str]] = {}
        best: dict[str, LedgerEntry] = {}
        for entry in by_cell[cell.address]:
            rank = (entry.origin is None, *rank_of(entry.processor, of_cell, of_all))
            run = entry.run.run
            if run not in ranks or rank >= ranks[run]:
                ranks[run] = rank
                best[run] = entry
        shown.append(_result(cell, best, failures or {}))
    return shown


def rank_of(
    processor: str | None, here: Counter[str | None], of_all: Counter[str | None]
) -> tuple[int, int, str]:
    """Return what one processor is preferred to another by: runs here, runs of all, its name."""
    return here[processor], of_all[processor], processor or ""


def _result(cell: Cell, known: Mapping[str, LedgerEntry], failures: Mapping[str, str]) -> Result:
    entries: dict[str, LedgerEntry] = {}
    scores: dict[str, float] = {}
    signatures = dict[str, None]()
    published = set[str]()
    missing: list[RunFile] = []
    failed: dict[str, str] = {}
    lines = None
    for file in cell.files:
        entry = known.get(file.run)
        if entry is None:
            missing.append(file)
            if file.path in failures:
                failed[file.run] = failures[file.path]
            continue
        entries[file.run] = entry
        score = entry.scores[cell.measure]
        scores[file.run] = score.score
        if score.signature:
            signatures[score.signature] = None
        if lines is None:
            lines = entry.lines
        if entry.origin:
            published.add(file.run)
    comparable = len(signatures) < 2
    return Result(
        cell=cell,
        entries=entries,
        failures=failed,
        missing=missing,
        scores=scores,
        signatures=list(signatures),
        mean=statistics.mean(scores.values()) if scores and comparable else None,
        deviation=statistics.stdev(scores.values()) if len(scores) > 1 and comparable else None,
        lines=lines,
        published=frozenset(published),
    )


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
        for file in cell.files:
            names = RunNames(cell.task, cell.model, file.run, cell.testset, cell.decoding)
            for entry in of_run.get(file.fingerprint, ()):
                if cell.measure in entry.scores:
                    shown.append(replace(entry, run=names))
    return by_cell


def entries_of(
    settings: Settings, cells: Iterable[Cell], scores: Collection[str], published: str | None = None
) -> list[LedgerEntry]:
    """Return the records of the cells' runs: of those made here by file, then the published ones.

    ``scores`` are those of the cells' paths that exist; ``published`` is a published ledger, which
    gives what was not made here, or on another processor. A UserError names a file that is damaged.
    """
    by_path: dict[str, tuple[Cell, RunFile]] = {}
    by_fingerprint: dict[str, list[tuple[Cell, RunFile]]] = {}
    for cell in cells:
        for file in cell.files:
            by_fingerprint.setdefault(file.fingerprint, []).append((cell, file))
            if file.path in scores:
                by_path.setdefault(file.path, (cell, file))
    # Models of the same recipe under two names are one run.
    made: dict[tuple[str, str | None], LedgerEntry] = {}
    if by_path:
        known = RunInputs(settings)
        for _, (cell, file) in sorted(by_path.items()):
            entry = record_of(cell, file, settings.options.scale, known)
            made[entry.fingerprint, entry.processor] = entry
    entries = list(made.values())
    origin = settings.options.published or published
    for entry in read_ledger(Path(published)) if published else []:
        if (entry.fingerprint, entry.processor) in made:
            continue
        for cell, file in by_fingerprint.get(entry.fingerprint, ()):
            if cell.measure in entry.scores:
                run = RunNames(cell.task, cell.model, file.run, cell.testset, cell.decoding)
                entries.append(replace(entry, run=run, origin=origin))
                break
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
            shown_by.setdefault((entry.fingerprint, entry.processor), []).append(str(address))
    lines = []
    for entry in entries:
        addresses = shown_by.get((entry.fingerprint, entry.processor), ())
        lines.append(replace(entry, table_cells=tuple(addresses)).line())
    write_lines(output, lines)
