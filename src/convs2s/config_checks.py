"""What a schema cannot say: that names refer to something, and that values fit each other."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from convs2s import scales
from convs2s.config_schema import unknown
from convs2s.errors import UserError

if TYPE_CHECKING:
    from convs2s.config import Settings


def check_references(settings: "Settings") -> None:
    """Check every name in the configuration that refers to another part of it.

    Raises:
        UserError: one line that names the file, the key and the nearest valid name.
    """
    _check_scale(f"config/scales/{settings.options['scale']}.yaml", settings)
    for name in settings.options["tasks"] or []:
        _known("config.yaml: tasks", "task", name, settings.tasks)
    for name, model in settings.models.items():
        _check_model(f"config/models.yaml: {name}", model)
    for name, task in settings.tasks.items():
        _check_task(f"config/tasks/{name}.yaml", task, settings)
        _check_selection(
            f"config/tasks/{name}.yaml: headline.model", task["headline"]["model"], name, settings
        )
    for number, one in enumerate(settings.costs["trainings"], start=1):
        place = f"config/costs.yaml: training {number}"
        _known(f"{place}: text", "task", one["text"], settings.tasks)
        _known(f"{place}: model", "model", one["model"], settings.models)
    for name, table in settings.paper.items():
        for number, row in enumerate(table["rows"], start=1):
            _check_row(f"config/paper.yaml: {name}: row {number}", row, table, settings)


def _known(where: str, what: str, name: str | None, known: Iterable[str]) -> None:
    if name is not None and name not in known:
        raise UserError(f"{where}: {unknown(what, name, known)}")


def _check_model(where: str, model: Mapping[str, Any]) -> None:
    architecture, batch = model["architecture"], model["training"]["batch"]
    if architecture["kind"] == "convs2s":
        _check_convs2s(f"{where}.architecture", architecture)
    if batch["sentences"] is None and batch["tokens"] is None:
        raise UserError(
            f"{where}.training.batch: expected a number of sentences, of tokens or both"
        )
    training = model["training"]
    if training["schedule"]["kind"] == "cosine":
        warmup, last = training["schedule"]["warmup"], training["maximum_epochs"]
        if last is None or last <= warmup:
            raise UserError(
                f"{where}.training: a cosine schedule needs maximum_epochs above its warmup "
                f"({warmup:g}), not {last}"
            )


def _check_convs2s(where: str, architecture: Mapping[str, Any]) -> None:
    layers = sum(stack["layers"] for stack in architecture["decoder"])
    if architecture["attention"] != "all" and max(architecture["attention"]) > layers:
        raise UserError(
            f"{where}.attention: names block {max(architecture['attention'])}, but the decoder has "
            f"{layers}"
        )


def _check_replacement(where: str, model: str, decoding: str, settings: "Settings") -> None:
    """Check that unknown words are replaced only where there is attention to do it by."""
    kind = settings.models[model]["architecture"]["kind"]
    if kind == "lstm" and settings.decodings[decoding]["replace_unknown"]:
        raise UserError(
            f"{where}: '{decoding}' replaces unknown words by attention, which '{model}', an LSTM, "
            "does not have; name one with replace_unknown: false, such as lstm_beam2"
        )


def _check_tuning(where: str, task: Mapping[str, Any], decoding: str, settings: "Settings") -> None:
    """Check that the task has the set that a decoding's length penalty is tuned on."""
    development = scales.development_set(settings.scale, task, settings.decodings[decoding])
    what = f"set for '{decoding}' to tune its length penalty on"
    _known(where, what, development, scales.development_sets(task))


def _check_selection(where: str, model: str, task: str, settings: "Settings") -> None:
    """Check that a vocabulary is selected only where it is of words, as the alignment's are."""
    selects = settings.models[model]["architecture"].get("vocabulary_selection") is not None
    if selects and settings.tasks[task]["vocabulary"]["kind"] != "word":
        raise UserError(
            f"{where}: '{model}' selects its vocabulary by aligned words, but '{task}' has one of "
            "pieces of words; name a word task, or a model without vocabulary_selection"
        )


def _check_task(where: str, task: Mapping[str, Any], settings: "Settings") -> None:
    languages, headline = task["languages"], task["headline"]
    if languages["source"] == languages["target"]:
        raise UserError(
            f"{where}: languages: source and target name the same files; write for example "
            f"{languages['source']}_text and {languages['source']}_summary"
        )
    if bool(task["corpus"]["valid"]) == (task["hold_out"] is not None):
        raise UserError(f"{where}: expected either corpus.valid or hold_out, for validation data")
    _known(f"{where}: headline.model", "model", headline["model"], settings.models)
    _known(f"{where}: headline.decoding", "decoding", headline["decoding"], settings.decodings)
    _check_replacement(
        f"{where}: headline.decoding", headline["model"], headline["decoding"], settings
    )
    _check_tuning(f"{where}: headline.decoding", task, headline["decoding"], settings)
    for test in headline["tests"]:
        _known(f"{where}: headline.tests", "test set", test, task["corpus"]["tests"])


def _check_scale(where: str, settings: "Settings") -> None:
    for what, known in (("task", settings.tasks), ("model", settings.models)):
        for name, stand_in in settings.scale[f"{what}s"].items():
            _known(f"{where}: {what}s", what, name, known)
            _known(f"{where}: {what}s.{name}", what, stand_in, known)


def _check_row(
    where: str, row: Mapping[str, Any], table: Mapping[str, Any], settings: "Settings"
) -> None:
    keys = [column["key"] for column in table["columns"]]
    for part in ("paper", "v1", "best_run", "measures"):
        for key in row[part]:
            _known(f"{where}: {part}", "column", key, keys)
    if row["task"] is None:
        return
    missing = [key for key in ("model", "runs", "testset", "decoding") if not row[key]]
    if missing:
        raise UserError(f"{where}: key '{missing[0]}' is missing, as the row names a task")
    _known(f"{where}: task", "task", row["task"], settings.tasks)
    _known(f"{where}: model", "model", row["model"], settings.models)
    _known(f"{where}: decoding", "decoding", row["decoding"], settings.decodings)
    _check_replacement(f"{where}: decoding", row["model"], row["decoding"], settings)
    tests = settings.tasks[row["task"]]["corpus"]["tests"]
    _known(f"{where}: testset", "test set", row["testset"], tests)
    _check_selection(f"{where}: model", row["model"], row["task"], settings)
    _check_stand_in(row, settings)


def _check_stand_in(row: Mapping[str, Any], settings: "Settings") -> None:
    """Check that the task which stands in for a row's has the test set that stands in for it."""
    task = scales.task(settings.scale, row["task"])
    testset = scales.testset(settings.scale, row["testset"])
    where = f"config/scales/{settings.options['scale']}.yaml: tests: of the stand-in task '{task}'"
    _known(where, "test set", testset, settings.tasks[task]["corpus"]["tests"])
    _check_tuning(where, settings.tasks[task], row["decoding"], settings)
