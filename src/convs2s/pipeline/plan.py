"""The plan of a run of the workflow: which files it makes, shows or leaves out.

The rules use it before any job has started. So this module must not import libraries that are only
installed in the environments of jobs.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.identity import training_settings
from convs2s.config.messages import check_known
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.layout import Layout, TaskFolder
from convs2s.paper.cells import Cell, cells_of_tables
from convs2s.paper.failures import failures_of
from convs2s.paper.ledger import published_file, read_ledger
from convs2s.pipeline.retrained import say_what_runs_again
from convs2s.pipeline.sources import has_sources

_SIDES: tuple[str, ...] = ("source", "target")
_THREAD = ThreadPoolExecutor(1)

LAYERS_FIGURE = "figure2"
EXAMPLE_FIGURE = "figure3"
PHRASE_FIGURE = "lstm_figure2"
LENGTH_FIGURE = "lstm_figure3"
FIGURES = (LAYERS_FIGURE, EXAMPLE_FIGURE, PHRASE_FIGURE, LENGTH_FIGURE)

STAGES = (
    "download",
    "prepare",
    "align",
    "train",
    "decode",
    "evaluate",
    "figures",
    "preflight",
)
"""Targets that cover config.yaml's tasks, or by default those of the tables."""

PAGES = ("tables", "speed", "paper", "report")
"""Targets that cover the papers' tables."""


