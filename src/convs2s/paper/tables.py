"""The papers' tables: the printed values beside what the runs of this project scored.

No value is typed in by hand: a cell whose runs are not in the ledger says "not run", or why.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from convs2s.config.measures import MEASURES
from convs2s.config.paper import Column, Row, printed_number
from convs2s.config.settings import Settings
from convs2s.files.atomic import atomic_path
from convs2s.paper.cells import Cell
from convs2s.paper.results import entries_of, results
from convs2s.paper.table_formats import FORMATS, Said, Sheet, together

_PUBLISHED_MARK = "†"

_SHARED = {
    "Runs": "runs: {}",
    "Test set": "test set: {}",
    "Metric": "{}",
    "Processor": "computed on: {}",
    "Date": "date: {}",
    "Origin": _PUBLISHED_MARK + " from the published ledger {}",
}
"""Columns stated once for the rows that agree, and what stands there."""

FOOTNOTES = _SHARED | {
    "Model files": "model files, SHA-256: {}",
    "Command": "to run it: `{}`",
    "Cost": "which takes {}",
    "Notes": "{}",
}
"""Columns that are printed as footnotes, and what stands there."""

_LEFT_OUT_FOR_READERS = ("Model files", "Date", "Command", "Cost")
"""Columns that serve those who check or run a row: not in the report and the page of results."""

_DIGITS_OF_CHECKSUM = 10
_MOST_NAMED = 20  # rows that a scale leaves out: of more their number is said


@dataclass(frozen=True)
class TableValue:
    """What a table says in one place: its text, and the number behind it."""

    said: Said
    origin: Literal["paper", "ours", "absent", "text"] = "text"  # absent: of ours, without a value
    number: float | None = None
    cell: Cell | None = None  # whose runs a value of ours rests on, if any can be run

    @property
    def text(self) -> str:
        """What is said as one text."""
        return together(self.said)


TableRow = Mapping[str, TableValue]  # heading -> what a row says there


def table_rows(settings: Settings, name: str, shown: Sequence[Cell]) -> list[TableRow]:
    """Return the rows of a table: each of the paper's that the scale has, ours beside it.

    For each column of the paper a row has "NAME (paper)"; "NAME (ours)", the mean over the runs ±
    their standard deviation, each run's where their signatures differ, or why there is none; "NAME
    (difference)", ours less the paper's, empty on stand-in data; and "NAME (mean)", "(deviation)"
    and "(each)", the score of each run. Then "Lines", "Scale" and the columns of
    `FOOTNOTES`: runs, test set, the metric with its signature, processor, days, ledger, the first
    digits of the model files' SHA-256, the command that runs what is missing, its cost, and notes.
    """
    printed = settings.paper[name]
    rows = list[TableRow]()
    for number in settings.scale.shown_rows(printed):
        row = printed.rows[number]
        of_row = {}
        for cell in shown:
            if cell.address.row == number:
                of_row[cell.address.column] = cell
        values: dict[str, TableValue] = {}
        if printed.group_label:
            values[printed.group_label] = TableValue(row.group or "")
        values[printed.system_label] = TableValue(row.system)
        for column in printed.columns:
            values |= _values(settings, row, column, of_row)
        rows.append(values | _provenance(settings, row, printed.columns, of_row))
    return rows


def sheet(settings: Settings, name: str, shown: Sequence[Cell]) -> Sheet:
    """Return a table as text, below its title, stand-in data, scale and source, and notes."""
    printed = settings.paper[name]
    scale = settings.scale
    headings = [printed.title]
    if scale.stand_in:
        headings.append(f"STAND-IN DATA: {scale.stand_in}")
    headings.append(f"Scale: {settings.options.scale}. Printed values: {printed.source}.")
    if printed.note:
        headings.append(printed.note)
    left_out: dict[str, dict[str, list[str]]] = {}  # reason -> group -> systems
    for row in printed.rows:
        if because := scale.why_left_out(row):
            left_out.setdefault(because, {}).setdefault(row.group or "", []).append(row.system)
    for because, groups in left_out.items():
        named = []
        for group, systems in groups.items():
            if len(systems) <= _MOST_NAMED:
                named.append(f"{group} {', '.join(systems)}".strip())
            else:
                named.append(f"{len(systems)} rows of {group}".removesuffix(" of "))
        headings.append(f"Left out at this scale, as {because}: {'; '.join(named)}.")
    rows = []
    for values in table_rows(settings, name, shown):
        said = {}
        for heading, value in values.items():
            said[heading] = value.said
        rows.append(said)
    left_out_columns = ["Scale", "Lines"]
    joined = {}
    for column in printed.columns:
        name_of = column.name
        left_out_columns += [f"{name_of} (mean)", f"{name_of} (deviation)", f"{name_of} (each)"]
        joined[f"{name_of} (ours)"] = f"{name_of} (difference)"
    return Sheet(
        headings=headings,
        rows=rows,
        marked=printed.system_label,
        footnotes=FOOTNOTES,
        joined=joined,
        left_out=left_out_columns,
        shared=_SHARED,
    )


def for_readers(printed: Sheet) -> Sheet:
    """Return a table without what serves those who check or run its rows."""
    return replace(printed, left_out=[*printed.left_out, *_LEFT_OUT_FOR_READERS])


def write_table(
    settings: Settings,
    name: str,
    *,
    cells: Sequence[Cell],
    scores: Collection[str],
    published: str | None,
    failures: Mapping[str, str],
    outputs: Sequence[Path],
) -> None:
    """Write a table in the format of each output's suffix: .md, .csv, .tex or .svg.

    ``failures`` are those of `results`; for the others see `entries_of`.
    """
    entries = entries_of(settings, cells, scores, published)
    written = sheet(settings, name, results(cells, entries, failures))
    for output in outputs:
        with atomic_path(output) as temporary:
            temporary.write_text(FORMATS[output.suffix](written), "utf-8")


def _values(
    settings: Settings, row: Row, column: Column, of_row: Mapping[str, Cell]
) -> dict[str, TableValue]:
    """Return what a column of the paper becomes: heading -> value."""
    cell = of_row.get(column.key)
    name = column.name
    digits = column.digits
    papers = printed_number(row, column.key)
    mean = deviation = difference = None
    scores = ours = stated = ""
    if cell is not None:
        mean = cell.mean
        deviation = cell.deviation
        scores = "; ".join(f"{run} {score:.{digits}f}" for run, score in cell.scores.items())
        ours = _number(mean, digits) or scores
        if deviation is not None:
            ours += f" ± {deviation:.{digits}f}"
        if any(entry.origin for entry in cell.entries.values()):
            ours += f" {_PUBLISHED_MARK}"
    # On stand-in data the two are of different texts: a difference would say nothing.
    compared = None if settings.scale.stand_in else papers
    if mean is not None and compared is not None:
        difference = mean - compared
        stated = f"{difference:+.{digits}f}"
    origin: Literal["ours", "absent", "text"] = "ours"
    if mean is None:
        ours = ours or _why_absent(settings, row, column, of_row)
        origin = "absent" if ours else "text"
    printed = _number(row.paper.get(column.key), digits)
    return {
        f"{name} (paper)": TableValue(printed, "paper", papers),
        f"{name} (ours)": TableValue(ours, origin, mean, cell),
        f"{name} (difference)": TableValue(stated, number=difference),
        f"{name} (mean)": TableValue(_number(mean, digits)),
        f"{name} (deviation)": TableValue(_number(deviation, digits)),
        f"{name} (each)": TableValue(scores),
    }


def _number(value: float | str | None, digits: int) -> str:
    """Write a value, empty where there is none; text stands as it is."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else value or ""


