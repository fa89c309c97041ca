"""The whole configuration, and the checks that its parts fit each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from convs2s.config.architecture import Architecture
from convs2s.config.claims import Claim, check_claim
from convs2s.config.corpus import TITLE_FILES
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.file_reference import Download, is_of_titles, parse_model_reference
from convs2s.config.messages import unknown
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Row, RunsToCompare, Table
from convs2s.config.scale import Scale
from convs2s.config.section import Values
from convs2s.config.task import Task
from convs2s.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """The whole configuration: every default filled in, ``extends`` and ``text`` resolved.

    Attributes:
        options: config.yaml.
        scale: the file of config/scales that ``options.scale`` names.
        tasks: name -> config/tasks/NAME.yaml, its headline at this scale.
        models: name -> entry of config/models.yaml.
        decodings: name -> entry of config/decodings.yaml.
        paper: name of a table or figure -> entry of config/paper.yaml.
        claims: name -> entry of config/claims.yaml.
        phrases: name -> entry of config/phrases.yaml.
        downloads: URL -> entry of config/downloads.yaml.
        costs: config/costs.yaml.
    """

    options: Options
    scale: Scale
    tasks: Mapping[str, Task]
    models: Mapping[str, ModelSettings]
    decodings: Mapping[str, DecodingSettings]
    paper: Mapping[str, Table]
    claims: Mapping[str, Claim]
    phrases: Mapping[str, Phrases]
    downloads: Mapping[str, Download]
    costs: Costs

    def placed(self, results_dir: str, downloads_dir: str, files: Mapping[str, str]) -> "Settings":
        """Return the configuration with files where a run really has them.

        Args:
            results_dir: in place of the scale's.
            downloads_dir: likewise.
            files: reference of a task -> the one that stands for it.
        """
        folders = {"results_dir": results_dir, "downloads_dir": downloads_dir}
        return replace(
            self,
            scale=self.scale.model_copy(update=folders),
            tasks={name: task.placed(files) for name, task in self.tasks.items()},
        )

    def language_pairs(self) -> dict[tuple[str, str], list[str]]:
        """Return (source, target) languages -> the tasks with a corpus of their own in them."""
        pairs: dict[tuple[str, str], list[str]] = {}
        for name, task in self.tasks.items():
            if task.text is None:
                pairs.setdefault(task.language_pair, []).append(name)
        return pairs

    def model_references(self) -> set[str]:
        """Return the model files that trainings start from or tasks take vocabularies of."""
        starts = (model.training.start for model in self.models.values())
        taken = (task.vocabulary_of for task in self.tasks.values())
        return {start.model for start in starts if start} | {model for model in taken if model}

    def task(self, name: str) -> Task:
        """Return a task.

        Raises:
            UserError: there is none of this name; the nearest known one is named.
        """
        return _named(self.tasks, "task", name)

    def model(self, name: str) -> ModelSettings:
        """Return a model.

        Raises:
            UserError: there is none of this name; the nearest known one is named.
        """
        return _named(self.models, "model", name)

    def decoding(self, name: str) -> DecodingSettings:
        """Return a decoding.

        Raises:
            UserError: there is none of this name; the nearest known one is named.
        """
        return _named(self.decodings, "decoding", name)


@dataclass(frozen=True)
class Effective:
    """Everything that applies to one task: itself, its model, its decoding, scale and options."""

    task: Task
    model_name: str
    model: ModelSettings
    decoding_name: str
    decoding: DecodingSettings
    scale: Scale
    options: Options

    def plain(self) -> dict[str, Values]:
        """Return it as plain values, for YAML: each part under its name."""
        options = self.options.model_dump(mode="json", exclude={"scale", "overrides"})
        return {
            "task": {"name": self.task.name, **self.task.model_dump(mode="json")},
            "model": {"name": self.model_name, **self.model.model_dump(mode="json")},
            "decoding": {"name": self.decoding_name, **self.decoding.model_dump(mode="json")},
            "scale": {"name": self.options.scale, **self.scale.model_dump(mode="json")},
            "options": options,
        }


def effective(
    settings: Settings, task: str, model: str | None = None, decoding: str | None = None
) -> Effective:
    """Return everything that applies to one task.

    Args:
        settings: the configuration.
        task: name of a task.
        model: name of a model; None takes the task's headline model.
        decoding: name of a decoding; None takes the task's headline decoding.

    Raises:
        UserError: a name is not known; the nearest known one is named.
    """
    chosen = settings.task(task)
    model, decoding = model or chosen.headline.model, decoding or chosen.headline.decoding
    return Effective(
        task=chosen,
        model_name=model,
        model=settings.model(model),
        decoding_name=decoding,
        decoding=settings.decoding(decoding),
        scale=settings.scale,
        options=settings.options,
    )


def _named(known: Mapping[str, T], what: str, name: str) -> T:
    if name not in known:
        raise UserError(unknown(what, name, known))
    return known[name]


def check_references(settings: Settings, tasks_from: str) -> None:
    """Check every name in the configuration that refers to another part of it.

    Args:
        settings: the configuration.
        tasks_from: where ``tasks`` is stated.

    Raises:
        UserError: one line that names the file, the key and the nearest valid name.
    """
    _check_scale(f"config/scales/{settings.options.scale}.yaml", settings)
    for name in settings.options.tasks or ():
        _known(f"{tasks_from}: tasks", "task", name, settings.tasks)
    for name, model in settings.models.items():
        _check_model(f"config/models.yaml: {name}", model)
    for name, task in settings.tasks.items():
        _check_task(f"config/tasks/{name}.yaml", task, settings)
    _check_costs("config/costs.yaml", settings)
    for name, table in settings.paper.items():
        for number, row in enumerate(table.rows, start=1):
            _check_row(f"config/paper.yaml: {name}: row {number}", row, table, settings)
    for name, claim in settings.claims.items():
        check_claim(claim, settings.paper, f"config/claims.yaml: {name}")


def _known(where: str, what: str, name: str | None, known: Iterable[str]) -> None:
    if name is not None and name not in known:
        raise UserError(f"{where}: {unknown(what, name, known)}")


def _check_scale(where: str, settings: Settings) -> None:
    scale = settings.scale
    for left_out in scale.left_out:
        for name in left_out.models:
            _known(f"{where}: left_out.models", "model", name, settings.models)
        for name in left_out.tasks:
            _known(f"{where}: left_out.tasks", "task", name, settings.tasks)
    for what, stand_ins, known in (
        ("task", scale.tasks, settings.tasks),
        ("model", scale.models, settings.models),
        ("phrases", scale.phrases, settings.phrases),
    ):
        for name, stand_in in stand_ins.items():
            key = what if what == "phrases" else f"{what}s"
            _known(f"{where}: {key}", what, name, known)
            _known(f"{where}: {key}.{name}", what, stand_in, known)
    for name in scale.seeds_of:
        _known(f"{where}: seeds_of", "table", name, settings.paper)
    if scale.n_best is not None:
        _known(f"{where}: n_best.model", "model", scale.n_best.model, settings.models)
        decoding = scale.n_best.decoding
        _known(f"{where}: n_best.decoding", "decoding", decoding, settings.decodings)
        check_replacement(f"{where}: n_best.decoding", scale.n_best.model, decoding, settings)


def _check_model(where: str, model: ModelSettings) -> None:
    if model.training.start is not None:
        parse_model_reference(model.training.start.model, f"{where}.training.start.from")
    recipe, schedule = model.training, model.training.schedule
    _check_attention(f"{where}.architecture", model.architecture)
    if recipe.batch.sentences is None and recipe.batch.tokens is None:
        raise UserError(
            f"{where}.training.batch: expected a number of sentences, of tokens or both"
        )
    last = recipe.maximum_epochs
    if schedule.kind == "cosine" and (last is None or last <= schedule.warmup):
        raise UserError(
            f"{where}.training: a cosine schedule needs maximum_epochs above its warmup "
            f"({schedule.warmup:g}), not {last}"
        )


def _check_attention(where: str, architecture: Architecture) -> None:
    if architecture.kind == "lstm":
        return
    blocks = zip(architecture.decoder_layers, architecture.attends, strict=True)
    widths = sorted({block.width for block, attends in blocks if attends})
    if architecture.attention_weights == "shared" and len(widths) > 1:
        raise UserError(
            f"{where}.attention_weights: blocks of {' and '.join(map(str, widths))} channels "
            "cannot share them: give the attending blocks one width"
        )
    if architecture.attention == "all":
        return
    highest, layers = max(architecture.attention), len(architecture.decoder_layers)
    if highest > layers:
        raise UserError(f"{where}.attention: names block {highest}, but the decoder has {layers}")


def _check_task(where: str, task: Task, settings: Settings) -> None:
    source, target = task.language_pair
    if source == target:
        raise UserError(
            f"{where}: languages: source and target name the same files; write for example "
            f"{source}_text and {source}_summary"
        )
    if bool(task.corpus.valid) == (task.hold_out is not None):
        raise UserError(f"{where}: expected either corpus.valid or hold_out, for validation data")
    _check_vocabulary(where, task)
    _check_corpus(f"{where}: corpus", task, settings)
    for test in task.rouge:
        _known(f"{where}: rouge", "test set", test, task.corpus.tests)
    for test in task.n_best:
        _known(f"{where}: n_best", "test set", test, task.corpus.tests)
    _check_headline(f"{where}: headline", task, settings)


def _check_corpus(where: str, task: Task, settings: Settings) -> None:
    """Check that references are as many for all pairs of a test set, and what titles:// names."""
    for name, pairs in task.corpus.tests.items():
        counts = [len(pair.references) for pair in pairs]
        if len(set(counts)) > 1:
            raise UserError(
                f"{where}.tests.{name}: its pairs of files have {', '.join(map(str, counts))} "
                "further references; expected as many for each"
            )
    made = {
        f"titles://{name}/{file}"
        for name, other in settings.tasks.items()
        if other.titles and other.text is None
        for file in TITLE_FILES
    }
    for reference in filter(is_of_titles, task.references()):
        _known(where, "file", reference, made)


