"""The papers' tables: the printed values beside what the runs of this project scored.

No value is typed in by hand: a cell whose runs are not there says "not run".
"""

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from convs2s.config.paper import Column, Row, Table
from convs2s.config.settings import Settings
from convs2s.files import atomic_text
from convs2s.paper.cells import MEASURES, Cell, Result, read, table_of
from convs2s.paper.table_formats import FORMATS, Sheet


def table(
    settings: Settings, name: str, cells: Sequence[Cell], scores: Collection[str]
) -> pd.DataFrame:
    """Return a table with the paper's values beside ours.

    Args:
        settings: the configuration.
        name: a table or figure of config/paper.yaml.
        cells: those that the workflow measures.
        scores: those of the cells' paths that exist.

    Returns:
        A row for each row of the paper, all text. For each column of the paper "NAME (paper)" and
        "NAME (ours)", the mean over the runs ± their standard deviation, or why there is none;
        then "Runs", "Test set", "Scale", "Metric" with the metric's signature, and "Notes".

    Raises:
        UserError: config/paper.yaml has no such table.
    """
    printed = table_of(settings, name)
    ours: dict[int, dict[str, tuple[Cell, Result]]] = {}
    for cell in cells:
        ours.setdefault(cell.row, {})[cell.column] = cell, read(cell, scores)
    rows = [
        dict(_fields(settings, printed, row, ours.get(number, {})))
        for number, row in enumerate(printed.rows)
    ]
    return pd.DataFrame(rows, dtype=str)


def headings(settings: Settings, name: str) -> list[str]:
    """Return the lines above a table: title, stand-in data, scale and source, note."""
    printed, stand_in = table_of(settings, name), settings.scale.stand_in
    lines = [
        printed.title,
        f"STAND-IN DATA: {stand_in}" if stand_in else None,
        f"Scale: {settings.options.scale}. Printed values: {printed.source}.",
        printed.note,
    ]
    return [line for line in lines if line]


def write_table(
    settings: Settings,
    name: str,
    *,
    cells: Sequence[Cell],
    scores: Collection[str],
    outputs: Sequence[Path],
) -> None:
    """Write a table.

    Args:
        settings: the configuration.
        name: a table or figure of config/paper.yaml.
        cells: those that the workflow measures.
        scores: those of the cells' paths that exist.
        outputs: the files to write; the suffix says the format: .md, .csv or .tex.
    """
    sheet = Sheet(
        headings=headings(settings, name),
        frame=table(settings, name, cells, scores),
        marked=table_of(settings, name).system_label,
        footnotes=("Metric", "Notes"),
        left_out=("Scale",),
    )
    for output in outputs:
        with atomic_text(output) as stream:
            stream.write(FORMATS[output.suffix](sheet))


def _fields(
    settings: Settings, printed: Table, row: Row, ours: Mapping[str, tuple[Cell, Result]]
) -> Iterator[tuple[str, str]]:
    """Yield the heading and text of each column of a row."""
    if printed.group_label:
        yield printed.group_label, row.group or ""
    yield printed.system_label, row.system
    for column in printed.columns:
        key, digits = column.key, column.digits
        result = ours[key][1] if key in ours else None
        yield f"{column.name} (paper)", _number(row.paper.get(key), digits)
        yield f"{column.name} (ours)", _mean(result, digits) or _absent(settings, row, result)
    names = {column.key: column.name for column in printed.columns}
    measured = {names[key]: pair for key, pair in ours.items()}
    yield "Runs", _together({name: _runs(*pair) for name, pair in measured.items()})
    yield "Test set", _together({name: _testset(*pair) for name, pair in measured.items()})
    yield (
        "Scale",
        settings.options.scale + (" (STAND-IN DATA)" if settings.scale.stand_in else ""),
    )
    yield "Metric", _together({name: _metric(*pair) for name, pair in measured.items()})
    left_out = settings.scale.why_left_out(row.model, row.runs) if row.kind == "ours" else None
    yield "Notes", _notes(row, printed.columns, left_out)


def _number(value: float | str | None, digits: int) -> str:
    """Write a printed value; text stands as it is."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else value or ""


def _mean(result: Result | None, digits: int) -> str:
    """Write mean ± standard deviation; empty where there is no score."""
    if result is None or not result.scores:
        return ""
    mean = f"{statistics.mean(result.scores):.{digits}f}"
    if len(result.scores) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(result.scores):.{digits}f}"


def _absent(settings: Settings, row: Row, result: Result | None) -> str:
    """Say why there is no value of ours."""
    if row.kind == "cited":
        return ""
    if row.task is None or result is not None:
        return "not run"
    if settings.scale.why_left_out(row.model, row.runs):
        return "not run at this scale"
    return "not measured" if row.model and settings.scale.model_for(row.model) else "no stand-in"


def _together(texts: Mapping[str, str]) -> str:
    """Join one text for each column; where all are the same, or one is left, without its name."""
    said = {name: text for name, text in texts.items() if text}
    if len(set(said.values())) <= 1:
        return next(iter(said.values()), "")
    return "; ".join(f"{name}: {text}" for name, text in said.items())


def _runs(cell: Cell, result: Result) -> str:
    if cell.runs[0].startswith("ensemble"):
        return cell.runs[0]
    return f"{len(result.scores)} of {len(cell.runs)}"


def _testset(cell: Cell, result: Result) -> str:
    if cell.testset is None or cell.measure == "perplexity":
        return ""
    lines = f" ({result.lines:,} lines)" if result.lines is not None else ""
    listed = f", list of {cell.n_best}" if cell.n_best else ""
    return f"{cell.task} {cell.testset}{lines}{listed}"


def _metric(cell: Cell, result: Result) -> str:
    return " ".join([MEASURES[cell.measure].label, *result.signatures])


def _notes(row: Row, columns: Sequence[Column], left_out: str | None) -> str:
    """Join the row's note with what other versions of the paper print, and why it is not run."""
    printed = ((row.v1, "arXiv v1"), (row.best_run, "the paper's best run"))
    others = [
        f"{what}: {column.name} {_number(values[column.key], column.digits)}"
        for values, what in printed
        for column in columns
        if column.key in values
    ]
    return "; ".join([*others, *(note for note in (row.note, left_out) if note)])
