"""The measured cost of each table and figure."""

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.costs import PrintedTraining
from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.text import read_lines
from convs2s.paper.cells import Cell
from convs2s.paper.trained import SECONDS_PER_HOUR, Hours, Training, read_training


@dataclass(frozen=True)
class PrintedCost:
    """The training times that the papers state for the models of some of their tables."""

    stated: Sequence[PrintedTraining]  # the models whose time is stated
    # Text and name of each model whose time is not stated.
    unstated: Set[tuple[str, str]]

    @property
    def hours(self) -> float:
        """The sum of the GPU-hours of one training of each model whose time is stated."""
        return sum(training.hours for training in self.stated)


@dataclass(frozen=True)
class Cost:
    """The cost of the trainings and other jobs of an exhibit, which is a table or figure."""

    trainings: int  # the number of trainings
    # The number of finished trainings, whether their time is recorded or not.
    finished: int
    # The hours of the trainings whose time is recorded; None if there are none.
    measured: Hours | None
    jobs: float  # the core-hours of the other finished jobs, which decode and score
    printed: PrintedCost  # the training times that the papers state


@dataclass(frozen=True)
class PaperCosts:
    """The costs of all tables and figures."""

    exhibits: Mapping[str, Cost]  # name of a table or figure -> its cost
    # The core-hours of all other jobs, such as those for text and vocabularies.
    shared: float
    # The cost of all exhibits with the shared jobs. Each training counts once.
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
    exhibits = {}
    # Anchor of a training -> the training. A training that several exhibits need has one anchor.
    every_training: dict[str, Training] = {}
    jobs_of_exhibits: set[Path] = set()
    for name, its_cells in cells.items():
        trained = _trainings(settings, its_cells)
        every_training |= {run.anchor: run for run in trained}
        jobs = set(_benchmarks_of(settings, its_cells, benchmarks))
        jobs_of_exhibits |= jobs
        exhibits[name] = _cost(trained, jobs, printed_cost(settings, [name]))
    every_job = jobs_of_exhibits | _all_benchmarks(settings, cells, benchmarks)
    return PaperCosts(
        exhibits=exhibits,
        shared=_core_hours(every_job - jobs_of_exhibits),
        total=_cost(every_training.values(), every_job, printed_cost(settings, cells)),
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
            if known:
                stated.append(known)
            else:
                unstated.add((text, model))
    # A model and its copy in fp32 have the same entry. It counts once, because the paper trained
    # the model once.
    return PrintedCost(list(dict.fromkeys(stated)), unstated)


def _trainings(settings: Settings, cells: Iterable[Cell]) -> list[Training]:
    """Return the trainings that cells need, each once.

    A training whose files do not exist is returned without epochs and summary. Released models have
    no trainings.
    """
    trainings = {}
    for cell in cells:
        if settings.tasks[cell.task].released:
            continue
        for record in cell.records:
            for task, model, run in record.trainings:
                # The folders of all runs of a model are side by side.
                folder = Path(record.file).parent.with_name(run)
                if folder not in trainings:
                    trainings[folder] = read_training(task, model, run, folder)
    return list(trainings.values())


def _benchmarks_of(
    settings: Settings,
    cells: Iterable[Cell],
    folder: Path,
) -> Iterator[Path]:
    """Yield the existing benchmark files of the jobs that make the cells' scores from models."""
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

    The jobs that prepare a text count if a task with cells uses the text.
    """
    shown = {cell.task for its_cells in cells.values() for cell in its_cells}
    texts = {settings.tasks[name].text_name for name in shown}
    # The first folder in the path of a job's benchmark file is its task or its text.
    others = (settings.tasks.keys() | settings.broken.keys()) - shown - texts
    found = set()
    for path in folder.rglob("*.tsv"):
        below = path.relative_to(folder)
        # The benchmark file of a training has only the last attempt. The hours of trainings are
        # read from their histories instead, which have all attempts.
        is_training = below.match("*/*/seed*/train.tsv")
        if below.parts[0] not in others and not is_training:
            found.add(path)
    return found


def _cost(
    trained: Collection[Training],
    jobs: Iterable[Path],
    printed: PrintedCost,
) -> Cost:
    """Return the cost of trainings, and of the jobs with the benchmark files ``jobs``."""
    recorded_hours = [run.hours for run in trained if run.hours is not None]
    return Cost(
        trainings=len(trained),
        finished=sum(bool(run.summary) for run in trained),
        measured=sum(recorded_hours, Hours()) if recorded_hours else None,
        jobs=_core_hours(jobs),
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
