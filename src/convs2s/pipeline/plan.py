"""Which files a run of the workflow makes, shows or leaves out, of tasks and of the papers' tables.

Planning asks for it, so this module imports nothing that only jobs have.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.messages import check_known
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.layout import Layout
from convs2s.paper.cells import Cell, cells_of_tables
from convs2s.paper.failures import failures_of
from convs2s.paper.ledger import published_file, read_ledger
from convs2s.pipeline.sources import has_sources

LAYERS_FIGURE = "figure2"
EXAMPLE_FIGURE = "figure3"
PHRASE_FIGURE = "lstm_figure2"
LENGTH_FIGURE = "lstm_figure3"
FIGURES = (LAYERS_FIGURE, EXAMPLE_FIGURE, PHRASE_FIGURE, LENGTH_FIGURE)


@dataclass(frozen=True)
class Plan:
    """What tasks' headlines, tables and figures rest on, and which of their runs are made here.

    A run is not made here whose numbers a published ledger has (config.yaml: published), whose task
    waits for files that somebody has to license, or that times a GPU where none is asked for.
    """

    settings: Settings
    layout: Layout
    logs: str  # the folder of the jobs' logs
    benchmarks: str  # that of Snakemake's benchmark files
    exists: Callable[[str], bool]  # whether a file is there, in this folder or in the storage
    words: Sequence[str]  # of the command line, among them the targets
    is_module: bool = False  # another workflow's rules may make what no rule of ours makes

    def check_files(self) -> None:
        """Check a user's file, and the published ledger.

        Snakemake would not miss the file: it takes scores for finished that are there, if no rule
        can make what they were made from.

        Raises:
            UserError: the file is missing, or the ledger has faults.
        """
        file = self.settings.options.rouge_exceptions
        if file and not self.is_module and not self.exists(file):
            raise UserError(
                f"rouge_exceptions: {file}: no such file; docs/rouge.md says how to make it"
            )
        _ = self.planned  # which reads the ledger

    def source_files(
        self,
        name: str,
        split: str,
        reference: int | None = None,
    ) -> list[str]:
        """Return the files that a split is extracted from, or its further reference of this number.

        Raises:
            UserError: some are missing, no download brings them, and nothing that was made of files
                of their names is there.
        """
        task = self.settings.tasks[name]
        part = split
        pairs = task.file_pairs(split)
        if reference is not None:
            part = f"{split}.reference{reference}"
            pairs = task.reference_pairs(split, reference)
        if not self.is_module:
            folder = self.layout.task(name)
            raw = folder.text("raw", part, "target")
            made = [raw, folder.text("clean", part, "target")]
            for other, sharing in self.settings.tasks.items():
                if sharing.text_name == name:
                    made.append(self.layout.task(other).store(split))
            is_made = any(map(self.exists, made)) and has_sources(raw, pairs)
            if not is_made:
                task.require_files(lambda path: path in self._fetched or self.exists(path))
        references = (file for pair in pairs for file in pair)
        return list(dict.fromkeys(map(self.local_file, references)))

    @cached_property
    def _fetched(self) -> set[str]:
        """The files that a rule fetches or writes below the downloads folder."""
        folder = Path(self.layout.downloads)
        return {str(folder / place) for place in self.settings.downloads_by_place()}

    def local_file(self, reference: str) -> str:
        """Return where the file of a reference lies once it is downloaded."""
        file = parse_file_reference(reference)
        return str(file.path(Path(self.layout.downloads)))

    def start_of(self, model: str) -> list[str]:
        """Return the model file that a training starts from, if it starts from one."""
        where = f"config/models.yaml: {model}: training.start.from"
        return [self._model_file(one, where) for one in self.settings.start_of(model)]

    def model_of_vocabulary(self, task: str) -> str:
        """Return the model file that a task takes its vocabulary from, if it takes it from one."""
        model = self.settings.tasks[task].vocabulary_of
        return self._model_file(model, f"config/tasks/{task}.yaml: vocabulary_of") if model else ""

    def _model_file(self, reference: str, where: str) -> str:
        """Return a model file; a UserError says that it is neither there nor made here."""
        path = self.local_file(reference)
        if self.is_module or "://" in reference or self.exists(path):
            return path
        results = re.escape(self.settings.scale.results_dir)
        made = re.fullmatch(rf"{results}/([^/]+)/models/([^/]+)/[^/]+/model\.safetensors", path)
        if not made:
            raise UserError(f"{where}: {path}: no such file: name a model file that is there")
        check_known(where, "task", made[1], self.settings.tasks)
        check_known(where, "model", made[2], self.settings.models)
        return path

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """The cells of each table and figure of this scale."""
        return cells_of_tables(self.settings, self.layout.results)

    @cached_property
    def published(self) -> list[str]:
        """The published ledger, fetched if it has an address; nothing without one.

        Planning reads it, so it is no job's to fetch.
        """
        file = published_file(self.settings.options, Path(".snakemake/convs2s/published"))
        return [str(file)] if file else []

    @cached_property
    def planned(self) -> dict[str, list[Cell]]:
        """The cells whose runs are made here, by table, with these runs alone."""
        known = set()
        for ledger in self.published:
            for entry in read_ledger(Path(ledger)):
                known |= {(entry.fingerprint, measure) for measure in entry.scores}
        shown = {cell.task for table in self.cells.values() for cell in table}
        waiting = set(filter(self._lacks_files, shown))
        planned: dict[str, list[Cell]] = {}
        for name, table in self.cells.items():
            planned[name] = []
            for cell in table:
                if cell.task in waiting or self._is_impossible(cell):
                    continue
                left = []
                for record in cell.records:
                    # What was run here counts before what is published.
                    is_known = (record.fingerprint, cell.measure) in known
                    if not is_known or self.exists(record.file):
                        left.append(record)
                if left:
                    planned[name].append(replace(cell, records=left))
        return planned

    def _lacks_files(self, task: str) -> bool:
        """Return whether a task needs a user's file which is not there."""
        files = map(parse_file_reference, self.settings.tasks[task].needed_references())
        return any(not file.is_url and not self.exists(file.location) for file in files)

    def _is_impossible(self, cell: Cell) -> bool:
        """Return whether a cell times a GPU without one, or lacks a user's n-best list."""
        if cell.measure == "seconds_cuda" and self.settings.options.device != "cuda":
            return not all(map(self.exists, cell.paths))
        is_users = cell.n_best is not None and self.settings.scale.n_best is None
        return is_users and not self.exists(str(cell.n_best))

    @cached_property
    def planned_cells(self) -> list[Cell]:
        """All cells whose runs are made here."""
        return [cell for table in self.planned.values() for cell in table]

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks that the stage targets cover: config.yaml's, else those of the tables."""
        named = self.settings.options.tasks
        return list(named or dict.fromkeys(cell.task for cell in self.planned_cells))

    @cached_property
    def runs(self) -> list[str]:
        """The folders of the trainings that tables and figures rest on."""
        names = [training for cell in self.planned_cells for training in cell.trainings]
        return [self.layout.task(task).run(model, run) for task, model, run in dict.fromkeys(names)]

    def _asks_for(self, target: str) -> bool:
        """Return whether a target is asked for by name; in a module the name may have a prefix."""
        return any(word == target or word.endswith(f"_{target}") for word in self.words)

    def finished(self, paths: Iterable[str]) -> list[str]:
        """Return those files that exist, and all where `paper` asks for them.

        So a table that is asked for alone starts no training. The history of a training that goes
        on, or was killed, does not count as one that exists.
        """
        are_made = self._asks_for("paper")
        found = []
        for path in dict.fromkeys(paths):
            record = path.replace("history.jsonl", "training.json")  # which comes last
            if are_made or (self.exists(path) and self.exists(record)):
                found.append(path)
        return found

    def scores(self, *tables: str) -> list[str]:
        """Return the scores that tables show: what exists, unless `paper` or `speed` asks."""
        paths = [path for table in tables for cell in self.planned[table] for path in cell.paths]
        if tables == ("table3",) and self._asks_for("speed"):
            return list(dict.fromkeys(paths))
        return self.finished(paths)

    def contents(self, name: str) -> dict[str, Any]:
        """Return what a table is made from but its scores: a change of it makes the table again."""
        table = self.cells[name]
        return {
            "printed": self.settings.paper[name].model_dump(mode="json"),
            "above": self.above,
            "runs": self.fingerprints(table),
            "trainings": self.settings.costs.model_dump(mode="json")["trainings"],
            "failures": failures_of(table, self.layout, self.logs),
        }

    @property
    def above(self) -> dict[str, object]:
        """What every page says of the scale."""
        return self.settings.scale.model_dump(mode="json", include={"stand_in", "left_out"})

    def fingerprints(self, table: Iterable[Cell]) -> dict[str, str]:
        """Return the files of cells -> the fingerprints, which a change of a recipe changes."""
        return {record.file: record.fingerprint for cell in table for record in cell.records}

    def can_be_drawn(self, figure: str) -> bool:
        """Return whether a model here makes what a figure shows; a user's n-best list is not it."""
        cells_of_figure = self.planned.get(figure, [])
        return any(cell.decoding or cell.phrases for cell in cells_of_figure)

    @cached_property
    def figures(self) -> list[str]:
        """The figures that can be drawn; figure 2 is drawn from scores alone."""
        from_scores = [LAYERS_FIGURE] if self.cells.get(LAYERS_FIGURE) else []
        return [name for name in FIGURES if self.can_be_drawn(name) or name in from_scores]

    def drawn_cells(self, figure: str) -> list[Cell]:
        """Return the cells of a figure.

        Raises:
            UserError: nothing here makes what it shows.
        """
        if not self.can_be_drawn(figure):
            raise UserError(
                f"{figure}.svg: no model of this run makes what it shows: it is published, left "
                f"out or waits for its files; {figure}.md has its numbers"
            )
        return self.planned[figure]

    def compared_curves(self) -> tuple[Cell, Cell | None]:
        """Return whose translations the curves by length are of, and the baseline's cell, if any.

        They are those of the figure's first row.

        Raises:
            UserError: nothing here makes what the figure shows.
        """
        row = self.drawn_cells(LENGTH_FIGURE)
        decoded = next(cell for cell in row if cell.decoding)
        listed = next((cell for cell in row if cell.n_best), None)
        return decoded, listed

    def files_of_curves(self) -> dict[str, str | list[str]]:
        """Return what `compared_curves` are drawn from, by the names of the job's inputs."""
        cell, listed = self.compared_curves()
        testset = str(cell.testset)
        task = self.settings.tasks[cell.task]
        text = self.layout.task(task.text_name)
        baseline = []
        if listed:
            baseline.append(self.baseline_list(listed.task, str(listed.testset)))
        return {
            "system": cell.paths[0].replace(".bleu.json", ".jsonl"),
            "baseline": baseline,
            "source": text.text("tok", testset, "source"),
            "reference": text.text("tok", testset, "target"),
            "vocabulary": self.layout.task(cell.task).vocabulary(task.languages.source),
        }

    def names_of_curves(self) -> list[str]:
        """Return what the legend calls these curves: a model and a run, or a list."""
        cell, listed = self.compared_curves()
        names = [f"{cell.model} {cell.runs[0]}, {cell.decoding}"]
        if listed:
            names.append(str(listed.n_best))
        return names

    def shown_in_report(self) -> list[str]:
        """Return what stands in the report beside tables and ledger, as far as it is there."""
        paths = []
        for run in self.runs:
            paths += [f"{run}/history.jsonl", f"{run}/training.json"]
        if self.can_be_drawn(EXAMPLE_FIGURE):
            paths.append(self.planned[EXAMPLE_FIGURE][0].paths[0])
        paths += [self.layout.paper(f"{name}.svg") for name in self.figures]
        # The translations of one run of each task and test set, and their references.
        decoded: dict[tuple[str, str], str] = {}
        for cell in self.planned_cells:
            is_decoded = cell.testset and cell.decoding and not cell.n_best
            if is_decoded and self.finished(cell.paths[:1]):
                run = self.layout.task(cell.task).run(cell.model, cell.runs[0])
                place = (cell.task, str(cell.testset))
                decoded.setdefault(place, f"{run}/{cell.testset}.{cell.decoding}.jsonl")
        for (task, testset), translations in sorted(decoded.items()):
            text = self.layout.task(self.settings.tasks[task].text_name)
            paths += [translations, text.text("raw", testset, "target")]
        return self.finished(paths)

    def models_of(self, task: str) -> list[str]:
        """Return the model files that a task's headline rests on."""
        settings = self.settings.tasks[task]
        folder = self.layout.task(task)
        return [folder.model(settings.headline.model, run) for run in settings.headline_runs()]

    def headline_files(self, task: str, suffix: str) -> list[str]:
        """Return a file of each test set and run that a task's headline rests on."""
        settings = self.settings.tasks[task]
        headline = settings.headline
        files = []
        for test in settings.headline_tests():
            name = f"{test}.{headline.decoding}.{suffix}"
            runs = settings.headline_runs()
            files += self.layout.run_files(task, headline.model, runs, name)
        return files

    def tuned_penalty(
        self, task: str, model: str, run: str, decoding: str, listed: str | None = None
    ) -> list[str]:
        """Return where the length penalty stands that a decoding tunes; nothing if it is stated.

        The tuning goes by the n-best list of the development set, which is ``listed`` without it.
        """
        tuned_on = self.settings.scale.development_set(
            self.settings.tasks[task],
            self.settings.decodings[decoding],
        )
        if tuned_on is None or tuned_on == listed:
            return []
        folder = self.layout.task(task)
        return [folder.translations(model, run, tuned_on, decoding, "length_penalty.json")]

    def translations_of_seeds(
        self, task: str, model: str, testset: str, decoding: str
    ) -> list[str]:
        """Return a model's translations of a test set, of the seeds of the task's headline."""
        headline = self.settings.tasks[task].headline
        runs = [f"seed{seed}" for seed in headline.seeds]
        return self.layout.run_files(task, model, runs, f"{testset}.{decoding}.jsonl")

    def baseline_list(self, task: str, testset: str) -> str:
        """Return another system's n-best list of a test set: a user's file, or what stands for it.

        Raises:
            UserError: the task has none of this set.
        """
        own = self.settings.scale.n_best
        if own is None:
            return self.settings.tasks[task].n_best_of(testset)
        folder = self.layout.task(task)
        return folder.translations(own.model, own.run, testset, own.decoding, "nbest.zst")

    def plots_of(self, task: str) -> list[str]:
        """Return the learning curves of a task's headline, and the attention of its first run."""
        settings = self.settings.tasks[task]
        model = settings.headline.model
        plots = []
        if settings.released is None:
            plots += self.layout.run_files(task, model, settings.headline_runs(), "curve.svg")
        if self.settings.models[model].architecture.has_attention:
            first = self.headline_files(task, "attention")[0]
            plots += [f"{first}{line}.svg" for line in self.settings.options.plots.sentences]
        return plots