def _why_absent(settings: Settings, row: Row, column: Column, of_row: Mapping[str, Cell]) -> str:
    """Return what stands in the place of a value of ours."""
    cell = of_row.get(column.key)
    if row.kind == "cited":
        return ""
    if cell is not None:
        if cell.failures:
            return next(iter(cell.failures.values()))
        of_training = cell.measure in ("training_hours", "training_speed")
        has_others = any(other.entries for other in of_row.values())
        return "not recorded" if of_training and has_others else "not run"
    if row.task is None:
        return "not run"
    model = row.model if settings.scale.has_task(row.task) else None
    if not model or not settings.scale.model_for(model):
        return "no stand-in"
    measure = row.measures.get(column.key, column.measure)
    return "not measured" if measure or column.key in row.paper else ""


def _provenance(
    settings: Settings, row: Row, columns: Sequence[Column], ours: Mapping[str, Cell]
) -> dict[str, TableValue]:
    """Return what stands beside a row's values: heading -> text."""
    # Heading -> name of a column -> what is said of its value.
    texts: dict[str, dict[str, str]] = {heading: {} for heading in ("Lines", "Scale", *FOOTNOTES)}
    notes = []
    for column in columns:
        if cell := ours.get(column.key):
            for heading, text in _provenance_of(cell).items():
                if text:
                    texts[heading][column.name] = text
    for whose, values in (("arXiv v1", row.v1), ("the paper's best run", row.best_run)):
        for column in columns:
            if column.key in values:
                value = _number(values[column.key], column.digits)
                notes.append(f"{whose}: {column.name} {value}")
    notes += filter(None, [row.note, together(texts["Notes"])])
    scale = settings.options.scale
    stand_in = " (STAND-IN DATA)" if settings.scale.stand_in else ""
    provenance = {}
    for heading, said in texts.items():
        provenance[heading] = TableValue(said)
    provenance["Scale"] = TableValue(scale + stand_in)
    provenance["Command"] = TableValue(_command(ours.values(), scale))
    provenance["Cost"] = TableValue(_cost(settings, ours.values()))
    provenance["Notes"] = TableValue("; ".join(notes))
    return provenance


