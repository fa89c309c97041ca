"""The papers' tables: the printed values beside the scores of this project's runs.

No value of this project is typed in by hand. If the ledger has no run of a cell, the table prints
the reason in place of the value, such as "not run".
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
from convs2s.paper.cells import Cell, stand_ins
from convs2s.paper.results import entries_of, results
from convs2s.paper.table_formats import FORMATS, CellText, Sheet, as_one_text

_PUBLISHED_MARK = "†"  # follows a value of ours that comes from the published ledger

FOOTNOTES = {
    "Runs": "runs: {}",
    "Test set": "test set: {}",
    "Metric": "{}",
    "Processor": "computed on: {}",
    "Date": "date: {}",
    "Origin": _PUBLISHED_MARK + " from the published ledger {}",
    "Model files": "model files, SHA-256: {}",
    "Command": "to run it: `{}`",
    "Cost": "which takes {}",
    "Notes": "{}",
}
"""Columns that are printed as footnotes -> the format string of the footnote."""

_SHARED = ("Runs", "Test set", "Metric", "Processor", "Date", "Origin")
"""Footnotes that are printed once above the table if most rows have them (`Sheet.shared`)."""

_LEFT_OUT_FOR_READERS = ("Model files", "Date", "Command", "Cost")
"""Columns for people who check a row or run it; the report and docs/results.md omit them."""

_DIGITS_OF_CHECKSUM = 10
# If more rows of a group than this are left out, the table states their number, not their names.
_MOST_NAMED = 20


@dataclass(frozen=True)
class TableValue:
    """The content of a row in one column: its text, and the number that the text shows.

    ``origin`` is "paper" for a printed value, "ours" for a value of this project, "absent" if the
    text is the reason why our value is missing, and "text" for anything else.
    """

    content: CellText
    origin: Literal["paper", "ours", "absent", "text"] = "text"
    number: float | None = None
    cell: Cell | None = None  # the cell of a value of ours, else None

    @property
    def text(self) -> str:
        """The content as one text."""
        return as_one_text(self.content)


TableRow = Mapping[str, TableValue]  # heading of a column -> the content of the row


def table_rows(
    settings: Settings,
    name: str,
    shown: Sequence[Cell],
) -> list[TableRow]:
    """Return the rows of a table that the scale has, with our values beside the paper's.

    ``shown`` are the table's cells, with scores. The first columns of a row are its group, if the
    table has groups, and its system. Each column NAME of the paper then becomes these columns:

    - "NAME (paper)": the printed value.
    - "NAME (ours)": the mean over the runs ± their standard deviation. If the runs' signatures
      differ, it is the score of each run. If there is no score, it is the reason.
    - "NAME (difference)": our mean minus the paper's value; empty on stand-in data.
    - "NAME (mean)" and "NAME (deviation)": the two numbers of "NAME (ours)" alone.
    - "NAME (each)": the score of each run.

    The last columns are "Lines" (of the test set), "Scale", and those of `FOOTNOTES`.
    """
    printed = settings.paper[name]
    rows = list[TableRow]()
    for index in settings.scale.shown_rows(printed):
        row = printed.rows[index]
        row_cells = {}  # key of a column -> cell
        for cell in shown:
            if cell.address.row == index:
                row_cells[cell.address.column] = cell
        values: dict[str, TableValue] = {}
        # A row also names what was really run: the task that stands in for the paper's text, and
        # the device on which a time was measured.
        group = row.group or ""
        system = row.system
        tasks = dict[str, None]()  # an ordered set
        for cell in row_cells.values():
            tasks[cell.task] = None
            if cell.measure in ("seconds_cpu", "seconds_cuda") and cell.entries:
                # The signature begins with the name of the device.
                device, _, _ = cell.signatures[0].partition(",")
                system += f"; ours: {device}"
        if settings.scale.stand_in and printed.group_label == "Task" and tasks:
            group = f"{', '.join(tasks)} in place of {group}"
        if printed.group_label:
            values[printed.group_label] = TableValue(group)
        values[printed.system_label] = TableValue(system)
        for column in printed.columns:
            values |= _values(settings, row, column, row_cells)
        rows.append(values | _provenance(settings, row, printed.columns, row_cells))
    return rows


def sheet(
    settings: Settings,
    name: str,
    shown: Sequence[Cell],
) -> Sheet:
    """Return a table as text, with the lines that are printed above it.

    These lines are the title, what stands in for the paper's data, the scale, the source of the
    printed values, the table's note, and the rows that the scale leaves out, with the reasons.
    """
    printed = settings.paper[name]
    source = f"Printed values: {printed.source}."
    headings = headings_of(settings, printed.title, source)
    if printed.note:
        headings.append(printed.note)
    left_out_rows: dict[str, dict[str, list[str]]] = {}  # reason -> group -> systems
    for row in printed.rows:
        if reason := settings.scale.why_left_out(row):
            groups = left_out_rows.setdefault(reason, {})
            groups.setdefault(row.group or "", []).append(row.system)
    for reason, groups in left_out_rows.items():
        named = []
        for group, systems in groups.items():
            if len(systems) <= _MOST_NAMED:
                listed = ", ".join(systems)
                named.append(f"{group} {listed}".lstrip())
            else:
                counted = f"{len(systems)} rows"
                named.append(f"{counted} of {group}" if group else counted)
        headings.append(
            f"Left out at this scale, because {reason}: {'; '.join(named)}."
        )
    rows = []
    for values in table_rows(settings, name, shown):
        rows.append({heading: value.content for heading, value in values.items()})
    left_out_columns = ["Scale", "Lines"]
    joined = {}
    for column in printed.columns:
        for part in ("mean", "deviation", "each"):
            left_out_columns.append(f"{column.name} ({part})")
        joined[f"{column.name} (ours)"] = f"{column.name} (difference)"
    return Sheet(
        headings=headings,
        rows=rows,
        marked=printed.system_label,
        footnotes=FOOTNOTES,
        joined=joined,
        left_out=left_out_columns,
        shared=_SHARED,
    )


def headings_of(
    settings: Settings,
    title: str,
    note: str,
) -> list[str]:
    """Return the lines above a table: title, stand-in data if any, and the scale with a note."""
    headings = [title]
    if settings.scale.stand_in:
        headings.append(f"STAND-IN DATA: {settings.scale.stand_in}")
    return [*headings, f"Scale: {settings.options.scale}. {note}"]


def scale_name(settings: Settings) -> str:
    """Return the name of the scale, with a mark if its data stands in for the paper's."""
    mark = " (STAND-IN DATA)" if settings.scale.stand_in else ""
    return settings.options.scale + mark


