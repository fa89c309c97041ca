"""The papers' tables: the printed values beside what the runs of this project scored.

No value is typed in by hand: a cell whose runs are not in the ledger says "not run", or why.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from convs2s.config.measures import MEASURES
from convs2s.config.paper import Column, Row, printed_number
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.files.atomic import atomic_path
from convs2s.paper.cells import Cell
from convs2s.paper.results import Result, entries_of, results
from convs2s.paper.table_formats import FORMATS, Sheet, together

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

_PAPER = "{} (paper)"
_OURS = "{} (ours)"
_DIFFERENCE = "{} (difference)"
_DETAILS = ("{} (mean)", "{} (deviation)", "{} (each)")
_DIGITS_OF_CHECKSUM = 10
_MOST_NAMED = 20  # rows that a scale leaves out: of more their number is said


@dataclass(frozen=True)
class TableValue:
    """What a table says in one place: its text, and the number behind it."""

    text: str
    of: Literal["paper", "ours"] | None = None  # whose value it is; None of names and differences
    number: float | None = None
    result: Result | None = None  # the runs that a value of ours rests on, if any can be run
    of_values: Mapping[str, str] = field(default_factory=dict)
    """Of what stands beside a row's values: the name of each -> the text of its own."""


TableRow = Mapping[str, TableValue]  # heading -> what a row says there


def table_rows(settings: Settings, name: str, shown: Iterable[Result]) -> list[TableRow]:
    """Return the rows of a table: each of the paper's that the scale has, ours beside it.

    For each column of the paper a row has "NAME (paper)"; "NAME (ours)", the mean over the runs ±
    their standard deviation, each run's where their signatures differ, or why there is none; "NAME
    (difference)", ours less the paper's, empty on stand-in data; and "NAME (mean)", "(deviation)"
    and "(each)", the score of each run. Then "Lines", "Scale" and the columns of
    `FOOTNOTES`: runs, test set, the metric with its signature, processor, days, ledger, the first
    digits of the model files' SHA-256, the command that runs what is missing, its cost, and notes.
    """
    printed = settings.paper[name]
    ours: dict[int, dict[str, Result]] = {}
    for result in shown:
        address = result.cell.address
        ours.setdefault(address.row, {})[address.column] = result
    rows = list[TableRow]()
    for number, row in enumerate(printed.rows):
        if settings.scale.why_left_out(row):
            continue
        of_row = ours.get(number, {})
        values: dict[str, TableValue] = {}
        if printed.group_label:
            values[printed.group_label] = TableValue(row.group or "")
        values[printed.system_label] = TableValue(row.system)
        for column in printed.columns:
            values |= _values(settings, row, column, of_row)
        rows.append(values | _provenance(settings, row, printed.columns, of_row))
    return rows


def sheet(settings: Settings, name: str, shown: Iterable[Result]) -> Sheet:
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
        rows.append({heading: value.of_values or value.text for heading, value in values.items()})
    left_out_columns = ["Scale", "Lines"]
    joined = {}
    for column in printed.columns:
        for form in _DETAILS:
            left_out_columns.append(form.format(column.name))
        joined[_OURS.format(column.name)] = _DIFFERENCE.format(column.name)
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

    ``failures`` are path of a run's numbers -> `failures_of`; for the others see `entries_of`.
    """
    entries = entries_of(settings, cells, scores, published)
    written = sheet(settings, name, results(cells, entries, failures))
    for output in outputs:
        with atomic_path(output) as temporary:
            temporary.write_text(FORMATS[output.suffix](written), "utf-8")


def _values(
    settings: Settings, row: Row, column: Column, of_row: Mapping[str, Result]
) -> dict[str, TableValue]:
    """Return what a column of the paper becomes: heading -> value."""
    result = of_row.get(column.key)
    name = column.name
    digits = column.digits
    papers = printed_number(row, column.key)
    mean = deviation = difference = None
    scores = ours = ""
    if result is not None:
        mean = result.mean
        deviation = result.deviation
        scores = "; ".join(f"{run} {score:.{digits}f}" for run, score in result.scores.items())
        ours = _number(mean, digits) or scores
        if ours and deviation is not None:
            ours += f" ± {deviation:.{digits}f}"
        if ours and result.published:
            ours += f" {_PUBLISHED_MARK}"
    # On stand-in data the two are of different texts: a difference would say nothing.
    compared = None if settings.scale.stand_in else papers
    if mean is not None and compared is not None:
        difference = mean - compared
    ours = ours or _why_absent(settings, row, column, of_row)
    stated = "" if difference is None else f"{difference:+.{digits}f}"
    of_mean, of_deviation, of_each = _DETAILS
    return {
        _PAPER.format(name): TableValue(
            _number(row.paper.get(column.key), digits), "paper", papers
        ),
        _OURS.format(name): TableValue(ours, "ours", mean, result),
        _DIFFERENCE.format(name): TableValue(stated, number=difference),
        of_mean.format(name): TableValue(_number(mean, digits)),
        of_deviation.format(name): TableValue(_number(deviation, digits)),
        of_each.format(name): TableValue(scores),
    }


def _number(value: float | str | None, digits: int) -> str:
    """Write a value, empty where there is none; text stands as it is."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else value or ""


