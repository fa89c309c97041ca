"""What each table and figure takes: measured of the runs that are there, expected of the others."""

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.costs import KnownTraining
from convs2s.config.paper import Table
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.files.text import read_lines
from convs2s.paper.cells import Cell
from convs2s.paper.expected_cost import Expectation
from convs2s.paper.jobs_of_numbers import jobs_of, tuning_of
from convs2s.paper.trained import Hours, Training, read_training

_SECONDS_PER_HOUR = 3600

_TRAININGS = "*/*/seed*/train.tsv"
"""The benchmarks of trainings, which know the last attempt alone, where histories know all."""


@dataclass(frozen=True)
class Cost:
    """What runs take.

    Attributes:
        trainings: how many there are.
        timed: how many of them are there, with a record of their time.
        untimed: how many are there without one.
        measured: hours of those with one; None where there is none.
        jobs: core-hours of the other jobs that have run: decoding and scoring.
        left: hours expected of the trainings that are not there, as far as those are known; None
            where nothing is known of any.
        unknown: the number of trainings that are not there and of which nothing tells the hours.
    """

    trainings: int
    timed: int
    untimed: int
    measured: Hours | None
    jobs: float
    left: Hours | None
    unknown: int

    @property
    def finished(self) -> int:
        """The number of trainings that are there."""
        return self.timed + self.untimed


@dataclass(frozen=True)
class PrintedCost:
    """What the papers state of the trainings of their own table.

    Attributes:
        stated: one for each model whose time they state.
        unstated: text and model of those of which they do not.
    """

    stated: tuple[KnownTraining, ...]
    unstated: frozenset[tuple[str, str]]

    @property
    def hours(self) -> float:
        """GPU-hours of one training of each model whose time is stated."""
        return sum(one.hours for one in self.stated)


@dataclass(frozen=True)
class PaperCosts:
    """What all tables and figures take.

    Attributes:
        exhibits: name -> its cost.
        printed: name -> what the papers state.
        shared: core-hours of jobs that serve no single one: text, vocabularies, curves, plots.
        total: of all, each run once; the shared jobs are in its jobs.
    """

    exhibits: Mapping[str, Cost]
    printed: Mapping[str, PrintedCost]
    shared: float
    total: Cost


def costs(settings: Settings, cells: Mapping[str, Sequence[Cell]], benchmarks: Path) -> PaperCosts:
    """Return what the tables and figures take.

    Args:
        settings: the configuration.
        cells: table -> its cells, whose runs are made here, beside the files of their numbers.
        benchmarks: the folder of Snakemake's benchmark files.

    Raises:
        UserError: the record of a training is no JSON.
    """
    trained = {name: _trainings(settings, measured) for name, measured in cells.items()}
    every_training = {one.anchor: one for found in trained.values() for one in found}.values()
    expectation = Expectation(settings, every_training)
    jobs = {name: _jobs(settings, measured, benchmarks) for name, measured in cells.items()}
    of_one = set().union(*jobs.values())
    every_job = {*benchmarks.rglob("*.tsv")} - {*benchmarks.glob(_TRAININGS)}
    return PaperCosts(
        exhibits={name: _cost(found, expectation, jobs[name]) for name, found in trained.items()},
        printed={name: printed_cost(settings, settings.paper[name]) for name in cells},
        shared=_core_hours(every_job - of_one),
        total=_cost(every_training, expectation, every_job | of_one),
    )


def printed_cost(settings: Settings, table: Table) -> PrintedCost:
    """Return what the papers state of the trainings that a table of theirs rests on."""
    models = {
        (settings.tasks[row.task].text_name, row.model)
        for row in table.rows
        if row.kind == "ours" and row.task and row.model
    }
    known = [settings.costs.training(*one) for one in sorted(models)]
    stated = tuple(one for one in known if one and one.printed)
    return PrintedCost(stated, frozenset(models - {(one.text, one.model) for one in stated}))


def all_printed(found: PaperCosts) -> PrintedCost:
    """Return what the papers state of all exhibits' models, each once."""
    each = found.printed.values()
    stated = tuple(dict.fromkeys(one for printed in each for one in printed.stated))
    unstated = frozenset().union(*(printed.unstated for printed in each))
    return PrintedCost(stated, unstated)


def _trainings(settings: Settings, cells: Iterable[Cell]) -> list[Training]:
    """Return the trainings that cells rest on, each once, as far as their files are there."""
    folders = {
        (cell.task, cell.model, member): Path(path).parent.parent / member
        for cell in cells
        if not settings.tasks[cell.task].released
        for run, path in zip(cell.runs, cell.paths, strict=True)
        for member in members(run)
    }
    return [read_training(*name, folder) for name, folder in folders.items()]


def _jobs(settings: Settings, cells: Iterable[Cell], folder: Path) -> set[Path]:
    """Return the benchmark files of the jobs between models and cells, of those that have run."""
    named = (path for cell in cells for path in _jobs_of(settings, cell, folder))
    return {path for path in named if path.is_file()}


def _jobs_of(settings: Settings, cell: Cell, folder: Path) -> Iterator[Path]:
    """Yield the benchmark files of the jobs between a cell's models and its numbers."""
    stems, decoding = jobs_of(cell), settings.decodings.get(cell.decoding or "")
    tuned_on = decoding and settings.scale.development_set(settings.tasks[cell.task], decoding)
    if tuned_on:
        stems += tuning_of(cell, tuned_on)
    for run in cell.runs:
        yield from (folder / cell.task / cell.model / run / f"{stem}.tsv" for stem in stems)


def _cost(trained: Collection[Training], expectation: Expectation, jobs: Iterable[Path]) -> Cost:
    """Return what trainings and other jobs take."""
    there = [one for one in trained if one.summary]
    timed = [one.hours for one in there if one.hours is not None]
    absent = [one for one in trained if not one.summary]
    expected = [expectation.hours(one.task, one.model) for one in absent]
    known = [hours for hours in expected if hours is not None]
    return Cost(
        trainings=len(trained),
        timed=len(timed),
        untimed=len(trained) - len(timed) - len(absent),
        measured=sum(timed, Hours()) if timed else None,
        jobs=_core_hours(jobs),
        left=sum(known, Hours()) if known or not absent else None,
        unknown=len(absent) - len(known),
    )


def _core_hours(benchmarks: Iterable[Path]) -> float:
    """Return the processor time of jobs; of one too short to be sampled, the time that it took."""
    rows = (row for path in benchmarks for row in csv.DictReader(read_lines(path), delimiter="\t"))
    seconds = (float(row["s"] if row["cpu_time"] == "NA" else row["cpu_time"]) for row in rows)
    return sum(seconds) / _SECONDS_PER_HOUR
