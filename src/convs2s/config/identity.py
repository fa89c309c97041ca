"""What of the configuration a result depends on: this module alone decides it.

A model's ``settings.json``, the identity of a training and the inputs of a run are all made of
what ``counted`` returns. A key that is new counts only where it is not at its default, so an update
of the code leaves trainings that run, finished models and published results as they are. Therefore
no default may change (tests/unit/config/test_identity.py).
"""

from collections.abc import Collection, Mapping
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
from convs2s.config.model import BatchLimits, ModelSettings, Recipe, ScheduleSettings, check_model
from convs2s.config.section import Section, Values
from convs2s.config.task import Task

MACHINE_KEYS = ("checkpoint_minutes", "tensorboard", "threads")
"""Keys of a recipe that change no result: the workflow states them as options of ``train``."""

_NEVER: Mapping[type[Section], Collection[str]] = {
    Recipe: MACHINE_KEYS,
    # They name or describe the task, or count for some of its runs alone (`RunInputs`).
    Task: (
        "description",
        "text",
        "corpus",
        "paper_pairs",
        "vocabulary_of",
        "n_best",
        "released",
        "headline",
        "metric",
        "metrics",
        "rouge",
    ),
    AlignmentSettings: ("aligner",),
}
"""Section -> its keys that do not count."""

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
"""Section -> its keys that count at their defaults, too: those of when results were first
published. Of a section that is not listed, as those of extensions, every key counts."""


def counted(section: Section, *, with_null: bool = True) -> Values:
    """Return what of a section results depend on, as plain data.

    ``with_null``: whether keys that are null are stated, or left out.
    """
    stated: Values = section.model_dump(mode="json", exclude_none=not with_null)
    if type(section) not in _ALWAYS:
        return stated
    counting = section.model_dump(exclude_defaults=True).keys() | _ALWAYS[type(section)].split()
    for key in list(stated):
        value = getattr(section, key)
        if key not in counting or key in _NEVER.get(type(section), ()):
            del stated[key]
        elif isinstance(value, Section):
            stated[key] = counted(value, with_null=with_null)
    return stated


def training_settings(model: ModelSettings) -> dict[str, object]:
    """Return what ``settings.json`` of a model says, for `read_training_settings`."""
    return {
        "architecture": counted(model.architecture),
        "training": counted(model.training),
        **model.architecture.code(),
    }


class _TrainingSettings(Section):
    architecture: Architecture
    training: Recipe
    code: str | None = None  # of an extension: another one trains again, nothing reads it


def read_training_settings(path: Path) -> tuple[Architecture, Recipe]:
    """Read ``architecture`` and ``training`` of a model.

    Raises:
        UserError: The file is damaged, or its settings do not fit; names the file and the key.
    """
    from convs2s.files.text import read_json  # needs xopen, which a plan does without

    settings = validated(_TrainingSettings, read_json(path), str(path))
    check_model(f"{path}: model", settings.architecture, settings.training)
    return settings.architecture, settings.training


def machine_settings(recipe: Recipe) -> dict[str, object]:
    """Return options of a training's command; its threads are a resource of the job."""
    return recipe.model_dump(mode="json", include={"checkpoint_minutes", "tensorboard"})


def recipe_identity(architecture: NetworkSettings, recipe: Recipe) -> dict[str, object]:
    """Return the settings that a training is known by.

    The model that it starts from is none of them: it counts by its bytes, wherever it lies.
    """
    training = counted(recipe, with_null=False)
    training.pop("start", None)
    # A schedule once said so, and changed nothing by it: trainings of then keep their names.
    training["schedule"]["compare"] = "previous"
    return {
        "architecture": counted(architecture, with_null=False),
        "training": training,
        **architecture.code(),
    }
