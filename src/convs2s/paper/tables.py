"""The papers' tables: the printed values beside what the runs of this project scored.

No value is typed in by hand: a cell whose runs are not in the ledger says "not run", or why.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from convs2s.config.paper import Column, Row, Table
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text
from convs2s.paper import provenance
from convs2s.paper.cells import Cell, table_of
from convs2s.paper.ledger import entries_of
from convs2s.paper.ledger_entry import read_ledger
from convs2s.paper.results import Result, results
from convs2s.paper.table_formats import FORMATS, Sheet

FOOTNOTES = {
    "Metric": "{}",
    "Model files": "model files, SHA-256: {}",
    "Processor": "computed on: {}",
    "Date": "date: {}",
    "Command": "to run it: `{}`",
    "Cost": "which takes {}",
    "Notes": "{}",
}
"""Columns that are printed as footnotes, and what stands there."""

_PAPER, _OURS, _DIFFERENCE = "{} (paper)", "{} (ours)", "{} (difference)"
_DETAILS = ("{} (mean)", "{} (deviation)", "{} (each)")


def table(
    settings: Settings, name: str, found: Sequence[Result], published: str | None = None
) -> pd.DataFrame:
    """Return a table with the paper's values beside ours.

    Args:
        settings: the configuration.
        name: a table or figure of config/paper.yaml.
        found: what its cells show.
        published: what a published ledger is called; None where there is none.

    Returns:
        A row for each row of the paper that the scale has, all text. For each column of the paper
        "NAME (paper)"; "NAME (ours)", the mean over the runs ± their standard deviation, each run's
        where their metrics or machines differ, or why there is none; "NAME (difference)", ours less
        the paper's; and "NAME (mean)", "(deviation)" and "(each)", the score of each run. Then
        "Runs", "Test set", "Lines", "Scale" and the columns of `FOOTNOTES`: the metric with its
        signature, the first digits of the model files' SHA-256, the processor, the days, the
        command that runs what is missing, what it takes.

    Raises:
        UserError: config/paper.yaml has no such table.
    """
    printed = table_of(settings, name)
    ours: dict[int, dict[str, Result]] = {}
    for result in found:
        ours.setdefault(result.cell.row, {})[result.cell.column] = result
    rows = [
        dict(_fields(settings, printed, printed.rows[number], ours.get(number, {}), published))
        for number in settings.scale.shown_rows(printed)
    ]
    return pd.DataFrame(rows, dtype=str)


def headings(settings: Settings, name: str) -> list[str]:
    """Return the lines above a table: title, stand-in data, scale and source, notes."""
    printed, stand_in = table_of(settings, name), settings.scale.stand_in
    lines = [
        printed.title,
        f"STAND-IN DATA: {stand_in}" if stand_in else None,
        f"Scale: {settings.options.scale}. Printed values: {printed.source}.",
        printed.note,
        *_left_out(printed, settings.scale),
    ]
    return [line for line in lines if line]


def _left_out(printed: Table, scale: Scale) -> Iterator[str]:
    """Yield which rows of the paper's the scale does not have, a line for each reason."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for row in printed.rows:
        if because := scale.why_left_out(row):
            groups = reasons.setdefault(because, {})
            groups.setdefault(row.group or "", []).append(row.system)
    for because, groups in reasons.items():
        named = (f"{group} {', '.join(rows)}".strip() for group, rows in groups.items())
        yield f"Left out at this scale, as {because}: {'; '.join(named)}."


def sheet(
    settings: Settings, name: str, found: Sequence[Result], published: str | None = None
) -> Sheet:
    """Return a table with what stands around it: the arguments are those of `table`.

    Raises:
        UserError: config/paper.yaml has no such table.
    """
    printed = table_of(settings, name)
    names = [column.name for column in printed.columns]
    return Sheet(
        headings=headings(settings, name),
        frame=table(settings, name, found, published),
        marked=printed.system_label,
        footnotes=FOOTNOTES,
        joined={_OURS.format(one): _DIFFERENCE.format(one) for one in names},
        left_out=["Scale", "Lines", *(form.format(one) for one in names for form in _DETAILS)],
    )


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
    """Write a table.

    Args:
        settings: the configuration.
        name: a table or figure of config/paper.yaml.
        cells: those that the workflow measures.
        scores: those of the cells' paths that exist.
        published: a published ledger, which gives runs that were not made here; None without one.
        failures: path of a run's numbers -> why it failed.
        outputs: the files to write; the suffix says the format: .md, .csv, .tex or .svg.

    Raises:
        UserError: config/paper.yaml has no such table, or the published ledger is damaged.
    """
    own = entries_of(settings, {name: cells}, scores)
    others = read_ledger(Path(published)) if published else []
    found = results(cells, own, published=others, failures=failures)
    written = sheet(settings, name, found, settings.options.published)
    for output in outputs:
        with atomic_text(output) as stream:
            stream.write(FORMATS[output.suffix](written))