def _provenance_of(cell: Cell) -> dict[str, str]:
    """Return what stands beside a value: its runs, test set, metric, models, machine and days."""
    entries = cell.entries.values()
    if not entries:  # the cell itself says why
        return {}
    digests: dict[str, None] = {}
    processors: dict[str, None] = {}
    origins: dict[str, None] = {}
    days = []
    lines = None
    for entry in entries:
        if cell.measure not in ("bleu_of_list", "bleu_oracle"):  # the list is of other models
            for digest in entry.model_files:
                digests[digest[:_DIGITS_OF_CHECKSUM]] = None
        if entry.processor:
            processors[entry.processor] = None
        if entry.origin:
            origins[entry.origin] = None
        if lines is None:
            lines = entry.lines
        days.append(entry.date)
    test_set = ""
    if cell.testset:
        counted = "" if lines is None else f" ({lines:,} lines)"
        n_best = f", list of {cell.n_best}" if cell.n_best else ""
        test_set = f"{cell.task} {cell.testset}{counted}{n_best}"
    first_run = cell.records[0].run.run
    runs = f"{len(entries)} of {len(cell.records)}"
    return {
        "Runs": first_run if first_run.startswith("ensemble") else runs,
        "Test set": test_set,
        "Lines": "" if lines is None else str(lines),
        "Metric": " ".join([MEASURES[cell.measure].label, *cell.signatures]),
        "Model files": " ".join(digests),
        "Processor": "; ".join(processors),
        "Date": " to ".join(dict.fromkeys([min(days), max(days)])),
        "Origin": ", ".join(origins),
        "Notes": "; ".join(f"{run} {why}" for run, why in cell.failures.items()),
    }


def _command(of_row: Iterable[Cell], scale: str) -> str:
    """Return the command that runs what is missing of a row's cells.

    Paths that differ in the seed alone are written as one, which a shell takes apart again.
    """
    seeds_of: dict[tuple[str, str], dict[str, None]] = {}
    for cell in of_row:
        for record in cell.missing:
            parts = re.fullmatch(r"(.*/seed)([0-9]+)(/[^/]*)", record.file)
            before, seed, after = parts.groups() if parts else (record.file, "", "")
            seeds_of.setdefault((before, after), {})[seed] = None
    paths = []
    for (before, after), seeds in seeds_of.items():
        listed = ",".join(seeds)
        paths.append(f"{before}{{{listed}}}{after}" if len(seeds) > 1 else before + listed + after)
    return f"snakemake {' '.join(paths)} --config scale={scale}" if paths else ""


def _cost(settings: Settings, of_row: Collection[Cell]) -> str:
    """Return what the trainings of a row's missing runs take, as config/costs.yaml has it.

    Trained already is what another column of the row has a number of that was made here.
    """
    trained: set[tuple[str, str, str]] = set()
    wanted: set[tuple[str, str, str]] = set()
    for cell in of_row:
        for entry in cell.entries.values():
            if not entry.origin:
                trained.update(entry.trainings)
        if not settings.tasks[cell.task].released:
            for record in cell.missing:
                wanted.update(record.trainings)
    missing = set()
    for task, model, run in wanted - trained:
        missing.add((settings.tasks[task].text_name, model, run))
    costs = []
    trainings = Counter((text, model) for text, model, _ in sorted(missing))
    for (text, model), count in trainings.items():
        hours = "hours: see preflight"
        if known := settings.costs.training(text, model):
            hours = f"{count * known.hours:,.1f} {known.device}-hours"
        costs.append(f"{count} training{'s' if count > 1 else ''}, {hours}")
    return "; ".join(costs)
