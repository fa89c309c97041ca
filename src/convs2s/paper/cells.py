"""The cells of the papers' tables that this project measures.

config/paper.yaml says which runs a cell compares with its printed value.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pydantic import TypeAdapter

from convs2s.config.messages import check_known
from convs2s.config.paper import Column, Row
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.paper.run_inputs import Inputs, RunInputs, fingerprint_of


@dataclass(frozen=True)
class ScoreFile:
    """A kind of JSON file of a run's numbers: its path below models/{model}/{run}/.

    ``jobs`` stand between the run's models and this file: format strings of their logs' names.
    """

    pattern: str
    jobs: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """What its name ends with: ``bleu.json``, ``training.json`` and others."""
        return re.sub(r"\{\w+\}\.", "", self.pattern)


@dataclass(frozen=True)
class Measure:
    """Where a score is found: the path ``keys`` in a file; a footnote calls it ``label``."""

    label: str
    file: ScoreFile
    keys: tuple[str, ...]


_DECODE = "{testset}.{decoding}.decode"
_BLEU = ScoreFile("{testset}.{decoding}.bleu.json", (_DECODE, "{testset}.{decoding}.bleu"))
_ROUGE = ScoreFile("{testset}.{decoding}.rouge.json", (_DECODE, "{testset}.{decoding}.rouge"))
_RESCORED = ScoreFile("{testset}.rescored.bleu.json", ("{testset}.scored", "{testset}.rescored"))
_PHRASES = ScoreFile("phrases.{phrases}.json", ("phrases.{phrases}",))
_EXAMPLE = ScoreFile("{testset}.{decoding}.example.json", ("{testset}.{decoding}.example",))
_CPU = ScoreFile("{testset}.{decoding}.cpu.speed.json", ("{testset}.{decoding}.cpu.speed",))
_CUDA = ScoreFile("{testset}.{decoding}.cuda.speed.json", ("{testset}.{decoding}.cuda.speed",))
_PERPLEXITY = ScoreFile("{testset}.perplexity.json", ("{testset}.perplexity",))
_TRAINING = ScoreFile("training.json")
_SPEED = ScoreFile("training.speed.json", ("training.speed",))

_TUNING = ("{testset}.{decoding}.nbest", "{testset}.{decoding}.length_penalty")
"""The jobs that tune a length penalty on a development set."""

MEASURES = {
    "bleu_tokenized": Measure("tokenized BLEU", _BLEU, ("bleu", "tokenized")),
    "bleu_detokenized": Measure("detokenized BLEU", _BLEU, ("bleu", "detokenized")),
    "bleu_tokenized_before_replacement": Measure(
        "tokenized BLEU before unknown word replacement",
        _BLEU,
        ("before_replacement", "bleu", "tokenized"),
    ),
    "length_ratio": Measure("words divided by the references'", _BLEU, ("length_ratio",)),
    "bleu_rescored": Measure("tokenized BLEU", _RESCORED, ("bleu", "average", "tokenized")),
    "bleu_of_list": Measure("tokenized BLEU", _RESCORED, ("bleu", "first", "tokenized")),
    "bleu_oracle": Measure("tokenized BLEU", _RESCORED, ("bleu", "oracle", "tokenized")),
    "phrases_apart": Measure(
        "share of the variance of the encoder's final states that lies between the meanings",
        _PHRASES,
        ("apart",),
    ),
    "phrases_chance": Measure("that share by chance, by swaps of meanings", _PHRASES, ("chance",)),
    "phrases_p": Measure("p of that share, by swaps of the meanings", _PHRASES, ("p",)),
    "attention_layers": Measure(
        "attention of every decoder layer while it translates", _EXAMPLE, ("layers",)
    ),
    "perplexity": Measure(
        "perplexity of the validation data", _TRAINING, ("validation_perplexity",)
    ),
    "types_per_batch": Measure(
        "target types among which a batch of validation data chooses, on average",
        _TRAINING,
        ("shortlist", "types"),
    ),
    "test_perplexity": Measure("perplexity of the test set", _PERPLEXITY, ("perplexity",)),
    "training_speed": Measure("target tokens per second", _SPEED, ("target_tokens_per_second",)),
    "training_hours": Measure("hours of the updates at the median rate", _SPEED, ("device_hours",)),
    "seconds_cpu": Measure("generation time", _CPU, ("seconds",)),
    "seconds_cuda": Measure("generation time", _CUDA, ("seconds",)),
    **{
        f"rouge_{units}_{part}": Measure(
            f"ROUGE-{units.upper()} {part}", _ROUGE, ("rouge", f"rouge_{units}", part)
        )
        for units in ("1", "2", "l")
        for part in ("f1", "recall")
    },
}


@dataclass(frozen=True)
class CellAddress:
    """Where a value stands in the papers; as text rows count from 1: ``table1, row 3, bleu``."""

    table: str
    row: int
    column: str

    def __str__(self) -> str:
        return f"{self.table}, row {self.row + 1}, {self.column}"

    @classmethod
    def parse(cls, text: object) -> Self:
        """Return the address that a text states; a ValueError says that it states none."""
        name = r"([^\x00-\x1f\x7f-\x9f<>`]+)"  # nothing that a page would take for markup
        parts = re.fullmatch(rf"{name}, row ([1-9][0-9]{{0,5}}), {name}", str(text))
        if not parts:
            raise ValueError("expected 'TABLE, row NUMBER, COLUMN'")
        return cls(parts[1], int(parts[2]) - 1, parts[3])


@dataclass(frozen=True)
class RunFile:
    """The file of a run's numbers, and the fingerprint of what the run is computed from."""

    run: str
    path: str
    fingerprint: str


