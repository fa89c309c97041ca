"""The cells of the papers' tables that this project measures, and what their runs scored.

config/paper.yaml says which runs a cell compares with its printed value.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from convs2s.config.messages import unknown
from convs2s.config.paper import Column, Row, Table
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.paper.run_inputs import Inputs, RunInputs, fingerprint_of


@dataclass(frozen=True)
class Measure:
    """Where a score is found.

    Attributes:
        label: what a footnote calls it.
        file: the JSON file below models/{model}/{run}/, a format string.
        keys: the path of the score in that file.
    """

    label: str
    file: str
    keys: tuple[str, ...]

    @property
    def numbers(self) -> str:
        """What kind of file it is: ``bleu.json``, ``training.json`` and others."""
        return re.sub(r"\{\w+\}\.", "", self.file)


_BLEU = "{testset}.{decoding}.bleu.json"
_ROUGE = "{testset}.{decoding}.rouge.json"
_RESCORED = "{testset}.rescored.bleu.json"
_NO_LIST = (None, None)

MEASURES = {
    "bleu_tokenized": Measure("tokenized BLEU", _BLEU, ("bleu", "tokenized")),
    "bleu_detokenized": Measure("detokenized BLEU", _BLEU, ("bleu", "detokenized")),
    "bleu_tokenized_before_replacement": Measure(
        "tokenized BLEU before unknown word replacement",
        _BLEU,
        ("before_replacement", "bleu", "tokenized"),
    ),
    "bleu_rescored": Measure("tokenized BLEU", _RESCORED, ("bleu", "average", "tokenized")),
    "bleu_of_list": Measure("tokenized BLEU", _RESCORED, ("bleu", "first", "tokenized")),
    "bleu_oracle": Measure("tokenized BLEU", _RESCORED, ("bleu", "oracle", "tokenized")),
    "phrases_apart": Measure(
        "share of the variance of the encoder's final states that lies between the meanings",
        "phrases.{phrases}.json",
        ("apart",),
    ),
    "attention_layers": Measure(
        "attention of every decoder layer while it translates",
        "{testset}.{decoding}.example.json",
        ("layers",),
    ),
    "perplexity": Measure(
        "perplexity of the validation data", "training.json", ("validation_perplexity",)
    ),
    "training_speed": Measure(
        "target tokens per second", "training.speed.json", ("target_tokens_per_second",)
    ),
    "seconds_cpu": Measure("generation time", "{testset}.{decoding}.cpu.speed.json", ("seconds",)),
    "seconds_cuda": Measure(
        "generation time", "{testset}.{decoding}.cuda.speed.json", ("seconds",)
    ),
} | {
    f"rouge_{kind}_{part}": Measure(
        f"ROUGE-{kind.upper()} {part}", _ROUGE, ("rouge", f"rouge_{kind}", part)
    )
    for kind in ("1", "2", "l")
    for part in ("f1", "recall")
}


@dataclass(frozen=True)
class Cell:
    """One value of a table that this project measures, the scale's stand-ins applied.

    Attributes:
        row: index of the row in config/paper.yaml, from 0.
        column: key of the column.
        measure: a key of `MEASURES`.
        task: whose data is scored.
        model: what is scored.
        testset: test set of the task; None where the measure needs none.
        decoding: how it is translated; likewise.
        runs: the runs whose scores are averaged.
        paths: for each run the file that holds its score, from the folder of the workflow's run.
        n_best: what the rescored n-best list is of; None where the measure needs none.
        n_best_file: the list, where a user puts it there; None where a model here makes it.
        phrases: what the encoder reads; None where the measure needs none.
        fingerprints: for each run that of its inputs, as a ledger names it.
    """

    row: int
    column: str
    measure: str
    task: str
    model: str
    testset: str | None
    decoding: str | None
    runs: tuple[str, ...]
    paths: tuple[str, ...]
    n_best: str | None = None
    n_best_file: str | None = None
    phrases: str | None = None
    fingerprints: tuple[str, ...] = ()


FilesOfRuns = Callable[[str, str, Sequence[str], str], list[str]]
"""Gives the path of a file of each of some runs: of a task, model, runs and the file's name."""


def cells_by_table(stated: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[Cell]]:
    """Return table -> its cells, from the plain values that Snakemake hands to a job."""
    return {table: [Cell(**cell) for cell in found] for table, found in stated.items()}


