"""The model that a training begins with: whether it fits, and what it brings."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from convs2s.config.architecture import Architecture
from convs2s.config.model import Start
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.model_file import ModelDescription, load_model
from convs2s.models.network import Network
from convs2s.text.truecase import read_truecaser
from convs2s.training.data import TrainingData
from convs2s.training.job import TrainingJob
from convs2s.training.state_folder import flatten
from convs2s.training.version import recipe_identity

_WITHOUT_WEIGHTS = {"dropout", "gradient_scaling", "initialization"}
"""What of an architecture neither the weights nor what they compute depend on."""

_MAY_DIFFER = ("training.learning_rate", "training.schedule.", "training.maximum_epochs")
"""What of a recipe says how a training goes on, where it goes on from a model."""

_MOST_SHOWN = 3


def start_identity(job: TrainingJob) -> dict[str, object]:
    """Return what of its beginning a training is known by: nothing where the seed alone decides.

    Raises:
        UserError: the model's file is missing.
    """
    start = job.recipe.start
    if start is None:
        return {}
    return {"start": {"as": start.mode, "sha256": sha256(_file(job, start))}}


def begin(job: TrainingJob, data: TrainingData, network: Network) -> int:
    """Give a network the weights that its training begins with; return the first epoch, from 1.

    Raises:
        UserError: the model does not fit, in one line that names what differs and how.
    """
    start = job.recipe.start
    if start is None:
        return 1
    path = _file(job, start)
    trained, description = load_model(path)
    for difference in _differences(job, data, description):
        raise UserError(f"{path}: this training cannot start from it: {difference}")
    network.load_state_dict(trained.state_dict())
    return 1 if start.mode == "initialise" else _epochs_before(job, data, description, path) + 1


def _file(job: TrainingJob, start: Start) -> Path:
    path = job.start or Path(start.model)
    if not path.is_file():
        raise UserError(f"{path}: no such file, though training.start begins with it")
    return path


def _differences(job: TrainingJob, data: TrainingData, model: ModelDescription) -> Iterator[str]:
    """Say how what turns text into numbers, or the network, is another one than the model's."""
    advice = "take the model's by `vocabulary_of` in the task's file"
    if model.preparation != data.description.preparation:
        yield (
            f"its words are those of the preparation {model.preparation}, the task's of "
            f"{data.description.preparation}"
        )
    if model.bpe_codes != data.bpe_codes:
        yield f"{_codes('it', model.bpe_codes)}, {_codes('the task', data.bpe_codes)}; {advice}"
    glossaries = list(data.description.vocabulary.glossaries)
    if model.glossaries != glossaries or model.splittable != data.splittable:
        yield "its vocabulary has another threshold or other glossaries"
    for side, its in (("source", model.source_types), ("target", model.target_types)):
        if its != data.types[side]:
            first = _first_difference(its, data.types[side])
            yield f"its {side} vocabulary differs: {first}; {advice}"
    if model.truecasers != words_of_truecasers(job, data):
        yield "its truecaser differs"
    yield from _of_networks(model.architecture, job.architecture)


def words_of_truecasers(job: TrainingJob, data: TrainingData) -> dict[str, list[str]]:
    """Return language -> the words of its truecaser, as a model file has them."""
    languages = data.description.languages
    tables = zip((languages.source, languages.target), job.truecasers or (), strict=False)
    return {language: read_truecaser(table) for language, table in tables}


def data_identity(job: TrainingJob, data: TrainingData) -> dict[str, str]:
    """Return the checksums of what a training reads, by name."""
    candidates = {} if job.candidates is None else {"candidates.tsv": sha256(job.candidates)}
    return data.checksums | candidates


def _codes(whose: str, codes: str | None) -> str:
    if codes is None:
        return f"{whose} reads whole words"
    digest = hashlib.sha256(codes.encode()).hexdigest()[:8]
    return f"{whose} has {len(codes.splitlines()) - 1:,} BPE merges (SHA-256 {digest}...)"


def _first_difference(its: Sequence[str], ours: Sequence[str]) -> str:
    if len(its) != len(ours):
        return f"it has {len(its):,} types, the task {len(ours):,}"
    number, (one, other) = next(
        (number, pair)
        for number, pair in enumerate(zip(its, ours, strict=True), start=1)
        if pair[0] != pair[1]
    )
    return f"type {number:,} is {one!r}, the task's {other!r}"


def _of_networks(its: Architecture, ours: Architecture) -> Iterator[str]:
    stated = [flatten(one.model_dump(mode="json", exclude=_WITHOUT_WEIGHTS)) for one in (its, ours)]
    changed = _changes(*stated)
    if changed:
        yield f"its network is another one: architecture: {changed}"


def _changes(its: Mapping[str, object], ours: Mapping[str, object]) -> str:
    """Name the keys of two mappings that differ, the first few with their values."""
    keys = [key for key in sorted({*its, *ours}) if its.get(key) != ours.get(key)]
    shown = [f"{key} is {its.get(key)}, not {ours.get(key)}" for key in keys[:_MOST_SHOWN]]
    return ", ".join([*shown, *(["and others"] if keys[_MOST_SHOWN:] else [])])


def _epochs_before(
    job: TrainingJob, data: TrainingData, model: ModelDescription, path: Path
) -> int:
    """Return the epochs that made a model, for its training to go on after them.

    Raises:
        UserError: it was trained on other data or by another recipe, or has its last epoch.
    """
    identity = model.training.get("identity")
    if not isinstance(identity, Mapping):
        raise UserError(
            f"{path}: does not say how it was trained, as an imported model does not: start from "
            "it by `as: initialise`"
        )
    its = {part: identity[part] for part in ("data", "training")}
    ours = {
        "data": data_identity(job, data),
        "training": recipe_identity(job.architecture, job.recipe)["training"],
    }
    flat = [
        {key: value for key, value in flatten(one).items() if not key.startswith(_MAY_DIFFER)}
        for one in (its, ours)
    ]
    changed = _changes(*flat)
    if changed:
        raise UserError(
            f"{path}: its training cannot go on with other data or another recipe: {changed}; "
            "state the same, or start from it by `as: initialise`"
        )
    average = job.recipe.average is not None
    epochs = int(str(model.training["epochs" if average else "best_epoch"]))
    if job.recipe.maximum_epochs is not None and epochs >= job.recipe.maximum_epochs:
        raise UserError(
            f"{path}: is of epoch {epochs}, and maximum_epochs is {job.recipe.maximum_epochs:g}: "
            "raise it for the training to go on"
        )
    return epochs