def _why_absent(settings: Settings, row: Row, column: Column, of_row: Mapping[str, Result]) -> str:
    """Return what stands in the place of a value of ours."""
    result = of_row.get(column.key)
    if row.kind == "cited":
        return ""
    if result is not None:
        for failure in result.failures.values():
            return failure
        of_training = result.cell.measure in ("training_hours", "training_speed")
        if of_training and any(other.entries for other in of_row.values()):
            return "not recorded"
        return "not run"
    if row.task is None:
        return "not run"
    model = row.model if settings.scale.has_task(row.task) else None
    if not model or not settings.scale.model_for(model):
        return "no stand-in"
    measure = row.measures.get(column.key, column.measure)
    return "not measured" if measure or column.key in row.paper else ""


def _provenance(
    settings: Settings, row: Row, columns: Sequence[Column], ours: Mapping[str, Result]
) -> dict[str, TableValue]:
    """Return what stands beside a row's values: heading -> text."""
    names = {column.key: column.name for column in columns}
    # Heading -> name of a column -> what is said of its value.
    texts: dict[str, dict[str, str]] = {}
    for heading in ("Lines", "Scale", *FOOTNOTES):
        texts[heading] = {}
    for key, result in ours.items():
        for heading, text in _provenance_of(result).items():
            if text:
                texts[heading][names[key]] = text
    beside: dict[str, TableValue] = {}
    for heading, of_values in texts.items():
        beside[heading] = TableValue(together(of_values), of_values=of_values)
    notes = []
    for whose, values in (("arXiv v1", row.v1), ("the paper's best run", row.best_run)):
        for column in columns:
            if column.key in values:
                value = _number(values[column.key], column.digits)
                notes.append(f"{whose}: {column.name} {value}")
    for note in (row.note, beside["Notes"].text):
        if note:
            notes.append(note)
    scale = settings.options.scale
    stand_in = " (STAND-IN DATA)" if settings.scale.stand_in else ""
    beside["Scale"] = TableValue(scale + stand_in)
    beside["Command"] = TableValue(_command(ours.values(), scale))
    beside["Cost"] = TableValue(_cost(settings, ours.values()))
    beside["Notes"] = TableValue("; ".join(notes))
    return beside


def _provenance_of(result: Result) -> dict[str, str]:
    """Return what stands beside a value: its runs, test set, metric, models, machine and days."""
    cell = result.cell
    first_run = cell.files[0].run
    if not result.entries:  # the cell itself says why
        return {}
    digests: dict[str, None] = {}
    processors: dict[str, None] = {}
    origins: dict[str, None] = {}
    days = []
    for entry in result.entries.values():
        if cell.measure not in ("bleu_of_list", "bleu_oracle"):  # the list is of other models
            for digest in entry.model_files:
                digests[digest[:_DIGITS_OF_CHECKSUM]] = None
        if entry.processor:
            processors[entry.processor] = None
        if entry.origin:
            origins[entry.origin] = None
        days.append(entry.date)
    first_day = min(days)
    last_day = max(days)
    test_set = ""
    if cell.testset:
        lines = f" ({result.lines:,} lines)" if result.lines is not None else ""
        n_best = f", list of {cell.n_best}" if cell.n_best else ""
        test_set = f"{cell.task} {cell.testset}{lines}{n_best}"
    runs = f"{len(result.entries)} of {len(cell.files)}"
    return {
        "Runs": first_run if first_run.startswith("ensemble") else runs,
        "Test set": test_set,
        "Lines": "" if result.lines is None else str(result.lines),
        "Metric": " ".join([MEASURES[cell.measure].label, *result.signatures]),
        "Model files": " ".join(digests),
        "Processor": "; ".join(processors),
        "Date": first_day if first_day == last_day else f"{first_day} to {last_day}",
        "Origin": ", ".join(origins),
        "Notes": "; ".join(f"{run} {why}" for run, why in result.failures.items()),
    }


def _command(of_row: Iterable[Result], scale: str) -> str:
    """Return the command that runs what is missing of a row's cells.

    Paths that differ in the seed alone are written as one, which a shell takes apart again.
    """
    seeds_of: dict[tuple[str, str], list[str]] = {}
    for result in of_row:
        for file in result.missing:
            parts = re.fullmatch(r"(.*/seed)([0-9]+)(/[^/]*)", file.path)
            before, seed, after = parts.groups() if parts else (file.path, "", "")
            seeds = seeds_of.setdefault((before, after), [])
            if seed not in seeds:
                seeds.append(seed)
    paths = []
    for (before, after), seeds in seeds_of.items():
        listed = f"{{{','.join(seeds)}}}" if len(seeds) > 1 else seeds[0]
        paths.append(f"{before}{listed}{after}")
    return f"snakemake {' '.join(paths)} --config scale={scale}" if paths else ""


def _cost(settings: Settings, of_row: Collection[Result]) -> str:
    """Return what the trainings of a row's missing runs take, as config/costs.yaml has it.

    Trained already is what another column of the row has a number of that was made here.
    """
    trained = set()
    for result in of_row:
        for run in result.entries:
            if run not in result.published:
                for member in members(run):
                    trained.add((result.cell.task, result.cell.model, member))
    missing = set()
    for result in of_row:
        task = settings.tasks[result.cell.task]
        for file in result.missing:
            for member in members(file.run):
                training = result.cell.task, result.cell.model, member
                if training not in trained and not task.released:
                    missing.add((task.text_name, result.cell.model, member))
    trainings = Counter[tuple[str, str]]()
    for text, model, _ in sorted(missing):
        trainings[text, model] += 1
    costs = []
    for (text, model), count in trainings.items():
        hours = "hours: see preflight"
        if known := settings.costs.training(text, model):
            hours = f"{count * known.hours:,.1f} {known.device}-hours"
        costs.append(f"{count} training{'s' if count > 1 else ''}, {hours}")
    return "; ".join(costs)