def _check_vocabulary(where: str, task: Task) -> None:
    """Check sizes, and that a task which takes a model's vocabulary says nothing else of it."""
    vocabulary = task.vocabulary
    has_size = vocabulary.source_size is not None or vocabulary.target_size is not None
    if vocabulary.kind == "bpe" and vocabulary.threshold and has_size:
        raise UserError(
            f"{where}: vocabulary: of BPE either a threshold or sizes: what a size leaves out is "
            "not split again; leave out source_size and target_size"
        )
    if task.vocabulary_of is None:
        return
    parse_model_reference(task.vocabulary_of, f"{where}: vocabulary_of")
    if not task.vocabulary.joint or task.vocabulary.threshold:
        raise UserError(
            f"{where}: vocabulary: one that a model has (vocabulary_of) is joint and without a "
            "threshold; leave out joint and threshold"
        )


def _check_headline(where: str, task: Task, settings: Settings) -> None:
    model, decoding = task.headline.model, task.headline.decoding
    _known(f"{where}.model", "model", model, settings.models)
    _known(f"{where}.decoding", "decoding", decoding, settings.decodings)
    check_replacement(f"{where}.decoding", model, decoding, settings)
    _check_tuning(f"{where}.decoding", task, decoding, settings)
    for test in task.headline_tests():
        _known(f"{where}.tests", "test set", test, task.corpus.tests)
    check_selection(f"{where}.model", model, task, settings)


