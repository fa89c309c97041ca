"""The papers' tables: the printed values beside what the runs of this project scored.

No value is typed in by hand: a cell whose runs are not in the ledger says "not run", or why.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from convs2s.config.claims import printed_number
from convs2s.config.measures import measure_called
from convs2s.config.paper import Column, Row
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.files.text import write_text
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

_PAPER, _OURS, _DIFFERENCE = "{} (paper)", "{} (ours)", "{} (difference)"
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
    for number in settings.scale.shown_rows(printed):
        row, of_row = printed.rows[number], ours.get(number, {})
        group = {printed.group_label: row.group or ""} if printed.group_label else {}
        names = {heading: TableValue(text) for heading, text in group.items()}
        names[printed.system_label] = TableValue(row.system)
        for column in printed.columns:
            names |= _values(settings, row, column, of_row)
        rows.append(names | _provenance(settings, row, printed.columns, of_row))
    return rows


def sheet(settings: Settings, name: str, shown: Iterable[Result]) -> Sheet:
    """Return a table as text, below its title, stand-in data, scale and source, and notes."""
    printed, scale = settings.paper[name], settings.scale
    reasons: dict[str, dict[str, list[str]]] = {}
    for row in printed.rows:
        if because := scale.why_left_out(row):
            groups = reasons.setdefault(because, {})
            groups.setdefault(row.group or "", []).append(row.system)
    left_out = {
        because: "; ".join(
            f"{group} {', '.join(rows)}".strip()
            if len(rows) <= _MOST_NAMED
            else f"{len(rows)} rows of {group}".removesuffix(" of ")
            for group, rows in groups.items()
        )
        for because, groups in reasons.items()
    }
    above = [
        printed.title,
        f"STAND-IN DATA: {scale.stand_in}" if scale.stand_in else None,
        f"Scale: {settings.options.scale}. Printed values: {printed.source}.",
        printed.note,
        *(f"Left out at this scale, as {why}: {rows}." for why, rows in left_out.items()),
    ]
    columns = [column.name for column in printed.columns]
    details = [form.format(column) for column in columns for form in _DETAILS]
    rows = table_rows(settings, name, shown)
    return Sheet(
        headings=[line for line in above if line],
        rows=[
            {heading: value.of_values or value.text for heading, value in row.items()}
            for row in rows
        ],
        marked=printed.system_label,
        footnotes=FOOTNOTES,
        joined={_OURS.format(column): _DIFFERENCE.format(column) for column in columns},
        left_out=["Scale", "Lines", *details],
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
        write_text(output, FORMATS[output.suffix](written))


def _values(
    settings: Settings, row: Row, column: Column, of_row: Mapping[str, Result]
) -> dict[str, TableValue]:
    """Return what a column of the paper becomes: heading -> value."""
    result = of_row.get(column.key)
    name, digits, printed = column.name, column.digits, row.paper.get(column.key)
    papers = printed_number(row, column.key)
    mean, deviation = (result.mean, result.deviation) if result else (None, None)
    each = result.scores.items() if result else ()
    scores = "; ".join(f"{run} {score:.{digits}f}" for run, score in each)
    ours = _number(mean, digits) or scores
    if ours and deviation is not None:
        ours += f" ± {deviation:.{digits}f}"
    if ours and result and result.published:
        ours += f" {_PUBLISHED_MARK}"
    # On stand-in data the two are of different texts: a difference would say nothing.
    compared = None if settings.scale.stand_in else papers
    difference = None if mean is None or compared is None else mean - compared
    stated = (_number(mean, digits), _number(deviation, digits), scores)
    details = zip(_DETAILS, stated, strict=True)
    return {
        _PAPER.format(name): TableValue(_number(printed, digits), "paper", papers),
        _OURS.format(name): TableValue(
            ours or _why_absent(settings, row, column, of_row), "ours", mean, result
        ),
        _DIFFERENCE.format(name): TableValue(
            "" if difference is None else f"{difference:+.{digits}f}", number=difference
        ),
        **{form.format(name): TableValue(text) for form, text in details},
    }


def _number(value: float | str | None, digits: int) -> str:
    """Write a value, empty where there is none; text stands as it is."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else value or ""


