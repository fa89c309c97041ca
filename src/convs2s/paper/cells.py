"""The cells of the papers' tables that this project measures.

config/paper.yaml says which runs a cell compares with its printed value. A cell has a record
(`ledger.LedgerEntry`) of each of these runs. The record is planned from the configuration and has
no scores. `results.results` adds the scores of the runs that were made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from convs2s.config.measures import MEASURES, RESCORED
from convs2s.config.messages import check_known
from convs2s.config.paper import Column, Row
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.paper.ledger import LedgerEntry, RunNames, planned_entry
from convs2s.paper.run_inputs import RunInputs

_TUNING = ("{testset}.{decoding}.nbest", "{testset}.{decoding}.length_penalty")
"""Names of the jobs that tune a length penalty on a development set."""


@dataclass(frozen=True)
class CellAddress:
    """The place of a value in the papers, printed as ``table1, row 3, bleu`` (rows from 1)."""

    table: str
    row: int  # index from 0
    column: str  # key of the column

    def __str__(self) -> str:
        return f"{self.table}, row {self.row + 1}, {self.column}"


@dataclass(frozen=True)
class Cell:
    """One value of a table that this project measures, and the runs that it is computed from.

    If the scale has stand-ins for the task, model, test set or phrases, the cell names the
    stand-ins. Test set, decoding, phrases and n-best list are None if the measure does not need
    them.
    """

    address: CellAddress
    measure: str
    task: str
    model: str
    testset: str | None
    decoding: str | None
    phrases: str | None
    # A planned record, without scores, for each run of the cell.
    records: Sequence[LedgerEntry]
    # The file of the n-best list to rescore, or the run whose list stands in for it.
    n_best: str | None = None

    # `results` fills the fields below.

    # Run -> record with scores.
    entries: Mapping[str, LedgerEntry] = field(default_factory=dict)
    missing: Sequence[LedgerEntry] = ()  # planned records of the runs without scores
    # Run without scores -> why it failed.
    failures: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)  # run -> its score
    signatures: Sequence[str] = ()  # the different signatures of the metric
    mean: float | None = None  # None without scores, or if their signatures differ
    deviation: float | None = None  # None with fewer than two scores, or without a mean

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs whose scores are averaged."""
        return tuple(record.run.run for record in self.records)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files with the scores of the runs."""
        return tuple(record.file for record in self.records)

    @property
    def trainings(self) -> list[tuple[str, str, str]]:
        """Task, model and run of each training that the cell needs."""
        return [training for record in self.records for training in record.trainings]

    @property
    def trained(self) -> list[tuple[str, str, str]]:
        """Task, model and run of each training behind the scores that the cell has."""
        names = [name for entry in self.entries.values() for name in entry.trainings]
        return list(dict.fromkeys(names))

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs that compute the numbers from the models, in the order they run."""
        return [
            job.format(
                testset=self.testset, decoding=self.decoding, phrases=self.phrases
            )
            for job in MEASURES[self.measure].file.jobs
        ]

    def tuning_jobs(self, development_set: str) -> list[str]:
        """Return the names of the jobs that tune the length penalty on a development set.

        The list is empty for numbers that the training itself writes, because no job follows it.
        """
        if not self.jobs:
            return []
        return [
            job.format(testset=development_set, decoding=self.decoding)
            for job in _TUNING
        ]


def cells_of_tables(
    settings: Settings, results: str | None = None
) -> dict[str, list[Cell]]:
    """Return the cells of every table and figure; for ``results`` see `cells`."""
    return {name: cells(settings, name, results) for name in settings.paper}


def planned_cells(
    settings: Settings,
    results: str,
    planned: Mapping[str, Mapping[str, str]],
) -> dict[str, list[Cell]]:
    """Return the cells of tables, reduced to the runs that are planned to be made here.

    ``planned`` is, for each table, file of a run's numbers -> fingerprint of the run
    (`Plan.planned`). Cells without such a run are omitted.
    """
    found: dict[str, list[Cell]] = {}
    for name, fingerprints in planned.items():
        found[name] = []
        for cell in cells(settings, name, results):
            kept = [
                record
                for record in cell.records
                if record.fingerprint in fingerprints.values()
            ]
            if kept:
                found[name].append(replace(cell, records=kept))
    return found


def cells(
    settings: Settings,
    name: str,
    results: str | None = None,
) -> list[Cell]:
    """Return the cells of a table or figure that this project measures at the current scale.

    ``results`` is the folder of the results; None for that of the scale. A job has another folder
    if its input paths begin with the prefix of a module, or with the folder of a storage's local
    copies.

    Raises:
        UserError: config/paper.yaml has no such table; the message names the nearest one.
    """
    check_known("config/paper.yaml", "table", name, settings.paper)
    layout = Layout(results or settings.scale.results_dir, settings.scale.downloads_dir)
    printed = settings.paper[name]
    run_inputs = RunInputs(settings)
    found = []
    for number, row in enumerate(printed.rows):
        for column in printed.columns:
            address = CellAddress(name, number, column.key)
            if cell := _cell(settings, address, row, column, layout, run_inputs):
                found.append(cell)
    return found


def stand_ins(scale: Scale, row: Row) -> tuple[str, str] | None:
    """Return the task and model that the scale uses for those of a row; None if it lacks one."""
    if row.task is None or row.model is None:
        return None
    task = scale.task_for(row.task)
    model = scale.model_for(row.model)
    if task is None or model is None:
        return None
    return task, model


def _cell(
    settings: Settings,
    address: CellAddress,
    row: Row,
    column: Column,
    layout: Layout,
    run_inputs: RunInputs,
) -> Cell | None:
    """Return the cell of a row in a column; None if nothing is measured there at this scale."""
    scale = settings.scale
    measure = row.measure_in(column)
    if row.kind != "ours" or measure is None or scale.why_left_out(row):
        return None
    task_and_model = stand_ins(scale, row)
    if task_and_model is None:
        return None
    task, model = task_and_model
    if task in settings.broken:
        return None  # `Plan.check_tasks` has refused the commands that need this task
    # An extension's metric is computed only for the tasks that state it.
    if measure not in MEASURES and measure not in settings.tasks[task].metrics:
        return None
    file = MEASURES[measure].file
    # The names in the path of the numbers. When the configuration was loaded, `Row.comparison`
    # checked that the row states its runs, and the names that the measure's file needs.
    testset = decoding = phrases = None
    if "testset" in file.named_by:
        testset = scale.testset_for(row.testset or "")
    if "decoding" in file.named_by:
        decoding = row.decoding
    if "phrases" in file.named_by:
        phrases = scale.phrases_for(row.phrases or "")
    n_best = None
    if file == RESCORED:
        n_best = settings.tasks[task].n_best.get(testset or "")
        # At some scales, the list of a run of this project stands in for the task's.
        if scale.n_best is not None:
            n_best = str(scale.n_best)
        if n_best is None:
            return None
    path = file.pattern.format(testset=testset, decoding=decoding, phrases=phrases)
    records = []
    for run in scale.runs_for(row.runs, address.table):
        names = RunNames(task, model, run, testset, decoding)
        inputs = run_inputs.of(file.suffix, names, phrases)
        numbers = f"{layout.task(task).run(model, run)}/{path}"
        records.append(planned_entry(inputs, numbers, names, settings.options.scale))
    return Cell(
        address,
        measure,
        task,
        model,
        testset,
        decoding,
        phrases,
        records,
        n_best=n_best,
    )
