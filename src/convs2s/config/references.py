"""What one class cannot say: that names refer to something, and that values fit each other."""

from collections.abc import Iterable

from convs2s.config.architecture import Architecture
from convs2s.config.claims import check_claim
from convs2s.config.corpus import TITLE_FILES
from convs2s.config.file_reference import is_of_titles, parse_model_reference
from convs2s.config.messages import unknown
from convs2s.config.model import ModelSettings
from convs2s.config.paper import Row, RunsToCompare, Table
from convs2s.config.settings import Settings
from convs2s.config.task import Task
from convs2s.errors import UserError


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
