"""What each table and figure takes: measured of the runs that are there, expected of the others."""

import csv
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.costs import KnownTraining
from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.text import read_lines
from convs2s.paper.cells import Cell
from convs2s.paper.trained import SECONDS_PER_HOUR, Hours, Training, read_training


@dataclass(frozen=True)
class PrintedCost:
    """What the papers state of the trainings of tables of theirs."""

    stated: Sequence[KnownTraining]  # one for each model whose time they state
    unstated: Set[tuple[str, str]]  # text and model of those of which they do not

    @property
    def hours(self) -> float:
        """GPU-hours of one training of each model whose time is stated."""
        return sum(training.hours for training in self.stated)


@dataclass(frozen=True)
class Cost:
    """What the trainings and other jobs of an exhibit take."""

    trainings: int
    finished: int  # trainings that have run, with a record of their time or without
    measured: Hours | None  # of those with a record; None where there is none
    jobs: float  # core-hours of the other jobs that have run: decoding and scoring
    to_come: Hours | None  # expected of the other trainings, where known; None: of none
    unknown: int  # trainings that have not run and of which nothing tells the hours
    printed: PrintedCost  # what the papers state


@dataclass(frozen=True)
class PaperCosts:
    """What all tables and figures take."""

    exhibits: Mapping[str, Cost]  # by name
    shared: float  # core-hours of jobs that serve several: text, vocabularies, curves, plots
    total: Cost  # of all, each training once; the shared jobs are in its jobs


def costs(settings: Settings, cells: Mapping[str, Sequence[Cell]], benchmarks: Path) -> PaperCosts:
    """Return what the cells of tables and figures take that are made here.

    ``benchmarks``: the folder of Snakemake's benchmark files.

    Raises:
        UserError: a record of a training, or a benchmark file, is damaged.
    """
    trained = {name: _trainings(settings, of_table) for name, of_table in cells.items()}
    every_training = {run.anchor: run for runs in trained.values() for run in runs}.values()
    expectation = Expectation(settings, every_training)
    exhibits = {}
    jobs_of_one: set[Path] = set()
    for name, runs in trained.items():
        jobs = set(_benchmarks_of(settings, cells[name], benchmarks))
        jobs_of_one |= jobs
        exhibits[name] = _cost(runs, expectation, jobs, printed_cost(settings, [name]))
    every_job = jobs_of_one | _all_benchmarks(settings, cells, benchmarks)
    return PaperCosts(
        exhibits=exhibits,
        shared=_core_hours(every_job - jobs_of_one),
        total=_cost(every_training, expectation, every_job, printed_cost(settings, cells)),
    )


def printed_cost(settings: Settings, tables: Iterable[str]) -> PrintedCost:
    """Return what the papers state of the trainings that tables of theirs rest on."""
    stated = []
    unstated = set()
    for table in tables:
        models = set()
        for row in settings.tables[table].rows:
            if row.kind == "ours" and row.task and row.model:
                models.add((settings.tasks[row.task].text_name, row.model))
        for text, model in sorted(models):
            known = settings.costs.training(text, model)
            if known and known.printed:
                stated.append(known)
            else:
                unstated.add((text, model))
    # A recipe and the same in fp32 are one training of the paper.
    return PrintedCost(list(dict.fromkeys(stated)), unstated)