@dataclass(frozen=True)
class Plan:
    """The runs behind headlines, tables and figures, and which of these runs are made here.

    A run is not made here in these cases:

    - The published ledger (config.yaml: published) has its numbers.
    - Its task needs a file that a user has to provide, and the file is missing.
    - It rescores an n-best list that a user has to provide, and the list is missing.
    - It measures the time on a GPU, but config.yaml's device is not a GPU.
    """

    settings: Settings
    layout: Layout
    logs: str  # the folder of the jobs' logs
    look: Callable[[str], bool]  # tells whether a file exists, here or in the storage
    words: Sequence[str]  # words of the command line, the targets among them
    # Whether another workflow uses this one; its rules may make our inputs.
    is_module: bool = False

    def exists(self, path: str) -> bool:
        """Return whether a file exists, in this folder or in the storage.

        Snakemake calls this inside an event loop, where its own query of a storage refuses to run.
        So the query runs in another thread.
        """
        return _THREAD.submit(self.look, path).result()

    def check_tasks(self) -> None:
        """Refuse a command line that needs a task whose file is not valid.

        A stage (`STAGES`) needs the tasks that config.yaml names, or by default those of the
        tables. A page (`PAGES`) needs those of the tables. A path in a task's folder needs it.

        Raises:
            UserError: the error of the task's file.
        """
        needed: set[str] = set()
        configured = self.settings.options.tasks
        asks_for_stage = any(map(self._asks_for, STAGES))
        page_folders = self.layout.paper(""), f"{self.layout.results}/shown/"
        names_page = self._names_part(*page_folders)
        asks_for_page = names_page or any(map(self._asks_for, PAGES))
        if asks_for_stage and configured:
            needed.update(configured)
        if asks_for_page or (asks_for_stage and not configured):
            needed |= self.settings.tasks_of_tables()
        for name in self.settings.broken:
            if self._names_part(f"{self.layout.task(name).path}/"):
                needed.add(name)
        self.settings.check_whole(sorted(needed))

    def check_files(self) -> None:
        """Check that the file of ROUGE's exceptions exists, and that the published ledger is valid.

        Snakemake itself would not report a missing file of exceptions if scores exist already: it
        treats outputs as finished if no rule can make their inputs.

        Raises:
            UserError: the file is missing, or the ledger is damaged.
        """
        file = self.settings.options.rouge_exceptions
        if file and not self.is_module and not self.exists(file):
            raise UserError(
                f"rouge_exceptions: {file}: no such file; docs/rouge.md says how to make it"
            )
        _ = self.planned  # this property reads and checks the ledger

    def source_files(
        self,
        name: str,
        split: str,
        reference: int | None = None,
    ) -> list[str]:
        """Return the files that a split is extracted from.

        With ``reference``, return the files of the test set's further reference of this number.

        Raises:
            UserError: a file is missing, no rule fetches or makes it, and no text that was
                extracted from it exists.
        """
        task = self.settings.tasks[name]
        part = split  # how files of the extracted text are named
        pairs = task.file_pairs(split)
        if reference is not None:
            part = f"{split}.reference{reference}"
            pairs = task.reference_pairs(split, reference)
        if not self.is_module and not self._is_extracted(name, split, part, pairs):
            task.require_files(lambda path: path in self._fetched or self.exists(path))
        return self.local_files(chain.from_iterable(pairs))

    def _is_extracted(
        self,
        name: str,
        split: str,
        part: str,
        pairs: Sequence[Sequence[str]],
    ) -> bool:
        """Return whether a text extracted from these files exists, or a file made from that text.

        In that case the run does not need the files themselves. A text from other files, which the
        task named before, does not count.
        """
        folder = self.layout.task(name)
        raw = folder.text("raw", part, "target")
        made = [raw, folder.text("clean", part, "target")]
        # The token stores of this task, and of other tasks that use its text.
        for store_task, settings in self.settings.tasks.items():
            if settings.text_name == name:
                made.append(self.layout.task(store_task).store(split))
        return any(map(self.exists, made)) and has_sources(raw, pairs)

    @cached_property
    def _fetched(self) -> set[str]:
        """The files below the downloads folder that a rule downloads or generates."""
        folder = Path(self.layout.downloads)
        return {str(folder / path) for path in self.settings.downloads_by_place()}

    def test_text(self, task: str) -> list[str]:
        """Return the raw text of a task's test sets, source before target."""
        text = self._text(task)
        tests = self.settings.tasks[task].corpus.tests
        return [text.text("raw", test, side) for test in tests for side in _SIDES]

    def evaluation_text(self, task: str) -> list[str]:
        """Return the raw text of a task's validation and test sets, source before target."""
        valid = [self._text(task).text("raw", "valid", side) for side in _SIDES]
        return valid + self.test_text(task)

    def _text(self, task: str) -> TaskFolder:
        """Return the folder of the task whose text a task uses."""
        return self.layout.task(self.settings.tasks[task].text_name)

    def references(self, task: str, testset: str) -> list[str]:
        """Return the raw text of a test set's target and further references."""
        names = [testset]
        for number in range(1, self.settings.tasks[task].reference_count(testset)):
            names.append(f"{testset}.reference{number}")
        return [self._text(task).text("raw", name, "target") for name in names]

    def example_text(self, task: str, testset: str) -> str | list[str]:
        """Return the source text with figure 3's line; an empty list for the paper's sentence."""
        if self.settings.scale.example_line is None:
            return []
        return self._text(task).text("raw", testset, "source")

    def removed_text(self, task: str) -> list[str]:
        """Return the text whose lines are removed from a task's training text, if any are."""
        is_removed = self.settings.tasks[task].clean.remove_overlap
        return self.evaluation_text(task) if is_removed else []

    def truecasers(self, task: str) -> list[str]:
        """Return the truecasers of both sides of a truecased task; other tasks have none."""
        if not self.settings.tasks[task].preparation.truecase:
            return []
        return [self._text(task).truecaser(side) for side in _SIDES]

    def own_files(self, paths: str | Iterable[str]) -> list[str]:
        """Return those of a rule's inputs that a user provides, because no rule makes them.

        The list is empty if another workflow uses this one, because its rules may make any input.
        """
        if self.is_module:
            return []
        own = []
        for path in [paths] if isinstance(paths, str) else paths:
            is_result = Path(path).is_relative_to(self.settings.scale.results_dir)
            if path not in self._fetched and not is_result:
                own.append(path)
        return own

    def local_files(self, references: Iterable[str]) -> list[str]:
        """Return the paths of files that the configuration names, each once.

        A user's file keeps its path; `https://host/a.tgz#member` is at `DOWNLOADS/host/a.tgz`.
        """
        folder = Path(self.layout.downloads)
        files = map(parse_file_reference, references)
        return list(dict.fromkeys(str(file.path(folder)) for file in files))

    def released_files(self, task: str) -> list[str]:
        """Return the files with the checkpoint, dictionaries and codes of the key ``released``."""
        return self.local_files(self.settings.tasks[task].released_references())

    def title_files(self, task: str) -> list[str]:
        """Return the tables of papers that the key ``titles`` of a task names."""
        titles = self.settings.tasks[task].titles
        return self.local_files(titles.files if titles else ())

    def counted_words(self, task: str, suffix: str) -> list[str]:
        """Return the tables of words from which BPE codes are learned.

        ``suffix`` is empty for codes of both languages, or ``.LANG``.
        """
        sides = _SIDES
        if suffix:
            sides = (self.settings.tasks[task].side_of(suffix[1:]),)
        folder = self._text(task).path
        return [f"{folder}/corpus/words/{side}.tsv.zst" for side in sides]

    def recipe_of(self, task: str, model: str, made: str) -> str:
        """Return the ``settings.json`` of a model, the recipe of its trainings.

        If finished trainings will run again because the recipe has changed, print a line about it.
        ``made`` is the path of the same file with the prefix of a module.
        """
        settings = training_settings(self.settings.models[model])
        say_what_runs_again(f"{task}/{model}", made, settings)
        return f"{self.layout.task(task).path}/models/{model}/settings.json"

    def start_of(self, model: str) -> list[str]:
        """Return the model file that a training starts from; an empty list if there is none."""
        where = f"{self.settings.model_files[model]}: {model}: training.start.from"
        references = self.settings.start_of(model)
        return [self._model_file(reference, where) for reference in references]

    def model_of_vocabulary(self, task: str) -> str:
        """Return the model file that a task takes its vocabulary from.

        The task must name one (``vocabulary_of``).
        """
        model = str(self.settings.tasks[task].vocabulary_of)
        return self._model_file(model, f"config/tasks/{task}.yaml: vocabulary_of")

    def _model_file(self, reference: str, where: str) -> str:
        """Return the path of a model file. Error messages name the key ``where`` that refers to it.

        Raises:
            UserError: the file does not exist, and no rule downloads or trains it.
        """
        (path,) = self.local_files([reference])
        if self.is_module or "://" in reference or self.exists(path):
            return path
        # RESULTS/TASK/models/MODEL/RUN/model.safetensors: a training of this workflow makes it.
        results = re.escape(self.settings.scale.results_dir)
        trained = re.fullmatch(
            rf"{results}/([^/]+)/models/([^/]+)/[^/]+/model\.safetensors", path
        )
        if not trained:
            raise UserError(
                f"{where}: {path}: no such file; name a model file that exists"
            )
        check_known(where, "task", trained[1], self.settings.tasks)
        check_known(where, "model", trained[2], self.settings.models)
        return path

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """The cells of each table and figure of this scale."""
        return cells_of_tables(self.settings, self.layout.results)

    @cached_property
    def published(self) -> list[str]:
        """The path of the published ledger; an empty list if config.yaml names none.

        A ledger with an address is downloaded here and not by a job, because planning reads it.
        """
        file = published_file(
            self.settings.options, Path(".snakemake/convs2s/published")
        )
        return [str(file)] if file else []

    @cached_property
    def planned(self) -> dict[str, list[Cell]]:
        """The cells of each table, with the runs made here; cells without such runs are omitted."""
        known = set()  # fingerprint and measure of each published score
        for ledger in self.published:
            for entry in read_ledger(Path(ledger)):
                known |= {(entry.fingerprint, measure) for measure in entry.scores}
        shown = {cell.task for table in self.cells.values() for cell in table}
        lacking_files = set(filter(self._lacks_files, shown))
        planned: dict[str, list[Cell]] = {}
        for name, table in self.cells.items():
            planned[name] = []
            for cell in table:
                if cell.task in lacking_files or self._is_impossible(cell):
                    continue
                kept = []
                for record in cell.records:
                    # A run whose numbers exist here is kept even if it is published.
                    is_known = (record.fingerprint, cell.measure) in known
                    if not is_known or self.exists(record.file):
                        kept.append(record)
                if kept:
                    planned[name].append(replace(cell, records=kept))
        return planned

    def _lacks_files(self, task: str) -> bool:
        """Return whether a task needs a file that a user has to provide and that is missing."""
        stated = self.settings.tasks[task]
        files = map(parse_file_reference, stated.references(stated.splits))
        return any(not file.is_url and not self.exists(file.location) for file in files)

    def _is_impossible(self, cell: Cell) -> bool:
        """Return whether a cell cannot be measured, for want of a GPU or of an n-best list."""
        if cell.measure == "seconds_cuda" and self.settings.options.device != "cuda":
            # Times that an earlier run measured on a GPU are kept.
            return not all(map(self.exists, cell.paths))
        # A user has to provide the list, unless a run of this project stands in for it.
        needs_file = cell.n_best is not None and self.settings.scale.n_best is None
        return needs_file and not self.exists(str(cell.n_best))

    @cached_property
    def planned_cells(self) -> list[Cell]:
        """The cells of all tables that have runs made here."""
        return [cell for table in self.planned.values() for cell in table]

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks of the stage targets: config.yaml's, or by default those of the tables."""
        named = self.settings.options.tasks
        tasks = named or dict.fromkeys(cell.task for cell in self.planned_cells)
        # `check_tasks` has refused a command that needs a broken task. Other commands skip it.
        return [task for task in tasks if task not in self.settings.broken]

    @cached_property
    def runs(self) -> list[str]:
        """The folders of the trainings behind tables and figures."""
        folders = []
        for cell in self.planned_cells:
            for task, model, run in cell.trainings:
                folders.append(self.layout.task(task).run(model, run))
        return list(dict.fromkeys(folders))

    def _asks_for(self, target: str) -> bool:
        """Return whether the command line names a target, possibly with the prefix of a module."""
        return any(word == target or word.endswith(f"_{target}") for word in self.words)

    def _names_part(self, *parts: str) -> bool:
        """Return whether a word of the command line contains one of these parts of a path."""
        return any(part in word for part in parts for word in self.words)

    def finished(self, paths: Iterable[str]) -> list[str]:
        """Return the files that exist, or all of them if the target `paper` is asked for.

        So a table that is asked for alone starts no training. The history of an unfinished training
        counts as missing.
        """
        paths = list(dict.fromkeys(paths))
        if self._asks_for("paper"):
            return paths
        found = []
        for path in paths:
            # A training writes training.json last, so without it the history is not complete. The
            # record of any other file is the file itself.
            record = path.replace("history.jsonl", "training.json")
            if self.exists(path) and self.exists(record):
                found.append(path)
        return found

    def scores(self, *tables: str) -> list[str]:
        """Return the files of scores that tables show.

        They are those that exist, or all of them if the target `paper` is asked for. For table 3
        alone, `speed` asks for all of them as well.
        """
        paths = [
            path
            for table in tables
            for cell in self.planned[table]
            for path in cell.paths
        ]
        if tables == ("table3",) and self._asks_for("speed"):
            return list(dict.fromkeys(paths))
        return self.finished(paths)

    def contents(self, name: str) -> dict[str, Any]:
        """Return what a table shows besides its scores; if it changes, the table is made again.

        ``printed`` has the papers' values, ``above`` the notes on the scale, ``runs`` the
        fingerprint of each run by its file of numbers, ``trainings`` the known costs of trainings,
        and ``failures`` the reasons why runs have no numbers.
        """
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
        """The notes on the scale that every page shows: its stand-in data and the rows left out."""
        return self.settings.scale.model_dump(
            mode="json", include={"stand_in", "left_out"}
        )

    def fingerprints(self, table: Iterable[Cell]) -> dict[str, str]:
        """Return the fingerprint of each run, by its file. It changes with the run's inputs."""
        return {
            record.file: record.fingerprint for cell in table for record in cell.records
        }

    def can_be_drawn(self, figure: str) -> bool:
        """Return whether there are the numbers or models that a figure shows.

        Figure 2 shows scores, which may also be published ones. Each of the others shows text that
        a model decodes or reads, so they need a model that is made here. Another system's n-best
        list alone is not enough.
        """
        if figure == LAYERS_FIGURE:
            return bool(self.cells.get(figure))
        cells = self.planned.get(figure, [])
        return any(cell.decoding or cell.phrases for cell in cells)

    @cached_property
    def figures(self) -> list[str]:
        """The figures that can be drawn."""
        return list(filter(self.can_be_drawn, FIGURES))

    def drawn_cells(self, figure: str) -> list[Cell]:
        """Return the cells of a figure, reduced to the runs that are made here.

        Raises:
            UserError: the figure cannot be drawn (`can_be_drawn`).
        """
        if not self.can_be_drawn(figure):
            raise UserError(
                f"{figure}.svg: no model of this run makes what it shows: it is published, left "
                f"out or waits for its files; {figure}.md has its numbers"
            )
        return self.planned[figure]

    def curves(self) -> tuple[dict[str, str | list[str]], list[str]]:
        """Return the files behind the curves of BLEU by length, and the names in their legend.

        One curve is that of the figure's first model. If the figure compares it with an n-best
        list, another curve is that of the first such list. The keys of the files are the names of
        the job's inputs. The legend names the model with its run and decoding.

        Raises:
            UserError: the figure cannot be drawn (`can_be_drawn`).
        """
        drawn = self.drawn_cells(LENGTH_FIGURE)
        system = next(cell for cell in drawn if cell.decoding)
        names = [f"{system.model} {system.runs[0]}, {system.decoding}"]
        baseline = []
        compared = next((cell for cell in drawn if cell.n_best), None)
        if compared:
            names.append(str(compared.n_best))
            baseline.append(self.baseline_list(compared.task, str(compared.testset)))
        testset = str(system.testset)
        text = self._text(system.task)
        language = self.settings.tasks[system.task].languages.source
        files: dict[str, str | list[str]] = {
            "system": self._translations(system),
            "baseline": baseline,
            "source": text.text("tok", testset, "source"),
            "reference": text.text("tok", testset, "target"),
            "vocabulary": self.layout.task(system.task).vocabulary(language),
        }
        return files, names

    def shown_in_report(self) -> list[str]:
        """Return the files that the report shows besides the tables and the ledger.

        They are histories and records of trainings, the attention on an example, figures, and
        translations with their references. `finished` selects which of them are there.
        """
        paths = []
        for run in self.runs:
            paths += [f"{run}/history.jsonl", f"{run}/training.json"]
        if self.can_be_drawn(EXAMPLE_FIGURE):
            paths.append(self.planned[EXAMPLE_FIGURE][0].paths[0])
        paths += [self.layout.paper(f"{name}.svg") for name in self.figures]
        # Task, test set -> the translations of the first run found for them.
        decoded: dict[tuple[str, str], str] = {}
        for cell in self.planned_cells:
            # Only measures of translations name a decoding (config/measures.py).
            if cell.decoding and self.finished(cell.paths[:1]):
                task_and_set = cell.task, str(cell.testset)
                decoded.setdefault(task_and_set, self._translations(cell))
        for (task, testset), translations in sorted(decoded.items()):
            paths += [translations, self._text(task).text("raw", testset, "target")]
        return self.finished(paths)

    def _translations(self, cell: Cell) -> str:
        """Return the translations of the first run of a cell."""
        folder = self.layout.task(cell.task).run(cell.model, cell.runs[0])
        return f"{folder}/{cell.testset}.{cell.decoding}.jsonl"

    def headline_run_files(self, task: str, file: str) -> list[str]:
        """Return the file of this name in the folder of each run of a task's headline."""
        settings = self.settings.tasks[task]
        folder = self.layout.task(task)
        return [
            f"{folder.run(settings.headline.model, run)}/{file}"
            for run in settings.headline_runs()
        ]

    def headline_files(self, task: str, suffix: str) -> list[str]:
        """Return the file with this suffix for each test set and run of a task's headline."""
        settings = self.settings.tasks[task]
        files = []
        for test in settings.headline_tests():
            name = f"{test}.{settings.headline.decoding}.{suffix}"
            files += self.headline_run_files(task, name)
        return files

    def headline_scores(self, task: str, metric: str) -> list[str]:
        """Return the scores whose mean is a task's headline: those of each test set and run.

        Raises:
            UserError: the task has another metric.
        """
        self.settings.tasks[task].check_metric(metric)
        return self.headline_files(task, f"{metric}.json")

    def dataset_counts(self, name: str) -> list[str]:
        """Return the file with the counts of a task's data, whose notes are shown with its scores.

        The list is empty for a released model. It is also empty if models of the task exist but a
        text to count does not: nothing is prepared or trained again for the counts alone.
        """
        if self.settings.tasks[name].released:
            return []
        folder = self.layout.task(name)
        counts = folder.dataset_counts
        models = self.headline_run_files(name, "model.safetensors")
        if self.exists(counts) or not any(map(self.exists, models)):
            return [counts]
        text = self._text(name)
        counted = [folder.store_description("train"), folder.store_description("valid")]
        counted += [text.text("clean", "train", side) for side in _SIDES]
        counted += self.evaluation_text(name)
        return [counts] if all(map(self.exists, counted)) else []

    def tuned_penalty(
        self,
        task: str,
        model: str,
        run: str,
        decoding: str,
        listed: str | None = None,
    ) -> list[str]:
        """Return the file of the length penalty that is tuned for a decoding.

        Return an empty list if the decoding states its length penalty. ``listed`` is the set of
        the n-best list that the penalty is for, if it is for one. If this is the development set,
        return an empty list, too: the tuning starts from this n-best list, so the list itself has
        to be decoded without the tuned penalty.
        """
        tuned_on = self.settings.scale.development_set(
            self.settings.tasks[task], self.settings.decodings[decoding]
        )
        if tuned_on is None or tuned_on == listed:
            return []
        folder = self.layout.task(task).run(model, run)
        return [f"{folder}/{tuned_on}.{decoding}.length_penalty.json"]

    def translations_of_seeds(
        self,
        task: str,
        model: str,
        testset: str,
        decoding: str,
    ) -> list[str]:
        """Return a model's translations of a test set, one file per seed of the task's headline."""
        folder = self.layout.task(task)
        return [
            f"{folder.run(model, f'seed{seed}')}/{testset}.{decoding}.jsonl"
            for seed in self.settings.tasks[task].headline.seeds
        ]

    def baseline_list(self, task: str, testset: str) -> str:
        """Return another system's n-best list of a test set.

        It is a file that a user provides, or the list of the run that stands in for that system.

        Raises:
            UserError: the task has no list for this test set.
        """
        stand_in = self.settings.scale.n_best
        if stand_in is None:
            return self.settings.tasks[task].n_best_of(testset)
        folder = self.layout.task(task).run(stand_in.model, stand_in.run)
        return f"{folder}/{testset}.{stand_in.decoding}.nbest.zst"

    def plots_of(self, task: str) -> list[str]:
        """Return the plots of a task's headline.

        They show the learning curve of each run, except for a released model. If the model has
        attention, they also show the first run's attention on config.yaml's ``plots.sentences``.
        """
        self.settings.check_whole([task])
        settings = self.settings.tasks[task]
        plots = []
        if settings.released is None:
            plots = self.headline_run_files(task, "curve.svg")
        model = self.settings.models[settings.headline.model]
        if model.architecture.has_attention:
            first_run = self.headline_files(task, "attention")[0]
            for line in self.settings.options.plots.sentences:
                plots.append(f"{first_run}{line}.svg")
        return plots