def table_of(settings: Settings, name: str) -> Table:
    """Return a table or figure of config/paper.yaml.

    Raises:
        UserError: there is none of this name.
    """
    if name not in settings.paper:
        raise UserError(f"config/paper.yaml: {unknown('table', name, settings.paper)}")
    return settings.paper[name]


def cells(settings: Settings, name: str, files: FilesOfRuns) -> list[Cell]:
    """Return the cells of a table or figure that this project measures at the current scale.

    Args:
        settings: the configuration.
        name: of the table.
        files: gives the paths of the scores.

    Raises:
        UserError: config/paper.yaml has no such table.
    """
    table = table_of(settings, name)
    possible = (
        _cell(settings, (name, number), row, column, files)
        for number, row in enumerate(table.rows)
        for column in table.columns
    )
    known = RunInputs(settings)
    return [_with_fingerprints(one, known) for one in possible if one]


def inputs_of(cell: Cell, run: str, known: RunInputs) -> Inputs:
    """Return what the numbers of one of a cell's runs are computed from."""
    return known.of(
        MEASURES[cell.measure].numbers,
        task=cell.task,
        model=cell.model,
        run=run,
        testset=cell.testset if "{testset}" in MEASURES[cell.measure].file else None,
        decoding=cell.decoding if "{decoding}" in MEASURES[cell.measure].file else None,
        phrases=cell.phrases,
    )


def _with_fingerprints(cell: Cell, known: RunInputs) -> Cell:
    made = (fingerprint_of(inputs_of(cell, run, known)) for run in cell.runs)
    return replace(cell, fingerprints=tuple(made))


def without(cell: Cell, is_there: Callable[[str, str, str], bool]) -> Cell | None:
    """Return a cell with those runs alone that are not elsewhere; None where none is left.

    Args:
        cell: the cell.
        is_there: of a run's path, fingerprint and measure, whether its number is elsewhere.
    """
    each = zip(cell.runs, cell.paths, cell.fingerprints, strict=True)
    left = [one for one in each if not is_there(one[1], one[2], cell.measure)]
    if not left:
        return None
    runs, paths, fingerprints = zip(*left, strict=True)
    return replace(cell, runs=runs, paths=paths, fingerprints=fingerprints)


def is_made(cell: Cell, times_gpus: bool, waiting: Collection[str] = ()) -> bool:
    """Return whether a cell's scores can be made here.

    Args:
        cell: the cell.
        times_gpus: whether there is a GPU whose speed can be measured.
        waiting: tasks whose text nobody may download, and which is not there.
    """
    return cell.task not in waiting and (times_gpus or cell.measure != "seconds_cuda")


def _cell(
    settings: Settings, place: tuple[str, int], row: Row, column: Column, files: FilesOfRuns
) -> Cell | None:
    """Return the cell of a row in a column; None where there is nothing to measure."""
    table, number = place
    scale, measure = settings.scale, row.measures.get(column.key, column.measure)
    compared = row.comparison(f"row {number + 1}", [column]) if row.kind == "ours" else None
    if compared is None or measure is None or scale.why_left_out(row):
        return None
    model = scale.model_for(compared.model)
    task, file = scale.task_for(compared.task), MEASURES[measure].file
    testset = compared.testset and scale.testset_for(compared.testset)
    phrases = compared.phrases and scale.phrases_for(compared.phrases)
    listed = _n_best(settings, task, testset) if file == _RESCORED else _NO_LIST
    runs = scale.runs_for(compared.runs, table)
    if model is None or listed is None or not runs or not scale.has_task(compared.task):
        return None
    name = file.format(testset=testset, decoding=compared.decoding, phrases=phrases)
    return Cell(
        row=number,
        column=column.key,
        measure=measure,
        task=task,
        model=model,
        testset=testset,
        decoding=compared.decoding,
        runs=tuple(runs),
        paths=tuple(files(task, model, runs, name)),
        n_best=listed[0],
        n_best_file=listed[1],
        phrases=phrases if "{phrases}" in MEASURES[measure].file else None,
    )


def _n_best(settings: Settings, task: str, testset: str | None) -> tuple[str, str | None] | None:
    """Return what list of a test set is rescored, and its file where a user gives it."""
    if settings.scale.n_best is not None:
        return str(settings.scale.n_best), None
    file = settings.tasks[task].n_best.get(testset or "")
    return None if file is None else (file, file)