class Expectation:
    """The hours that a training will take, by those that others have taken."""

    def __init__(self, settings: Settings, trained: Iterable[Training]) -> None:
        """Take trainings of this scale; those without a record of their time say nothing."""
        self._settings = settings
        self._timed = [(run, run.hours) for run in trained if run.hours is not None]
        self._kinds = {name: model.architecture.kind for name, model in settings.models.items()}

    def hours(self, task: str, model: str) -> Hours | None:
        """Return the hours of a training of a model on a task; None where nothing tells them.

        They are the mean of its other seeds; without one, the measured figure of config/costs.yaml;
        without that, its tokens at the rate of networks of its kind, of any size; where none has
        run, the measured figure of another of its kind on the same text, for as many epochs.
        """
        seeds = [took for run, took in self._timed if (run.task, run.model) == (task, model)]
        if seeds:
            return sum(seeds, Hours()) * (1 / len(seeds))
        text = self._settings.tasks[task].text_name
        known = self._settings.costs.training(text, model)
        if known and not known.printed:
            return hours_of(known)
        epochs = self._settings.models[model].training.maximum_epochs
        if epochs is None:
            return None
        return self._by_tokens(task, model, epochs) or self._by_another_model(text, model, epochs)

    def _by_tokens(self, task: str, model: str, epochs: float) -> Hours | None:
        """Return the hours of its epochs, at the rate of the devices that most trainings ran on."""
        tokens = [0]  # of an epoch of the task
        rates: dict[str, list[float]] = {"gpus": [], "cores": []}  # tokens an hour
        for run, took in self._timed:
            read = [row.tokens for row in run.epochs]
            if run.task == task:
                tokens += read
            for device, hours in vars(took).items():
                if hours and self._kinds[run.model] == self._kinds[model]:
                    rates[device].append(sum(read) / hours)
        device = max(rates, key=lambda name: len(rates[name]))
        to_read = epochs * max(tokens)
        if not to_read or not rates[device]:
            return None
        return Hours(**{device: to_read / statistics.median(rates[device])})

    def _by_another_model(self, text: str, model: str, epochs: float) -> Hours | None:
        """Return what config/costs.yaml tells by the first of another model of this kind."""
        models = self._settings.models
        for known in self._settings.costs.trainings:
            if known.printed or known.text != text or known.model not in models:
                continue
            its_epochs = models[known.model].training.maximum_epochs
            if its_epochs and self._kinds[known.model] == self._kinds[model]:
                return hours_of(known) * (epochs / its_epochs)
        return None


def hours_of(known: KnownTraining) -> Hours:
    """Return the hours of a training that config/costs.yaml knows."""
    if known.device == "GPU":
        return Hours(gpus=known.hours)
    return Hours(cores=known.hours)


def _trainings(settings: Settings, cells: Iterable[Cell]) -> list[Training]:
    """Return the trainings that cells rest on, each once, as far as their files are there."""
    folders = {}
    for cell in cells:
        if settings.tasks[cell.task].released:
            continue
        for record in cell.records:
            for training in record.trainings:
                folders[training] = Path(record.file).parent.with_name(training[-1])
    return [read_training(*name, folder) for name, folder in folders.items()]


def _benchmarks_of(settings: Settings, cells: Iterable[Cell], folder: Path) -> Iterator[Path]:
    """Yield the benchmark files of the jobs between the models of cells and their numbers."""
    for cell in cells:
        stems = list(cell.jobs)
        if decoding := settings.decodings.get(cell.decoding or ""):
            tuned_on = settings.scale.development_set(settings.tasks[cell.task], decoding)
            if tuned_on:
                stems += cell.tuning_jobs(tuned_on)
        for run in cell.runs:
            for stem in stems:
                path = folder / cell.task / cell.model / run / f"{stem}.tsv"
                if path.is_file():
                    yield path


def _all_benchmarks(
    settings: Settings, cells: Mapping[str, Sequence[Cell]], folder: Path
) -> set[Path]:
    """Return the benchmark files of all jobs but trainings, and those of tasks not shown."""
    shown = {cell.task for of_table in cells.values() for cell in of_table}
    texts = {settings.tasks[name].text_name for name in shown}
    others = settings.tasks.keys() - shown - texts
    found = set()
    for path in folder.rglob("*.tsv"):
        below = path.relative_to(folder)
        # Those of trainings know the last attempt alone, where histories know all.
        is_training = below.match("*/*/seed*/train.tsv")
        if below.parts[0] not in others and not is_training:
            found.add(path)
    return found


def _cost(
    trained: Collection[Training],
    expectation: Expectation,
    jobs: Iterable[Path],
    printed: PrintedCost,
) -> Cost:
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
        printed=printed,
    )


def _core_hours(benchmarks: Iterable[Path]) -> float:
    """Return the processor time of jobs; of one too short to be sampled, the time that it took."""
    seconds = 0.0
    for path in benchmarks:
        with failures_of_file(str(path), "not a benchmark of Snakemake's: remove it"):
            for row in csv.DictReader(read_lines(path), delimiter="\t"):
                has_processor_time = row["cpu_time"] != "NA"
                seconds += float(row["cpu_time" if has_processor_time else "s"])
    return seconds / SECONDS_PER_HOUR