def for_readers(printed: Sheet) -> Sheet:
    """Return a table without the columns for people who check a row or run it."""
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

    For ``failures`` see `results`; for ``cells``, ``scores`` and ``published`` see `entries_of`.
    """
    entries = entries_of(settings, cells, scores, published)
    written = sheet(settings, name, results(cells, entries, failures))
    for output in outputs:
        with atomic_path(output) as temporary:
            temporary.write_text(FORMATS[output.suffix](written), "utf-8")


def _values(
    settings: Settings,
    row: Row,
    column: Column,
    row_cells: Mapping[str, Cell],
) -> dict[str, TableValue]:
    """Return the values that a row has for a column of the paper: heading -> value.

    ``row_cells`` are the cells of the row, by the key of their column.
    """
    name = column.name
    digits = column.digits
    printed = printed_number(row, column.key)
    printed_text = _formatted(row.paper.get(column.key), digits)
    values = {f"{name} (paper)": TableValue(printed_text, "paper", printed)}
    for part in ("ours", "difference", "mean", "deviation", "each"):
        values[f"{name} ({part})"] = TableValue("")
    cell = row_cells.get(column.key)
    if cell is None or not cell.entries:
        if reason := _why_absent(settings, row, column, row_cells):
            values[f"{name} (ours)"] = TableValue(reason, "absent")
        return values
    each = "; ".join(f"{run} {score:.{digits}f}" for run, score in cell.scores.items())
    text = each if cell.mean is None else _formatted(cell.mean, digits)
    if cell.deviation is not None:
        text += f" ± {cell.deviation:.{digits}f}"
    if any(entry.origin for entry in cell.entries.values()):
        text += f" {_PUBLISHED_MARK}"
    values[f"{name} (ours)"] = TableValue(text, "ours", cell.mean, cell)
    # On stand-in data, the values are scores of different texts, so no difference is stated.
    compared = None if settings.scale.stand_in else printed
    if cell.mean is not None and compared is not None:
        difference = cell.mean - compared
        values[f"{name} (difference)"] = TableValue(
            f"{difference:+.{digits}f}", number=difference
        )
    values[f"{name} (mean)"] = TableValue(_formatted(cell.mean, digits))
    values[f"{name} (deviation)"] = TableValue(_formatted(cell.deviation, digits))
    values[f"{name} (each)"] = TableValue(each)
    return values


def _formatted(value: float | str | None, digits: int) -> str:
    """Return a number with this many decimal places, a text unchanged, or "" for None."""
    if isinstance(value, int | float):
        return f"{value:.{digits}f}"
    return value or ""


def _why_absent(
    settings: Settings,
    row: Row,
    column: Column,
    row_cells: Mapping[str, Cell],
) -> str:
    """Return why a row has no value of ours in a column; "" if none is expected there."""
    if row.kind == "cited":
        return ""
    cell = row_cells.get(column.key)
    if cell is not None:
        if cell.failures:
            return next(iter(cell.failures.values()))
        # Scores in other columns show that the model was trained, but its time was not recorded.
        is_time_of_training = cell.measure in ("training_hours", "training_speed")
        has_other_scores = any(other.entries for other in row_cells.values())
        if is_time_of_training and has_other_scores:
            return "not recorded"
        return "not run"
    if row.task is None:
        return "not run"
    if stand_ins(settings.scale, row) is None:
        return "no stand-in"
    # A value of ours is expected if a measure or a printed value is stated.
    is_expected = row.measure_in(column) is not None or column.key in row.paper
    return "not measured" if is_expected else ""


def _provenance(
    settings: Settings,
    row: Row,
    columns: Sequence[Column],
    row_cells: Mapping[str, Cell],
) -> dict[str, TableValue]:
    """Return "Lines", "Scale" and the footnotes of a row: heading -> text.

    ``row_cells`` are the cells of the row, by the key of their column.
    """
    # Heading -> name of a column of the paper -> the text about the value in that column.
    texts: dict[str, dict[str, str]] = {}
    for column in columns:
        if cell := row_cells.get(column.key):
            for heading, text in _provenance_of(cell).items():
                if text:
                    texts.setdefault(heading, {})[column.name] = text
    notes = []
    further_values = {"arXiv v1": row.v1, "the paper's best run": row.best_run}
    for source, values in further_values.items():
        for column in columns:
            if column.key in values:
                value = _formatted(values[column.key], column.digits)
                notes.append(f"{source}: {column.name} {value}")
    if row.note:
        notes.append(row.note)
    if "Notes" in texts:
        notes.append(as_one_text(texts["Notes"]))
    provenance = {}
    for heading in ("Lines", "Scale", *FOOTNOTES):
        provenance[heading] = TableValue(texts.get(heading, {}))
    provenance["Scale"] = TableValue(scale_name(settings))
    command = _command(row_cells.values(), settings.options.scale)
    provenance["Command"] = TableValue(command)
    provenance["Cost"] = TableValue(_cost(settings, row_cells.values()))
    provenance["Notes"] = TableValue("; ".join(notes))
    return provenance


def _provenance_of(cell: Cell) -> dict[str, str]:
    """Return the origin of a cell's value: heading -> text, "" if the heading does not apply.

    The result is empty for a cell without scores.
    """
    entries = cell.entries.values()
    if not entries:
        return {}
    digests: list[str] = []
    processors = []
    origins = []
    days = []
    notes = [f"{run} {why}" for run, why in cell.failures.items()]
    lines = None
    for entry in entries:
        # These two scores depend on an n-best list alone, not on the model that rescores it.
        if cell.measure not in ("bleu_of_list", "bleu_oracle"):
            for path, digest in entry.sha256.items():
                if path.endswith(".safetensors"):
                    digests.append(digest[:_DIGITS_OF_CHECKSUM])
        processors.append(entry.processor or "")
        origins.append(entry.origin or "")
        if lines is None:
            lines = entry.lines
        days.append(entry.date)
        if entry.overlap is not None:
            notes.append(entry.overlap.note())
    test_set = ""
    if cell.testset:
        counted = "" if lines is None else f" ({lines:,} lines)"
        n_best = f", list of {cell.n_best}" if cell.n_best else ""
        test_set = f"{cell.task} {cell.testset}{counted}{n_best}"
    # An ensemble is a single run. Its name says more than "1 of 1".
    first_run = cell.records[0].run.run
    is_ensemble = first_run.startswith("ensemble")
    first_day = min(days)
    last_day = max(days)
    return {
        "Runs": first_run if is_ensemble else f"{len(entries)} of {len(cell.records)}",
        "Test set": test_set,
        "Lines": "" if lines is None else str(lines),
        "Metric": " ".join([MEASURES[cell.measure].label, *cell.signatures]),
        "Model files": " ".join(dict.fromkeys(digests)),
        "Processor": "; ".join(dict.fromkeys(filter(None, processors))),
        "Date": first_day if first_day == last_day else f"{first_day} to {last_day}",
        "Origin": ", ".join(dict.fromkeys(filter(None, origins))),
        "Notes": "; ".join(dict.fromkeys(filter(None, notes))),
    }


def _command(row_cells: Iterable[Cell], scale: str) -> str:
    """Return the command that makes the missing runs of a row's cells; "" if none is missing.

    Paths that differ only in the seed are written as one path with braces, such as ``seed{1,2}``.
    The shell expands the braces.
    """
    # The parts of a path before and after the number of the seed -> these numbers.
    seeds_of: dict[tuple[str, str], dict[str, None]] = {}
    for cell in row_cells:
        for record in cell.missing:
            parts = re.fullmatch(r"(.*/seed)([0-9]+)(/[^/]*)", record.file)
            before, seed, after = parts.groups() if parts else (record.file, "", "")
            seeds_of.setdefault((before, after), {})[seed] = None
    paths = []
    for (before, after), seeds in seeds_of.items():
        listed = ",".join(seeds)
        if len(seeds) > 1:
            listed = f"{{{listed}}}"
        paths.append(before + listed + after)
    return f"snakemake {' '.join(paths)} --config scale={scale}" if paths else ""


def _cost(settings: Settings, row_cells: Collection[Cell]) -> str:
    """Return the number and the hours of the trainings that a row's missing runs need, as a text.

    The hours are those of the papers (config/costs.yaml). A training is left out if a number of the
    row was computed here from its model, because the model then exists. Numbers from the published
    ledger do not count as computed here, because the ledger has no models.
    """
    trained: set[tuple[str, str, str]] = set()  # task, model, run
    wanted: set[tuple[str, str, str]] = set()
    for cell in row_cells:
        for entry in cell.entries.values():
            if not entry.origin:
                trained.update(entry.trainings)
        if not settings.tasks[cell.task].released:
            for record in cell.missing:
                wanted.update(record.trainings)
    # config/costs.yaml names a training by its text, not by its task.
    missing = set()
    for task, model, run in wanted - trained:
        missing.add((settings.tasks[task].text_name, model, run))
    costs = []
    trainings = Counter((text, model) for text, model, _ in sorted(missing))
    for (text, model), count in trainings.items():
        hours = "hours: see preflight"
        if known := settings.costs.training(text, model):
            hours = f"{count * known.hours:,.1f} of the papers' GPU-hours"
        costs.append(f"{count} training{'s' if count > 1 else ''}, {hours}")
    return "; ".join(costs)
