"""The model that a training begins with: where it lies, whether it fits, and what it brings."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from convs2s.config.file_reference import Download, known_download, parse_file_reference
from convs2s.config.identity import recipe_identity
from convs2s.config.model import Recipe
from convs2s.download.download import download_file
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.model_file import ModelDescription, load_model
from convs2s.models.network import Network
from convs2s.text.truecase import read_truecaser
from convs2s.training.data import TrainingData
from convs2s.training.identity import TrainingJob, changes, data_identity

_WITHOUT_WEIGHTS = {"dropout", "gradient_scaling", "initialization"}
"""What of an architecture neither the weights nor what they compute depend on."""

_MAY_DIFFER = ("training.learning_rate", "training.schedule.", "training.maximum_epochs")
"""The keys of a recipe that may differ when a training continues from a model."""

_MOST_SHOWN = 3  # Keys that differ, with their values

_ADVICE = "take the model's by `vocabulary_of` in the task's file"


def fetched_start(recipe: Recipe, output: Path, downloads: Mapping[str, Download]) -> Path | None:
    """Fetch the model of ``training.start`` where it is named by a URL; return where it lies.

    It is fetched once: workers and later tries find it beside the output of the training, by the
    name of its URL. ``downloads`` is what is known of files by URL. Where that is nothing, the
    checksum of the first download holds from then on.

    Raises:
        UserError: It cannot be fetched, or is another file.
    """
    if recipe.start is None or not parse_file_reference(recipe.start.model).is_url:
        return None
    url = recipe.start.model
    known = known_download(url, downloads) or Download(url=url)
    place = output.with_name(f"start.{hashlib.sha256(url.encode()).hexdigest()[:8]}.safetensors")
    if not place.is_file() or known.sha256 not in (None, sha256(place)):
        place.parent.mkdir(parents=True, exist_ok=True)
        download_file(url, place, sha256=known.sha256, md5=known.md5, size=known.bytes)
    return place


def begin(job: TrainingJob, data: TrainingData, network: Network) -> int:
    """Give a network the weights that its training begins with; return the first epoch, from 1.

    Raises:
        UserError: The model does not fit; says what differs and how.
    """
    start = job.recipe.start
    if start is None:
        return 1
    path = job.start_file(start)
    trained, description = load_model(path)
    for difference in _differences(job, data, description):
        raise UserError(f"{path}: this training cannot start from it: {difference}")
    network.load_state_dict(trained.state_dict())
    if start.mode == "initialise":
        return 1
    return _epochs_made(job, data, description, path) + 1


def _differences(job: TrainingJob, data: TrainingData, model: ModelDescription) -> Iterator[str]:
    """Say how what turns text into numbers, or the network, is another one than the model's."""
    description = data.description
    if model.preparation != description.preparation:
        yield (
            f"its words are those of the preparation {model.preparation}, the task's of "
            f"{description.preparation}"
        )
    wanted = description.languages
    source = model.languages["source"]
    target = model.languages["target"]
    is_reverse = source == wanted.target and target == wanted.source
    if is_reverse and source != target:
        yield f"it translates from {source} to {target}, the task in reverse"
    if model.bpe_codes != data.bpe_codes:
        yield f"{_codes('it', model.bpe_codes)}, {_codes('the task', data.bpe_codes)}; {_ADVICE}"
    glossaries = list(description.vocabulary.glossaries)
    if model.glossaries != glossaries or model.splittable != data.splittable:
        yield "its vocabulary has another threshold or other glossaries"
    its_types = {"source": model.source_types, "target": model.target_types}
    for side, types in its_types.items():
        if types != data.types[side]:
            difference = _first_difference(types, data.types[side])
            yield f"its {side} vocabulary differs: {difference}; {_ADVICE}"
    if model.truecasers != words_of_truecasers(job, data):
        yield "its truecaser differs"
    its = model.architecture.model_dump(mode="json", exclude=_WITHOUT_WEIGHTS)
    ours = job.architecture.model_dump(mode="json", exclude=_WITHOUT_WEIGHTS)
    if changed := changes(its, ours):
        yield f"its network is another one: architecture: {_shown(changed)}"


def _first_difference(its: Sequence[str], ours: Sequence[str]) -> str:
    """Say how the types of two vocabularies differ."""
    if len(its) != len(ours):
        return f"it has {len(its):,} types, the task {len(ours):,}"
    index = 0
    while its[index] == ours[index]:
        index += 1
    return f"type {index + 1:,} is {its[index]!r}, the task's {ours[index]!r}"


def words_of_truecasers(job: TrainingJob, data: TrainingData) -> dict[str, list[str]]:
    """Return language -> the words of its truecaser, as a model file has them."""
    languages = data.description.languages
    tables = zip((languages.source, languages.target), job.truecasers or (), strict=False)
    return {language: read_truecaser(table) for language, table in tables}


def _codes(owner: str, codes: str | None) -> str:
    if codes is None:
        return f"{owner} reads whole words"
    digest = hashlib.sha256(codes.encode()).hexdigest()[:8]
    return f"{owner} has {len(codes.splitlines()) - 1:,} BPE merges (SHA-256 {digest}...)"


def _shown(changed: list[str]) -> str:
    """Join the first few changes."""
    if len(changed) > _MOST_SHOWN:
        changed[_MOST_SHOWN:] = ["and others"]
    return ", ".join(changed)


def _epochs_made(job: TrainingJob, data: TrainingData, model: ModelDescription, path: Path) -> int:
    """Return the epochs that made a model, for its training to go on after them.

    Raises:
        UserError: It was trained on other data or by another recipe, or has its last epoch.
    """
    identity = model.training.get("identity")
    if not isinstance(identity, Mapping):
        raise UserError(
            f"{path}: does not say how it was trained, as an imported model does not: start from "
            "it by `as: initialise`"
        )
    ours = recipe_identity(job.architecture, job.recipe)
    ours["data"] = data_identity(job, data.checksums)
    its = {part: identity[part] for part in ours if part in identity}
    # These keys may differ, all else has to be as it was.
    changed = [line for line in changes(its, ours) if not line.startswith(_MAY_DIFFER)]
    if changed:
        raise UserError(
            f"{path}: its training cannot continue with other data or another recipe: "
            f"{_shown(changed)}; state the same, or start from it by `as: initialise`"
        )
    newest = "best_epoch" if job.recipe.average is None else "epochs"
    epochs = int(str(model.training[newest]))
    if job.recipe.maximum_epochs is not None and epochs >= job.recipe.maximum_epochs:
        raise UserError(
            f"{path}: is of epoch {epochs}, and maximum_epochs is {job.recipe.maximum_epochs:g}: "
            "raise it to continue the training"
        )
    return epochs