@dataclass(frozen=True)
class Cell:
    """One value of a table that this project measures, the scale's stand-ins applied.

    Test set, decoding, phrases and n-best list are None where the measure needs none.
    """

    address: CellAddress
    measure: str
    task: str
    model: str
    testset: str | None
    decoding: str | None
    phrases: str | None
    files: tuple[RunFile, ...]  # of the runs whose scores are averaged
    n_best: str | None = None
    n_best_file: str | None = None  # the list, where a user puts it there

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs whose scores are averaged."""
        return tuple(file.run for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that hold their scores."""
        return tuple(file.path for file in self.files)

    @property
    def trainings(self) -> list[tuple[str, str, str]]:
        """Task, model and run of each training that it rests on: an ensemble's are its members."""
        names = (member for run in self.runs for member in members(run))
        return [(self.task, self.model, name) for name in names]

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs between its models and its numbers, in order."""
        return [job.format(**self._names) for job in MEASURES[self.measure].file.jobs]

    def tuning_jobs(self, development_set: str) -> list[str]:
        """Return the names of those of its jobs that tune its length penalty on a set."""
        names = {"testset": development_set, "decoding": self.decoding}
        return [job.format(**names) for job in _TUNING] if self.jobs else []

    def inputs(self, run: str, known: RunInputs) -> Inputs:
        """Return what the numbers of one of its runs are computed from."""
        suffix = MEASURES[self.measure].file.suffix
        return known.of(suffix, task=self.task, model=self.model, run=run, **self._names)

    @property
    def _names(self) -> dict[str, str | None]:
        return {"testset": self.testset, "decoding": self.decoding, "phrases": self.phrases}

    def can_be_made(self, times_gpus: bool, waiting: Collection[str] = ()) -> bool:
        """Return whether its scores can be made here, where text of ``waiting`` tasks is not."""
        return self.task not in waiting and (times_gpus or self.measure != "seconds_cuda")

    def drop_published_runs(self, is_published: Callable[[RunFile, str], bool]) -> Self | None:
        """Return the cell without the runs whose measure is published; None where none is left."""
        left = tuple(file for file in self.files if not is_published(file, self.measure))
        return replace(self, files=left) if left else None

    def moved(self, path_of: Callable[[str], str]) -> Self:
        """Return the cell with its files elsewhere: path_of gives a path's new one."""
        files = (replace(file, path=path_of(file.path)) for file in self.files)
        return replace(self, files=tuple(files))


FilesOfRuns = Callable[[str, str, Sequence[str], str], list[str]]
"""Gives the path of a file of each of some runs: of a task, model, runs and the file's name."""


def cells_from_plain(stated: object, prefix: str) -> list[Cell]:
    """Return cells from the plain values that Snakemake hands to a job (`dataclasses.asdict`).

    ``prefix`` is what stands before the paths of the job's inputs.
    """
    plain = TypeAdapter(list[Cell]).validate_python(stated)
    return [cell.moved(lambda path: prefix + path) for cell in plain]


def cells(settings: Settings, name: str, files: FilesOfRuns) -> list[Cell]:
    """Return the cells of a table or figure that this project measures at the current scale.

    A UserError says that config/paper.yaml has no such table, and names the nearest one.
    """
    check_known("config/paper.yaml", "table", name, settings.paper)
    printed, known = settings.paper[name], RunInputs(settings)
    possible = (
        _cell(settings, CellAddress(name, number, column.key), row, column, files, known)
        for number, row in enumerate(printed.rows)
        for column in printed.columns
    )
    return [cell for cell in possible if cell]


def _cell(
    settings: Settings,
    address: CellAddress,
    row: Row,
    column: Column,
    files: FilesOfRuns,
    known: RunInputs,
) -> Cell | None:
    """Return the cell of a row in a column; None where there is nothing to measure."""
    scale, measure = settings.scale, row.measures.get(column.key, column.measure)
    if row.kind != "ours":
        return None
    compared = row.comparison(f"row {address.row + 1}", [column])
    if compared is None or measure is None or scale.why_left_out(row):
        return None
    papers_task, papers_model = compared
    model, runs = scale.model_for(papers_model), scale.runs_for(row.runs, address.table)
    if model is None or not runs or not scale.has_task(papers_task):
        return None
    task, file = scale.task_for(papers_task), MEASURES[measure].file
    stated = {
        "testset": row.testset and scale.testset_for(row.testset),
        "decoding": row.decoding,
        "phrases": row.phrases and scale.phrases_for(row.phrases),
    }
    names = {key: name if f"{{{key}}}" in file.pattern else None for key, name in stated.items()}
    n_best = n_best_file = None
    if file == _RESCORED:
        if scale.n_best is None:
            n_best = n_best_file = settings.tasks[task].n_best.get(names["testset"] or "")
        else:
            n_best = str(scale.n_best)
        if n_best is None:
            return None
    cell = Cell(
        address, measure, task, model, **names, files=(), n_best=n_best, n_best_file=n_best_file
    )
    paths = files(task, model, runs, file.pattern.format(**names))
    run_files = (
        RunFile(run, path, fingerprint_of(cell.inputs(run, known)))
        for run, path in zip(runs, paths, strict=True)
    )
    return replace(cell, files=tuple(run_files))
