"""Start a training from an existing model: fetch it, check that it fits, and load its weights."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from convs2s.config.file_reference import Download, known_download, parse_file_reference
from convs2s.config.identity import recipe_identity
from convs2s.config.model import Recipe
from convs2s.download.download import download_file
from convs2s.errors import UserError
from convs2s.model_file import ModelDescription, load_model
from convs2s.models.network import Network
from convs2s.text.bpe import merges_of
from convs2s.text.truecase import read_truecaser
from convs2s.training.data import TrainingData
from convs2s.training.identity import TrainingJob, changes, data_identity

_ARCHITECTURE_MAY_DIFFER = {"dropout", "gradient_scaling", "initialization"}
"""Keys of an architecture that may differ from those of the model.

They affect neither the shapes of the weights nor what a trained network computes.
"""

_RECIPE_MAY_DIFFER = (
    "training.learning_rate",
    "training.schedule.",
    "training.maximum_epochs",
)
"""Beginnings of the keys of a recipe that may differ when a training continues from a model."""

_MOST_SHOWN = 3  # Maximum number of differing keys that a message shows

_ADVICE = (
    "to take the vocabularies and BPE codes from the model, set `vocabulary_of` in the task's file "
    "(docs/fine_tuning.md)"
)
"""Advice for a task whose vocabulary or BPE codes differ from those of the model."""


def fetched_start(
    recipe: Recipe,
    output: Path,
    downloads: Mapping[str, Download],
) -> Path | None:
    """Download the model of ``training.start`` if it is a URL; return the path of the file.

    Return None if the training starts from no model or from a local file. The model is downloaded
    once, into a file beside ``output`` whose name is derived from the URL. Workers and later tries
    find the file there, and only check it.

    Args:
        recipe: the recipe of the training.
        output: the model file that the training writes.
        downloads: URL -> the known size and checksums of a file. If no checksum of the model is
            known, the checksum of its first download is recorded, and later ones must have it.

    Raises:
        UserError: No file with the right checksum can be downloaded.
    """
    if recipe.start is None or not parse_file_reference(recipe.start.model).is_url:
        return None
    url = recipe.start.model
    known = known_download(url, downloads) or Download(url=url)
    digest = hashlib.sha256(url.encode()).hexdigest()[:8]
    path = output.with_name(f"start.{digest}.safetensors")
    download_file(url, path, sha256=known.sha256, md5=known.md5, size=known.bytes)
    return path


def begin(
    job: TrainingJob,
    data: TrainingData,
    network: Network,
) -> int:
    """Load the weights of ``training.start``, if any, into the network; return the first epoch.

    The first epoch is 1, unless this training continues the training of the model
    (``as: continue``).

    Raises:
        UserError: The model does not fit the task or the recipe. The message says what differs.
    """
    start = job.recipe.start
    if start is None:
        return 1
    path = job.start_file(start)
    trained, description = load_model(path)
    difference = _difference(job, data, description)
    if difference is not None:
        raise UserError(f"{path}: this training cannot start from it: {difference}")
    network.load_state_dict(trained.state_dict())
    if start.mode == "initialise":
        return 1
    return _epochs_made(job, data, description, path) + 1


def _difference(
    job: TrainingJob,
    data: TrainingData,
    model: ModelDescription,
) -> str | None:
    """Return the first difference between a model and this training, or None if there is none.

    What matters is how text becomes tokens and numbers, and the architecture of the network. In the
    returned description, "it" and "its" mean the model.
    """
    description = data.description
    if model.preparation != description.preparation:
        return (
            f"its text was prepared by {model.preparation}, that of the task by "
            f"{description.preparation}"
        )
    languages = description.languages  # of the task
    source = model.languages["source"]
    target = model.languages["target"]
    is_reverse = (languages.source, languages.target) == (target, source)
    if source != target and is_reverse:
        return f"it translates from {source} to {target}, but the task is from {target} to {source}"
    if model.bpe_codes != data.bpe_codes:
        return f"{_codes('it', model.bpe_codes)}, {_codes('the task', data.bpe_codes)}; {_ADVICE}"
    if model.glossaries != list(description.vocabulary.glossaries):
        return "its vocabulary.glossaries differ"
    its_types = {"source": model.source_types, "target": model.target_types}
    for side, types in its_types.items():
        if types != data.types[side]:
            difference = _first_difference(types, data.types[side])
            return f"its {side} vocabulary differs: {difference}; {_ADVICE}"
    # Splittable tokens are types of the source vocabulary, so another vocabulary is reported above.
    if model.splittable != data.splittable:
        return (
            "its BPE splits other rare tokens of the source than that of the task, because "
            "vocabulary.threshold or the counts of the tokens differ"
        )
    if model.truecasers != words_of_truecasers(job, data):
        return "its truecaser, which is learned from the training text, differs"
    its = model.architecture.model_dump(mode="json", exclude=_ARCHITECTURE_MAY_DIFFER)
    ours = job.architecture.model_dump(mode="json", exclude=_ARCHITECTURE_MAY_DIFFER)
    if changed := changes(its, ours):
        return f"its architecture differs ({_shown(changed)})"
    return None


def _first_difference(its: Sequence[str], ours: Sequence[str]) -> str:
    """Return the first difference between the model's types and the task's, which differ."""
    if len(its) != len(ours):
        return f"it has {len(its):,} types, the task {len(ours):,}"
    index = 0
    while its[index] == ours[index]:
        index += 1
    return f"type {index + 1:,} is {its[index]!r}, the task's {ours[index]!r}"


def words_of_truecasers(job: TrainingJob, data: TrainingData) -> dict[str, list[str]]:
    """Return language -> the words of its truecaser, as a model file contains them."""
    if not job.truecasers:
        return {}
    languages = data.description.languages
    tables = zip((languages.source, languages.target), job.truecasers, strict=True)
    return {language: read_truecaser(table) for language, table in tables}


def _codes(owner: str, codes: str | None) -> str:
    """Return a description of the BPE codes of ``owner``, such as "it reads whole words"."""
    if codes is None:
        return f"{owner} reads whole words"
    digest = hashlib.sha256(codes.encode()).hexdigest()[:8]
    return f"{owner} has {len(merges_of(codes)):,} BPE merges (SHA-256 {digest}...)"


def _shown(changed: list[str]) -> str:
    """Return the first few changes, joined by commas."""
    shown = changed[:_MOST_SHOWN]
    if len(changed) > _MOST_SHOWN:
        shown.append("and others")
    return ", ".join(shown)


def _epochs_made(
    job: TrainingJob,
    data: TrainingData,
    model: ModelDescription,
    path: Path,
) -> int:
    """Return the number of the epoch at whose end the weights of a model were taken.

    If they are a mean over epochs, this is the last of these epochs. A training that continues the
    training of the model starts with the next epoch.

    Raises:
        UserError: The model was trained on other data or by another recipe, its file does not say
            how it was trained, or no epoch is left.
    """
    identity = model.training.get("identity")
    if not isinstance(identity, Mapping):
        raise UserError(
            f"{path}: does not say how the model was trained (the file of an imported model never "
            "does), so its training cannot be continued; use `as: initialise`"
        )
    ours = recipe_identity(job.architecture, job.recipe)
    ours["data"] = data_identity(job, data.checksums)
    # The identity of the model also has parts that may differ, such as the seed.
    its = {part: identity[part] for part in ours if part in identity}
    changed = []
    for line in changes(its, ours):
        if not line.startswith(_RECIPE_MAY_DIFFER):
            changed.append(line)
    if changed:
        raise UserError(
            f"{path}: its training cannot be continued with other data or another recipe: "
            f"{_shown(changed)}; use the same data and recipe, or `as: initialise`"
        )
    # The weights of a model are those of the best epoch, or a mean over epochs up to the last one.
    key = "best_epoch" if job.recipe.average is None else "epochs"
    epochs = int(str(model.training[key]))
    if job.recipe.maximum_epochs is not None and epochs >= job.recipe.maximum_epochs:
        raise UserError(
            f"{path}: has the weights after epoch {epochs}, but maximum_epochs is "
            f"{job.recipe.maximum_epochs:g}; raise maximum_epochs to continue the training"
        )
    return epochs