def _fields(
    settings: Settings, printed: Table, row: Row, ours: Mapping[str, Result], published: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the heading and text of each column of a row."""
    if printed.group_label:
        yield printed.group_label, row.group or ""
    yield printed.system_label, row.system
    for column in printed.columns:
        yield from _values(settings, row, column, ours.get(column.key))
    scale, names = settings.options.scale, {one.key: one.name for one in printed.columns}

    def together(text: Callable[[Result], str]) -> str:
        """Join what stands beside each column."""
        return _together({names[key]: text(result) for key, result in ours.items()})

    yield "Runs", together(provenance.runs)
    yield "Test set", together(provenance.testset)
    yield "Lines", together(lambda result: "" if result.lines is None else str(result.lines))
    yield "Scale", scale + (" (STAND-IN DATA)" if settings.scale.stand_in else "")
    yield "Metric", together(provenance.metric)
    yield "Model files", together(provenance.models)
    yield "Processor", together(provenance.processors)
    yield "Date", together(provenance.days)
    yield "Command", provenance.command(ours.values(), scale)
    yield "Cost", provenance.cost(ours.values(), settings)
    remarks = together(lambda result: provenance.notes(result, published))
    yield "Notes", _notes(row, printed.columns, remarks)


def _values(
    settings: Settings, row: Row, column: Column, result: Result | None
) -> Iterator[tuple[str, str]]:
    """Yield the heading and text of what a column of the paper becomes."""
    name, digits, printed = column.name, column.digits, row.paper.get(column.key)
    mean, deviation = (result.mean, result.deviation) if result else (None, None)
    each = provenance.seeds(result, digits) if result else ""
    ours = each if mean is None else f"{mean:.{digits}f}"
    if ours and deviation is not None:
        ours += f" ± {deviation:.{digits}f}"
    if ours and result and result.published:
        ours += f" {provenance.PUBLISHED_MARK}"
    papers = _value(printed)
    known = None not in (mean, papers)
    yield _PAPER.format(name), _number(printed, digits)
    yield _OURS.format(name), ours or _absent(settings, row, result)
    difference = f"{(mean or 0) - (papers or 0):+.{digits}f}" if known else ""
    yield _DIFFERENCE.format(name), difference
    details = (_rounded(mean, digits), _rounded(deviation, digits))
    yield from zip((form.format(name) for form in _DETAILS), (*details, each), strict=True)


def _number(value: float | str | None, digits: int) -> str:
    """Write a printed value; text stands as it is."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else value or ""


def _value(printed: float | str | None) -> float | None:
    """Return the number of a printed value; None where it is none, as "~45"."""
    if isinstance(printed, str):
        return float(printed) if printed.replace(".", "", 1).isdigit() else None
    return printed


def _rounded(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _absent(settings: Settings, row: Row, result: Result | None) -> str:
    """Say why there is no value of ours."""
    if row.kind == "cited":
        return ""
    if result is not None and result.failures:
        return f"failed: {next(iter(result.failures.values()))}"
    if row.task is None or result is not None:
        return "not run"
    is_there = settings.scale.has_task(row.task) and row.model
    return "not measured" if is_there and settings.scale.model_for(is_there) else "no stand-in"


def _together(texts: Mapping[str, str]) -> str:
    """Join one text for each column; where all are the same, or one is left, without its name."""
    said = {name: text for name, text in texts.items() if text}
    if len(set(said.values())) <= 1:
        return next(iter(said.values()), "")
    return "; ".join(f"{name}: {text}" for name, text in said.items())


def _notes(row: Row, columns: Sequence[Column], remarks: str) -> str:
    """Join the row's note with what other versions print and with what is marked."""
    printed = ((row.v1, "arXiv v1"), (row.best_run, "the paper's best run"))
    others = [
        f"{what}: {column.name} {_number(values[column.key], column.digits)}"
        for values, what in printed
        for column in columns
        if column.key in values
    ]
    return "; ".join([*others, *(note for note in (row.note, remarks) if note)])