def _why_absent(settings: Settings, row: Row, column: Column, of_row: Mapping[str, Result]) -> str:
    result = of_row.get(column.key)
    if row.kind == "cited":
        return ""
    if result is not None and result.failures:
        return next(iter(result.failures.values()))
    if result is not None and result.cell.measure in ("training_hours", "training_speed"):
        return "not recorded" if any(other.entries for other in of_row.values()) else "not run"
    if row.task is None or result is not None:
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
    of_columns = {names[key]: _provenance_of(result) for key, result in ours.items()}
    beside = {}
    for heading in ("Lines", "Scale", *FOOTNOTES):
        texts = {name: said[heading] for name, said in of_columns.items() if said.get(heading)}
        beside[heading] = TableValue(together(texts), of_values=texts)
    scale = settings.options.scale
    others = [
        f"{whose}: {column.name} {_number(values[column.key], column.digits)}"
        for values, whose in ((row.v1, "arXiv v1"), (row.best_run, "the paper's best run"))
        for column in columns
        if column.key in values
    ]
    notes = "; ".join(note for note in (*others, row.note, beside["Notes"].text) if note)
    return beside | {
        "Scale": TableValue(scale + (" (STAND-IN DATA)" if settings.scale.stand_in else "")),
        "Command": TableValue(_command(ours.values(), scale)),
        "Cost": TableValue(_cost(list(ours.values()), settings)),
        "Notes": TableValue(notes),
    }


def _provenance_of(result: Result) -> dict[str, str]:
    """Return what stands beside a value: its runs, test set, metric, models, machine and days."""
    cell, entries = result.cell, result.entries.values()
    is_ensemble = cell.runs[0].startswith("ensemble")
    lines = f" ({result.lines:,} lines)" if result.lines is not None else ""
    n_best = f", list of {cell.n_best}" if cell.n_best else ""
    made = () if cell.measure in ("bleu_of_list", "bleu_oracle") else entries  # others made it
    digests = (digest[:_DIGITS_OF_CHECKSUM] for entry in made for digest in entry.model_files)
    processors = (entry.processor for entry in entries if entry.processor)
    days = sorted({entry.date for entry in entries})
    if not result.entries:  # the cell itself says why
        return {}
    return {
        "Runs": cell.runs[0] if is_ensemble else f"{len(entries)} of {len(cell.runs)}",
        "Test set": f"{cell.task} {cell.testset}{lines}{n_best}" if cell.testset else "",
        "Lines": "" if result.lines is None else str(result.lines),
        "Metric": " ".join([measure_called(cell.measure).label, *result.signatures]),
        "Model files": " ".join(dict.fromkeys(digests)),
        "Processor": "; ".join(dict.fromkeys(processors)),
        "Date": " to ".join(dict.fromkeys((days[0], days[-1]))),
        "Origin": ", ".join(dict.fromkeys(entry.origin for entry in entries if entry.origin)),
        "Notes": "; ".join(f"{run} {why}" for run, why in result.failures.items()),
    }


def _command(of_row: Iterable[Result], scale: str) -> str:
    """Return the command that runs what is missing of a row's cells.

    Paths that differ in the seed alone are written as one, which a shell takes apart again.
    """
    seeds_of: dict[tuple[str, str], list[str]] = {}
    for path in dict.fromkeys(file.path for result in of_row for file in result.missing):
        parts = re.fullmatch(r"(.*/seed)([0-9]+)(/[^/]*)", path)
        before, seed, after = parts.groups() if parts else (path, "", "")
        seeds_of.setdefault((before, after), []).append(seed)
    paths = [
        f"{before}{{{','.join(seeds)}}}{after}" if len(seeds) > 1 else f"{before}{seeds[0]}{after}"
        for (before, after), seeds in seeds_of.items()
    ]
    return f"snakemake {' '.join(paths)} --config scale={scale}" if paths else ""


def _cost(of_row: Sequence[Result], settings: Settings) -> str:
    """Return what the trainings of a row's missing runs take, as config/costs.yaml has it.

    Trained already is what another column of the row has a number of that was made here.
    """
    trained = {
        (result.cell.task, result.cell.model, member)
        for result in of_row
        for run in result.entries.keys() - result.published
        for member in members(run)
    }
    missing = {
        (settings.tasks[result.cell.task].text_name, result.cell.model, member)
        for result in of_row
        if not settings.tasks[result.cell.task].released
        for file in result.missing
        for member in members(file.run)
        if (result.cell.task, result.cell.model, member) not in trained
    }
    costs = []
    for names, count in Counter((text, model) for text, model, _ in sorted(missing)).items():
        known = settings.costs.training(*names)
        hours = (
            f"{count * known.hours:,.1f} {known.device}-hours" if known else "hours: see preflight"
        )
        costs.append(f"{count} training{'s' if count > 1 else ''}, {hours}")
    return "; ".join(costs)
