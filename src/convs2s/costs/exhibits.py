"""What each table and figure takes: measured of the runs that are there, expected of the others."""

import csv
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.costs import KnownTraining
from convs2s.config.paper import Table
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.text import read_lines
from convs2s.paper.cells import Cell
from convs2s.paper.trained import SECONDS_PER_HOUR, Hours, Training, read_training


@dataclass(frozen=True)
class Cost:
    """What the trainings and other jobs of an exhibit take."""

    trainings: int
    finished: int  # trainings that have run, with a record of their time or without
    measured: Hours | None  # of those with a record; None where there is none
    jobs: float  # core-hours of the other jobs that have run: decoding and scoring
    to_come: Hours | None  # expected of the other trainings, where known; None: of none
    unknown: int  # trainings that have not run and of which nothing tells the hours


@dataclass(frozen=True)
class PrintedCost:
    """What the papers state of the trainings of their own table."""

    stated: tuple[KnownTraining, ...]  # one for each model whose time they state
    unstated: frozenset[tuple[str, str]]  # text and model of those of which they do not

    @property
    def hours(self) -> float:
        """GPU-hours of one training of each model whose time is stated."""
        return sum(training.hours for training in self.stated)


@dataclass(frozen=True)
class PaperCosts:
    """What all tables and figures take."""

    exhibits: Mapping[str, Cost]  # by name
    printed: Mapping[str, PrintedCost]  # by name: what the papers state
    shared: float  # core-hours of jobs that serve several: text, vocabularies, curves, plots
    total: Cost  # of all, each run once; the shared jobs are in its jobs
    all_printed: PrintedCost  # of all models, each once


def costs(settings: Settings, cells: Mapping[str, Sequence[Cell]], benchmarks: Path) -> PaperCosts:
    """Return what the cells of tables and figures take that are made here.

    ``benchmarks``: the folder of Snakemake's benchmark files. A UserError names a damaged record.
    """
    trained = {name: _trainings(settings, measured) for name, measured in cells.items()}
    distinct = {run.anchor: run for runs in trained.values() for run in runs}.values()
    expectation = Expectation(settings, distinct)
    jobs = {
        name: {path for path in _benchmarks_of(settings, measured, benchmarks) if path.is_file()}
        for name, measured in cells.items()
    }
    jobs_of_one = set().union(*jobs.values())
    shown = {cell.task for measured in cells.values() for cell in measured}
    others = settings.tasks.keys() - shown - {settings.tasks[name].text_name for name in shown}
    # The benchmarks of trainings know the last attempt alone, where histories know all.
    all_jobs = {
        path
        for path in {*benchmarks.rglob("*.tsv")} - {*benchmarks.glob("*/*/seed*/train.tsv")}
        if path.relative_to(benchmarks).parts[0] not in others
    }
    printed = {name: printed_cost(settings, settings.paper[name]) for name in cells}
    stated = dict.fromkeys(known for cost in printed.values() for known in cost.stated)
    unstated = frozenset().union(*(cost.unstated for cost in printed.values()))
    return PaperCosts(
        exhibits={name: _cost(runs, expectation, jobs[name]) for name, runs in trained.items()},
        printed=printed,
        shared=_core_hours(all_jobs - jobs_of_one),
        total=_cost(distinct, expectation, all_jobs | jobs_of_one),
        all_printed=PrintedCost(tuple(stated), unstated),
    )


def printed_cost(settings: Settings, table: Table) -> PrintedCost:
    """Return what the papers state of the trainings that a table of theirs rests on."""
    models = {
        (settings.tasks[row.task].text_name, row.model)
        for row in table.rows
        if row.kind == "ours" and row.task and row.model
    }
    known = {model: settings.costs.training(*model) for model in sorted(models)}
    stated = {model: run for model, run in known.items() if run and run.printed}
    return PrintedCost(tuple(dict.fromkeys(stated.values())), frozenset(models - stated.keys()))


