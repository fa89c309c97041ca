"""The cells of the papers' tables that this project measures.

config/paper.yaml says which runs a cell compares with its printed value.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pydantic import TypeAdapter

from convs2s.config.measures import MEASURES, RESCORED
from convs2s.config.messages import check_known
from convs2s.config.paper import Column, Row
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.paper.ledger import fingerprint_of
from convs2s.paper.run_inputs import Inputs, RunInputs

_TUNING = ("{testset}.{decoding}.nbest", "{testset}.{decoding}.length_penalty")
"""The jobs that tune a length penalty on a development set."""


@dataclass(frozen=True)
class CellAddress:
    """Where a value stands in the papers; as text rows count from 1: ``table1, row 3, bleu``."""

    table: str
    row: int
    column: str

    def __str__(self) -> str:
        return f"{self.table}, row {self.row + 1}, {self.column}"


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
    printed = settings.paper[name]
    known = RunInputs(settings)
    found = []
    for number, row in enumerate(printed.rows):
        for column in printed.columns:
            address = CellAddress(name, number, column.key)
            if cell := _cell(settings, address, row, column, files, known):
                found.append(cell)
    return found


def cells_of_tables(settings: Settings) -> dict[str, list[Cell]]:
    """Return the cells of every table and figure, with their files in the scale's own folder."""
    layout = Layout(settings.scale.results_dir, settings.scale.downloads_dir)
    return {name: cells(settings, name, layout.run_files) for name in settings.paper}


def _cell(
    settings: Settings,
    address: CellAddress,
    row: Row,
    column: Column,
    files: FilesOfRuns,
    known: RunInputs,
) -> Cell | None:
    """Return the cell of a row in a column; None where there is nothing to measure."""
    scale = settings.scale
    measure = row.measures.get(column.key, column.measure)
    if row.kind != "ours" or measure is None or scale.why_left_out(row):
        return None
    compared = row.comparison(f"row {address.row + 1}", [column])
    if compared is None:
        return None
    papers_task, papers_model = compared
    model = scale.model_for(papers_model)
    runs = scale.runs_for(row.runs, address.table)
    if model is None or not runs or not scale.has_task(papers_task):
        return None
    task = scale.task_for(papers_task)
    if measure not in MEASURES and measure not in settings.tasks[task].metrics:
        return None
    file = MEASURES[measure].file
    testset = decoding = phrases = None
    if "testset" in file.named_by and row.testset is not None:
        testset = scale.testset_for(row.testset)
    if "decoding" in file.named_by:
        decoding = row.decoding
    if "phrases" in file.named_by and row.phrases is not None:
        phrases = scale.phrases_for(row.phrases)
    n_best = n_best_file = None
    if file == RESCORED:
        if scale.n_best is None:
            n_best = n_best_file = settings.tasks[task].n_best.get(testset or "")
        else:
            n_best = str(scale.n_best)
        if n_best is None:
            return None
    cell = Cell(
        address,
        measure,
        task,
        model,
        testset,
        decoding,
        phrases,
        files=(),
        n_best=n_best,
        n_best_file=n_best_file,
    )
    name = file.pattern.format(testset=testset, decoding=decoding, phrases=phrases)
    run_files = []
    for run, path in zip(runs, files(task, model, runs, name), strict=True):
        run_files.append(RunFile(run, path, fingerprint_of(cell.inputs(run, known))))
    return replace(cell, files=tuple(run_files))
