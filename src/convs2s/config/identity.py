"""The keys of the configuration on which results depend. Only this module decides which they are.

A model's ``settings.json``, the identity of a training and the inputs of a run are all made from
the values that ``counted`` returns. A key that was added after results were first published counts
only if its value is not the default. An update of the code therefore keeps running trainings,
finished models and published results valid. For the same reason, no default may change
(tests/invariants/test_names_of_results.py).
"""

from collections.abc import Mapping
from pathlib import Path

from convs2s.config.architecture import (
    Architecture,
    ConvS2SArchitecture,
    LstmArchitecture,
    NetworkSettings,
    Positions,
    VocabularySelection,
)
from convs2s.config.corpus import (
    AlignmentSettings,
    CleanLimits,
    PreparationRecipes,
    Titles,
    VocabularySettings,
)
from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.config.messages import validated
from convs2s.config.model import (
    BatchLimits,
    ModelSettings,
    Recipe,
    ScheduleSettings,
)
from convs2s.config.section import Section, Values
from convs2s.config.task import Task

_NEVER: Mapping[type[Section], str] = {
    # The workflow passes these as options of ``train`` (`machine_settings`).
    Recipe: "checkpoint_minutes tensorboard threads",
    # These keys name or describe the task, or only some of its runs depend on them (`RunInputs`).
    Task: "description text corpus paper_pairs vocabulary_of n_best released headline metric "
    "bleu_tokenize metrics rouge",
    AlignmentSettings: "aligner",
}
"""Section -> its keys that never count, even with a value that is not the default."""

_ALWAYS: Mapping[type[Section], str] = {
    Recipe: "start batch optimizer learning_rate momentum normalize clip label_smoothing schedule "
    "velocity maximum_epochs average precision compile",
    BatchLimits: "sentences tokens micro_batch_tokens lengths split",
    ScheduleSettings: "kind divide_by minimum hold every warmup",
    ConvS2SArchitecture: "kind embedding output_embedding encoder decoder attention "
    "attention_weights positions dropout vocabulary_selection gradient_scaling",
    Positions: "source target maximum",
    VocabularySelection: "frequent candidates",
    LstmArchitecture: "kind layers cells embedding dropout initialization reverse_source",
    DecodingSettings: "beam length_penalty minimum_length maximum_length unknown_penalty finished "
    "replace_unknown vocabulary_selection ensemble precision batch_sentences batch_tokens",
    MaximumLength: "factor offset",
    Task: "languages titles hold_out preparation clean vocabulary alignment",
    Titles: "files one_in",
    PreparationRecipes: "train test truecase",
    CleanLimits: "minimum maximum ratio",
    VocabularySettings: "kind merges joint threshold glossaries source_size target_size "
    "minimum_count",
    AlignmentSettings: "dictionary pairs seed",
}
"""Section -> its keys that count even at their defaults.

They are the keys that the section had when results were first published. For a section that is not
listed, such as the settings of an extension's network, every key counts.
"""


def counted(section: Section, *, with_null: bool = True) -> Values:
    """Return the keys of a section on which results depend, with their values as plain data.

    Keys whose value is null are left out if ``with_null`` is false.
    """
    values: Values = section.model_dump(mode="json", exclude_none=not with_null)
    if type(section) not in _ALWAYS:
        return values
    always = _ALWAYS[type(section)].split()
    never = _NEVER.get(type(section), "").split()
    not_at_default = section.model_dump(exclude_defaults=True)
    for key in list(values):
        value = getattr(section, key)
        counts = key in always or key in not_at_default
        if key in never or not counts:
            del values[key]
        elif isinstance(value, Section):
            values[key] = counted(value, with_null=with_null)
    return values


def training_settings(model: ModelSettings) -> dict[str, object]:
    """Return the content of a model's ``settings.json``, which `read_training_settings` reads."""
    return {
        "architecture": counted(model.architecture),
        "training": counted(model.training),
        **model.architecture.code(),
    }


class _TrainingSettings(Section):
    architecture: Architecture
    training: Recipe
    # Digest of an extension's code. Nothing reads it, but a new digest changes the file, so that
    # the workflow trains the model again.
    code: str | None = None


def read_training_settings(path: Path) -> tuple[Architecture, Recipe]:
    """Return the architecture and the recipe in a model's ``settings.json``.

    Raises:
        UserError: The file is damaged, or its settings do not fit each other. The message names the
            file and the key.
    """
    # This module imports xopen, which planning does not need.
    from convs2s.files.text import read_json

    settings = validated(_TrainingSettings, read_json(path), str(path))
    return settings.architecture, settings.training


def machine_settings(recipe: Recipe) -> dict[str, object]:
    """Return the recipe's keys that the workflow passes as options of the command ``train``.

    ``threads`` is not among them: the workflow passes the threads of the job instead.
    """
    return recipe.model_dump(mode="json", include={"checkpoint_minutes", "tensorboard"})


def recipe_identity(architecture: NetworkSettings, recipe: Recipe) -> dict[str, object]:
    """Return the settings that identify a training.

    The key ``start`` is left out, because `convs2s.training.identity` identifies the model that a
    training starts from by its content and not by its path.
    """
    training = counted(recipe, with_null=False)
    training.pop("start", None)
    if recipe.best_by is not None:
        # At first, BLEU decided alone. Now the validation loss decides where BLEU cannot tell
        # epochs apart, so trainings from before need another identity.
        training["best_by"] = f"{recipe.best_by}, then loss"
    # Schedules once had this key, which had no effect. It stays in the identity, so that trainings
    # from that time keep their identity.
    training["schedule"]["compare"] = "previous"
    return {
        "architecture": counted(architecture, with_null=False),
        "training": training,
        **architecture.code(),
    }
