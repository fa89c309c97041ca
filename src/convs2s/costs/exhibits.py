"""The cost of each table and figure: measured for finished runs, expected for missing ones."""

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
    """The training times that the papers state for the models of some of their tables."""

    stated: Sequence[KnownTraining]  # one for each model whose time is stated
    # Text and name of each model whose time is not stated.
    unstated: Set[tuple[str, str]]

    @property
    def hours(self) -> float:
        """The GPU-hours of one training of each model whose time is stated."""
        return sum(training.hours for training in self.stated)


@dataclass(frozen=True)
class Cost:
    """The cost of the trainings and other jobs of an exhibit, which is a table or figure."""

    trainings: int  # the number of trainings
    # The number of finished trainings, with a record of their time or without.
    finished: int
    # The hours of the trainings with a record; None if none has one.
    measured: Hours | None
    jobs: float  # the core-hours of the other finished jobs, which decode and score
    # The expected hours of the missing trainings, as far as they are known; None if trainings are
    # missing and the hours of none are known.
    to_come: Hours | None
    unknown: int  # the number of missing trainings whose hours are not known
    printed: PrintedCost  # the training times that the papers state


@dataclass(frozen=True)
class PaperCosts:
    """The costs of all tables and figures."""

    exhibits: Mapping[str, Cost]  # name of a table or figure -> its cost
    # The core-hours of all other jobs, such as those for text and vocabularies.
    shared: float
    # The cost of all exhibits: each training counts once, and the shared jobs count.
    total: Cost


def costs(
    settings: Settings,
    cells: Mapping[str, Sequence[Cell]],
    benchmarks: Path,
) -> PaperCosts:
    """Return the costs of tables and figures.

    Args:
        settings: the configuration.
        cells: name of each table or figure -> its cells that this project measures.
        benchmarks: the folder of Snakemake's benchmark files.

    Raises:
        UserError: a record of a training, or a benchmark file, is damaged.
    """
    trained = {
        name: _trainings(settings, its_cells) for name, its_cells in cells.items()
    }
    # Several exhibits may need the same training, which has one anchor.
    every_training = {
        run.anchor: run for runs in trained.values() for run in runs
    }.values()
    expectation = Expectation(settings, every_training)
    exhibits = {}
    jobs_of_exhibits: set[Path] = set()
    for name, runs in trained.items():
        jobs = set(_benchmarks_of(settings, cells[name], benchmarks))
        jobs_of_exhibits |= jobs
        exhibits[name] = _cost(runs, expectation, jobs, printed_cost(settings, [name]))
    every_job = jobs_of_exhibits | _all_benchmarks(settings, cells, benchmarks)
    return PaperCosts(
        exhibits=exhibits,
        shared=_core_hours(every_job - jobs_of_exhibits),
        total=_cost(
            every_training, expectation, every_job, printed_cost(settings, cells)
        ),
    )


def printed_cost(settings: Settings, tables: Iterable[str]) -> PrintedCost:
    """Return the training times that the papers state for the models of tables."""
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
    # A model and its copy in fp32 have the same entry here, because the paper trained it once.
    return PrintedCost(list(dict.fromkeys(stated)), unstated)