class Expectation:
    """The hours that a training will take, by those that others have taken."""

    def __init__(self, settings: Settings, trained: Iterable[Training]) -> None:
        """Take trainings of this scale; those without a record of their time say nothing."""
        self._settings = settings
        self._timed = [(run, run.hours) for run in trained if run.hours is not None]

    def hours(self, task: str, model: str) -> Hours | None:
        """Return the hours of a training of a model on a task; None where nothing tells them.

        They are the mean of its other seeds; without one, the measured figure of config/costs.yaml;
        without that, its tokens at the rate of networks of its kind, of any size; where none has
        run, the measured figure of another of its kind on the same text, for as many epochs.
        """
        if seeds := [took for run, took in self._timed if (run.task, run.model) == (task, model)]:
            return sum(seeds, Hours()) * (1 / len(seeds))
        text = self._settings.tasks[task].text_name
        known = self._settings.costs.training(text, model)
        if known and not known.printed:
            return _hours(known)
        by_tokens = self._by_tokens(task, model)
        return self._by_another_model(text, model) if by_tokens is None else by_tokens

    def _by_tokens(self, task: str, model: str) -> Hours | None:
        """Return the hours of its epochs, at the rate of the devices that most trainings ran on."""
        models = self._settings.models
        epochs = models[model].training.maximum_epochs
        tokens = [row.tokens for run, _ in self._timed if run.task == task for row in run.epochs]
        alike = [
            (sum(row.tokens for row in run.epochs), took)
            for run, took in self._timed
            if models[run.model].architecture.kind == models[model].architecture.kind
        ]
        gpus = [read / took.gpus for read, took in alike if took.gpus]  # tokens an hour
        cores = [read / took.cores for read, took in alike if took.cores]
        if epochs is None or not tokens or not (gpus or cores):
            return None
        if len(gpus) >= len(cores):
            return Hours(gpus=epochs * max(tokens) / statistics.median(gpus))
        return Hours(cores=epochs * max(tokens) / statistics.median(cores))

    def _by_another_model(self, text: str, model: str) -> Hours | None:
        """Return what config/costs.yaml tells by the first of another model of this kind."""
        models = self._settings.models
        for known in self._settings.costs.trainings:
            if known.printed or known.text != text or known.model not in models:
                continue
            wanted, run = models[model].training, models[known.model].training
            is_alike = models[known.model].architecture.kind == models[model].architecture.kind
            if is_alike and wanted.maximum_epochs and run.maximum_epochs:
                return _hours(known) * (wanted.maximum_epochs / run.maximum_epochs)
        return None


def _hours(known: KnownTraining) -> Hours:
    return Hours(gpus=known.hours) if known.device == "GPU" else Hours(cores=known.hours)


def _trainings(settings: Settings, cells: Iterable[Cell]) -> list[Training]:
    """Return the trainings that cells rest on, each once, as far as their files are there."""
    folders = {
        (cell.task, cell.model, member): Path(file.path).parent.parent / member
        for cell in cells
        if not settings.tasks[cell.task].released
        for file in cell.files
        for member in members(file.run)
    }
    return [read_training(*name, folder) for name, folder in folders.items()]


def _benchmarks_of(settings: Settings, cells: Iterable[Cell], folder: Path) -> Iterator[Path]:
    """Yield the benchmark files of the jobs between the models of cells and their numbers."""
    for cell in cells:
        stems, decoding = cell.jobs, settings.decodings.get(cell.decoding or "")
        tuned_on = decoding and settings.scale.development_set(settings.tasks[cell.task], decoding)
        if tuned_on:
            stems += cell.tuning_jobs(tuned_on)
        for run in cell.runs:
            yield from (folder / cell.task / cell.model / run / f"{stem}.tsv" for stem in stems)


def _cost(trained: Collection[Training], expectation: Expectation, jobs: Iterable[Path]) -> Cost:
    absent = [run for run in trained if not run.summary]
    timed = [run.hours for run in trained if run.hours is not None]
    expected = [expectation.hours(run.task, run.model) for run in absent]
    known = [hours for hours in expected if hours is not None]
    return Cost(
        trainings=len(trained),
        finished=len(trained) - len(absent),
        measured=sum(timed, Hours()) if timed else None,
        jobs=_core_hours(jobs),
        to_come=sum(known, Hours()) if known or not absent else None,
        unknown=len(absent) - len(known),
    )


def _core_hours(benchmarks: Iterable[Path]) -> float:
    """Return the processor time of jobs; of one too short to be sampled, the time that it took."""
    seconds = 0.0
    for path in benchmarks:
        with failures_of_file(str(path), "not a benchmark of Snakemake's: remove it"):
            for row in csv.DictReader(read_lines(path), delimiter="\t"):
                seconds += float(row["s"] if row["cpu_time"] == "NA" else row["cpu_time"])
    return seconds / SECONDS_PER_HOUR
