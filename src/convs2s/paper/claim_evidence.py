"""What the ledger has on the cells that a claim names: the scores of their runs, or why none."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from convs2s.config.claims import CellName, printed_number, row_index
from convs2s.config.paper import Row, Table
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.text import read_lines
from convs2s.paper.cells import MEASURES
from convs2s.paper.ledger_entry import models_in
from convs2s.scoring.sentence_statistics import decode
from convs2s.scoring.significance import DrawnScores, drawn_scores

LOWER_IS_BETTER = ("perplexity", "seconds_cpu", "seconds_cuda")
"""Measures; of all others the higher value is better."""


@dataclass(frozen=True)
class ScoredRun:
    """A run of a cell, as the ledger has it.

    Attributes:
        task: whose data was scored.
        model: what was scored.
        run: seed1, ..., or ensemble8.
        models: the checksums of its model files, or where the ledger has none, its names.
        testset: test set of the task; None where the measure needs none.
        lines: of the test set; None where the ledger does not say.
        score: of the cell's measure.
        signature: of the metric; None where it has none.
        sentences: the statistics of its sentences as `sentence_statistics.encode` writes them; None
            where the measure has none.
    """

    task: str
    model: str
    run: str
    models: tuple[str, ...]
    testset: str | None
    lines: int | None
    score: float
    signature: str | None
    sentences: str | None

    def drawn(self) -> DrawnScores:
        """Return the scores of test sets drawn anew from the run's sentences."""
        assert self.sentences is not None
        return _drawn(self.sentences, f"the ledger's {self.task} {self.model} {self.run}")


@dataclass(frozen=True)
class Evidence:
    """What is known of a cell.

    Attributes:
        name: of the cell.
        label: what a comparison calls it.
        measure: a key of `MEASURES`.
        printed: the paper's number; None where it prints none.
        is_cited: whether the printed number is all that there is.
        runs: those that have a score, by name.
        missing: why there is no score; None where there is one.
    """

    name: CellName
    label: str
    measure: str
    printed: float | None
    is_cited: bool
    runs: tuple[ScoredRun, ...]
    missing: str | None

    @property
    def scores(self) -> list[float]:
        """The scores of the runs."""
        return [run.score for run in self.runs]

    @property
    def runs_in_words(self) -> str:
        """How many runs there are, or which ensemble."""
        ensembles = [run.run for run in self.runs if run.run.startswith("ensemble")]
        return "printed" if self.is_cited else ", ".join(ensembles) or str(len(self.runs))


def read_runs(ledger: Path) -> dict[str, list[Mapping[str, object]]]:
    """Read a ledger: "TABLE, row NUMBER, COLUMN" -> the entries of the runs that the cell shows.

    Raises:
        UserError: it is no ledger; the message names the line.
    """
    shown: dict[str, list[Mapping[str, object]]] = {}
    for number, line in enumerate(read_lines(ledger), start=1):
        with failures_of_file(f"{ledger}:{number}", "no entry of a ledger"):
            entry = json.loads(line)
            for cell in entry["table_cells"]:
                shown.setdefault(cell, []).append(entry)
    return shown


def evidence(
    settings: Settings, name: CellName, runs: Mapping[str, Sequence[Mapping[str, object]]]
) -> Evidence:
    """Return what there is on a cell.

    Args:
        settings: the configuration.
        name: of the cell.
        runs: from `read_runs`.
    """
    index = row_index(name, settings.paper, "config/claims.yaml")
    row = settings.paper[name.table].rows[index]
    (column,) = (one for one in settings.paper[name.table].columns if one.key == name.column)
    measure = row.measures.get(name.column, column.measure)
    assert measure is not None
    entries = runs.get(f"{name.table}, row {index + 1}, {name.column}", [])
    found = sorted((_scored(entry, measure) for entry in entries), key=lambda one: one.run)
    is_cited = row.kind == "cited"
    return Evidence(
        name=name,
        label=_label(settings.paper[name.table], row, name),
        measure=measure,
        printed=printed_number(row, name.column),
        is_cited=is_cited,
        runs=() if is_cited else tuple(found),
        missing=_missing(row, settings.scale) if is_cited or not found else None,
    )


def why_incomparable(settings: Settings, cells: Iterable[Evidence]) -> str | None:
    """Return why scores cannot be held against each other; None where they can.

    Perplexity is of one vocabulary, any other score of one test set and one metric.
    """
    keys = dict.fromkeys(_scored_on(settings, cell, run) for cell in cells for run in cell.runs)
    if len(keys) < 2:
        return None
    return "not of one kind: " + " against ".join(keys)


def _scored(entry: Mapping[str, object], measure: str) -> ScoredRun:
    run, scores, sentences = entry["run"], entry["scores"], entry.get("sentences") or {}
    assert isinstance(run, dict)
    assert isinstance(scores, dict)
    assert isinstance(sentences, dict)
    lines, checksums = entry["lines"], entry["sha256"]
    assert lines is None or isinstance(lines, int)
    assert isinstance(checksums, dict)
    return ScoredRun(
        task=run["task"],
        model=run["model"],
        run=run["run"],
        models=models_in(checksums) or (run["task"], run["model"], run["run"]),
        testset=run["testset"],
        lines=lines,
        score=float(scores[measure]["score"]),
        signature=scores[measure]["signature"],
        sentences=sentences.get(measure),
    )


def _label(table: Table, row: Row, name: CellName) -> str:
    """Return "TABLE GROUP 'ROW'", with the column where there is more than one."""
    (column,) = (one.name for one in table.columns if one.key == name.column)
    group = f"{row.group} " if row.group else ""
    return f"{name.table} {group}{row.system!r}" + (f" {column}" if len(table.columns) > 1 else "")


def _missing(row: Row, scale: Scale) -> str | None:
    if row.kind == "cited":
        return "a printed value is of the paper's data" if scale.stand_in else None
    if scale.why_left_out(row):
        return "left out at this scale"
    return "not run" if row.model and scale.model_for(row.model) else "no stand-in"


def _scored_on(settings: Settings, cell: Evidence, run: ScoredRun) -> str:
    if cell.measure == "perplexity":
        return f"{MEASURES[cell.measure].label} of {run.task}"
    text, lines = settings.tasks[run.task].text_name, f"{run.lines} lines"
    return f"{text} {run.testset} ({lines}), {run.signature}"


@cache  # a cell stands in several comparisons
def _drawn(sentences: str, where: str) -> DrawnScores:
    return drawn_scores(decode(sentences, where))