class Expectation:
    """Predicts the hours of a training from the hours that other trainings took."""

    def __init__(self, settings: Settings, trained: Iterable[Training]) -> None:
        """Take the trainings of this scale. Trainings without a record of their time are unused."""
        self._settings = settings
        self._timed = [(run, run.hours) for run in trained if run.hours is not None]
        self._kinds = {
            name: model.architecture.kind for name, model in settings.models.items()
        }

    def hours(self, task: str, model: str) -> Hours | None:
        """Return the expected hours of a training of a model on a task; None if not known.

        They are the first of these that is known:

        - the mean of the model's other seeds;
        - the measured hours in config/costs.yaml;
        - the tokens to read, at the rate of trained networks of the same kind, whatever their size;
        - the measured hours of another model of its kind on the same text, scaled to the number of
          epochs.

        The last two need a recipe with a fixed number of epochs.
        """
        of_seeds = [
            hours
            for run, hours in self._timed
            if (run.task, run.model) == (task, model)
        ]
        if of_seeds:
            return sum(of_seeds, Hours()) * (1 / len(of_seeds))
        text = self._settings.tasks[task].text_name
        known = self._settings.costs.training(text, model)
        if known and not known.printed:
            return hours_of(known)
        epochs = self._settings.models[model].training.maximum_epochs
        if epochs is None:
            return None
        return self._by_tokens(task, model, epochs) or self._by_another_model(
            text, model, epochs
        )

    def _by_tokens(
        self,
        task: str,
        model: str,
        epochs: float,
    ) -> Hours | None:
        """Return the hours of a number of epochs, at the median rate of networks of the same kind.

        They are hours of the kind of device, GPUs or cores, that most of these trainings ran on.
        """
        most_tokens = 0  # in an epoch of this task
        per_gpu_hour: list[float] = []  # tokens, of each training with GPUs
        per_core_hour: list[float] = []
        for run, hours in self._timed:
            if run.task == task:
                for epoch in run.epochs:
                    most_tokens = max(most_tokens, epoch.tokens)
            if self._kinds[run.model] != self._kinds[model]:
                continue
            # A training may have run on both kinds of device, each for some of its epochs.
            if hours.gpus:
                tokens = sum(
                    read for read, of_epoch in run.timed_epochs if of_epoch.gpus
                )
                per_gpu_hour.append(tokens / hours.gpus)
            if hours.cores:
                tokens = sum(
                    read for read, of_epoch in run.timed_epochs if of_epoch.cores
                )
                per_core_hour.append(tokens / hours.cores)
        to_read = epochs * most_tokens
        if not to_read or not (per_gpu_hour or per_core_hour):
            return None
        if len(per_gpu_hour) >= len(per_core_hour):
            return Hours(gpus=to_read / statistics.median(per_gpu_hour))
        return Hours(cores=to_read / statistics.median(per_core_hour))

    def _by_another_model(
        self,
        text: str,
        model: str,
        epochs: float,
    ) -> Hours | None:
        """Return the hours by the first measured model of this kind in config/costs.yaml."""
        models = self._settings.models
        for known in self._settings.costs.trainings:
            if known.printed or known.text != text or known.model not in models:
                continue
            known_epochs = models[known.model].training.maximum_epochs
            if known_epochs and self._kinds[known.model] == self._kinds[model]:
                return hours_of(known) * (epochs / known_epochs)
        return None


def hours_of(known: KnownTraining) -> Hours:
    """Return the hours of a training in config/costs.yaml, as those of its kind of device."""
    if known.device == "GPU":
        return Hours(gpus=known.hours)
    return Hours(cores=known.hours)


def _trainings(settings: Settings, cells: Iterable[Cell]) -> list[Training]:
    """Return the trainings that cells need, each once.

    Trainings whose files do not exist have no epochs and no summary. Released models are not
    trained, so they have none.
    """
    trainings = {}
    for cell in cells:
        if settings.tasks[cell.task].released:
            continue
        for record in cell.records:
            for task, model, run in record.trainings:
                # The folder of each run is beside that of the record's run, such as an ensemble.
                folder = Path(record.file).parent.with_name(run)
                if folder not in trainings:
                    trainings[folder] = read_training(task, model, run, folder)
    return list(trainings.values())


def _benchmarks_of(
    settings: Settings,
    cells: Iterable[Cell],
    folder: Path,
) -> Iterator[Path]:
    """Yield the existing benchmark files of the jobs that make cells' scores from their models."""
    for cell in cells:
        stems = list(cell.jobs)
        if cell.decoding:
            tuned_on = settings.scale.development_set(
                settings.tasks[cell.task], settings.decodings[cell.decoding]
            )
            if tuned_on:
                stems += cell.tuning_jobs(tuned_on)
        for run in cell.runs:
            for stem in stems:
                path = folder / cell.task / cell.model / run / f"{stem}.tsv"
                if path.is_file():
                    yield path


def _all_benchmarks(
    settings: Settings,
    cells: Mapping[str, Sequence[Cell]],
    folder: Path,
) -> set[Path]:
    """Return the benchmark files of all jobs, except trainings and the jobs of tasks without cells.

    The jobs of a text count if a task with cells uses it.
    """
    shown = {cell.task for its_cells in cells.values() for cell in its_cells}
    texts = {settings.tasks[name].text_name for name in shown}
    others = (settings.tasks.keys() | settings.broken.keys()) - shown - texts
    found = set()
    for path in folder.rglob("*.tsv"):
        below = path.relative_to(folder)
        # The benchmark file of a training only has its last attempt. Its history has all attempts.
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
    """Return the cost of trainings and of the jobs with these benchmark files."""
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
    """Return the processor time of jobs in core-hours.

    Snakemake does not sample very short jobs. For these, the elapsed time counts.
    """
    seconds = 0.0
    for path in benchmarks:
        with failures_of_file(str(path), "not a benchmark of Snakemake's: remove it"):
            for row in csv.DictReader(read_lines(path), delimiter="\t"):
                is_sampled = row["cpu_time"] != "NA"
                seconds += float(row["cpu_time"] if is_sampled else row["s"])
    return seconds / SECONDS_PER_HOUR
