"""The cells of the papers' tables that this project measures.

config/paper.yaml says which runs a cell compares with its printed value. Of a run it has a record
(`ledger.LedgerEntry`), without scores as long as nothing has been run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from convs2s.config.measures import MEASURES, RESCORED
from convs2s.config.messages import check_known
from convs2s.config.paper import Column, Row
from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.paper.ledger import LedgerEntry, RunNames, planned_entry
from convs2s.paper.run_inputs import RunInputs

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
    records: Sequence[LedgerEntry]  # of the runs whose scores are averaged, without scores
    n_best: str | None = None  # a file, or the run whose list stands in for it
    # What `results` finds: of the runs with scores the records, by run, and all other records.
    entries: Mapping[str, LedgerEntry] = field(default_factory=dict)
    missing: Sequence[LedgerEntry] = ()
    failures: Mapping[str, str] = field(default_factory=dict)  # run without scores -> why it failed
    scores: Mapping[str, float] = field(default_factory=dict)  # run -> its score
    signatures: Sequence[str] = ()  # those of the metric, each once
    mean: float | None = None  # over the runs; None without one, or of several signatures
    deviation: float | None = None  # over the runs; None of one run, or where there is no mean

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs whose scores are averaged."""
        return tuple(record.run.run for record in self.records)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that hold their scores."""
        return tuple(record.file for record in self.records)

    @property
    def trainings(self) -> list[tuple[str, str, str]]:
        """Task, model and run of each training that it rests on."""
        return [training for record in self.records for training in record.trainings]

    @property
    def trained(self) -> list[tuple[str, str, str]]:
        """Those that its scores rest on, each once."""
        names = [name for entry in self.entries.values() for name in entry.trainings]
        return list(dict.fromkeys(names))

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs between its models and its numbers, in order."""
        names = {"testset": self.testset, "decoding": self.decoding, "phrases": self.phrases}
        return [job.format(**names) for job in MEASURES[self.measure].file.jobs]

    def tuning_jobs(self, development_set: str) -> list[str]:
        """Return the names of those of its jobs that tune its length penalty on a set."""
        names = {"testset": development_set, "decoding": self.decoding}
        return [job.format(**names) for job in _TUNING] if self.jobs else []


def cells_of_tables(settings: Settings, results: str | None = None) -> dict[str, list[Cell]]:
    """Return the cells of every table and figure; ``results`` is that of `cells`."""
    return {name: cells(settings, name, results) for name in settings.paper}


def planned_cells(
    settings: Settings, results: str, planned: Mapping[str, Mapping[str, str]]
) -> dict[str, list[Cell]]:
    """Return the cells of tables with the runs alone whose fingerprints are planned (`Plan`)."""
    found: dict[str, list[Cell]] = {}
    for name, fingerprints in planned.items():
        found[name] = []
        for cell in cells(settings, name, results):
            left = [one for one in cell.records if one.fingerprint in fingerprints.values()]
            if left:
                found[name].append(replace(cell, records=left))
    return found


def cells(settings: Settings, name: str, results: str | None = None) -> list[Cell]:
    """Return the cells of a table or figure that this project measures at the current scale.

    ``results`` is the folder of the results where it is not the scale's: a job has the prefix of a
    module, or the local copies of a storage, before the paths of its inputs. A UserError says that
    config/paper.yaml has no such table, and names the nearest one.
    """
    check_known("config/paper.yaml", "table", name, settings.paper)
    layout = Layout(results or settings.scale.results_dir, settings.scale.downloads_dir)
    printed = settings.paper[name]
    known = RunInputs(settings)
    found = []
    for number, row in enumerate(printed.rows):
        for column in printed.columns:
            address = CellAddress(name, number, column.key)
            if cell := _cell(settings, address, row, column, layout, known):
                found.append(cell)
    return found


def _cell(
    settings: Settings,
    address: CellAddress,
    row: Row,
    column: Column,
    layout: Layout,
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
    # What the path of the numbers is named by: of a row that is compared, each is stated.
    stated = {
        "testset": scale.testset_for(row.testset or ""),
        "decoding": row.decoding,
        "phrases": scale.phrases_for(row.phrases or ""),
    }
    names = {key: stated[key] if key in file.named_by else None for key in stated}
    testset = names["testset"]
    n_best = None
    if file == RESCORED:
        n_best = settings.tasks[task].n_best.get(testset or "")
        if scale.n_best is not None:
            n_best = str(scale.n_best)
        if n_best is None:
            return None
    path = file.pattern.format(**names)
    records = []
    for run in runs:
        inputs = known.of(file.suffix, task=task, model=model, run=run, **names)
        place = f"{layout.task(task).run(model, run)}/{path}"
        run_names = RunNames(task, model, run, testset, names["decoding"])
        records.append(planned_entry(inputs, place, run_names, settings.options.scale))
    return Cell(
        address,
        measure,
        task,
        model,
        testset,
        decoding=names["decoding"],
        phrases=names["phrases"],
        records=records,
        n_best=n_best,
    )