def _check_costs(where: str, settings: Settings) -> None:
    for number, one in enumerate(settings.costs.trainings, start=1):
        _known(f"{where}: training {number}: text", "task", one.text, settings.tasks)
        _known(f"{where}: training {number}: model", "model", one.model, settings.models)


def check_replacement(where: str, model: str, decoding: str, settings: Settings) -> None:
    """Check that unknown words are replaced only where there is attention to do it by.

    Raises:
        UserError: the model has none.
    """
    kind = settings.models[model].architecture.kind
    if kind == "lstm" and settings.decodings[decoding].replace_unknown:
        raise UserError(
            f"{where}: '{decoding}' replaces unknown words by attention, which '{model}', an LSTM, "
            "does not have; name one with replace_unknown: false, such as lstm_beam2"
        )


def _check_tuning(where: str, task: Task, decoding: str, settings: Settings) -> None:
    """Check that the task has the set that a decoding's length penalty is tuned on."""
    development = settings.scale.development_set(task, settings.decodings[decoding])
    what = f"set for '{decoding}' to tune its length penalty on"
    _known(where, what, development, task.development_sets())


def check_selection(where: str, model: str, task: Task, settings: Settings) -> None:
    """Check that a vocabulary is selected only where it is of words, as the alignment's are.

    Raises:
        UserError: the task has one of pieces of words.
    """
    selects = settings.models[model].architecture.selects_vocabulary
    if selects and task.vocabulary.kind != "word":
        raise UserError(
            f"{where}: '{model}' selects its vocabulary by aligned words, but '{task.name}' has "
            "one of pieces of words; name a word task, or a model without vocabulary_selection"
        )


def _check_row(where: str, row: Row, table: Table, settings: Settings) -> None:
    columns = [column.key for column in table.columns]
    for part in ("paper", "v1", "best_run", "measures"):
        for key in getattr(row, part):
            _known(f"{where}: {part}", "column", key, columns)
    runs = row.comparison(where, table.columns)
    if runs is None:
        return
    _known(f"{where}: task", "task", runs.task, settings.tasks)
    _known(f"{where}: model", "model", runs.model, settings.models)
    _known(f"{where}: decoding", "decoding", runs.decoding, settings.decodings)
    _known(f"{where}: phrases", "phrases", runs.phrases, settings.phrases)
    if runs.decoding is not None:
        check_replacement(f"{where}: decoding", runs.model, runs.decoding, settings)
    task = settings.tasks[runs.task]
    _known(f"{where}: testset", "test set", runs.testset, task.corpus.tests)
    check_selection(f"{where}: model", runs.model, task, settings)
    _check_stand_in(runs, settings)


def _check_stand_in(runs: RunsToCompare, settings: Settings) -> None:
    """Check that the task which stands in for a row's has the test set that stands in for it."""
    if not settings.scale.has_task(runs.task):
        return
    task = settings.tasks[settings.scale.task_for(runs.task)]
    where = (
        f"config/scales/{settings.options.scale}.yaml: tests: of the stand-in task '{task.name}'"
    )
    if runs.testset is not None:
        _known(where, "test set", settings.scale.testset_for(runs.testset), task.corpus.tests)
    if runs.decoding is not None:
        _check_tuning(where, task, runs.decoding, settings)
