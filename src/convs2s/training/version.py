"""The version of training itself, and what of a model's settings a training is known by."""

from convs2s.config.architecture import Architecture
from convs2s.config.model import Recipe

TRAINING_VERSION = 4
"""Raised only when a change of the code changes results: it is part of a training's identity.

The workflow trains again when it changes, and for no other change of the code.
"""

WITHOUT_EFFECT = {"checkpoint_minutes", "start", "tensorboard", "threads"}
"""Settings of a recipe that are not part of a training's identity: of its start that is the bytes
of the file, wherever it lies."""

WITHOUT_EFFECT_ONCE_STATED = {"compare": "previous"}
"""What a schedule no longer states, as it changed nothing: finished trainings keep their names. It
goes when ``TRAINING_VERSION`` rises."""


def recipe_identity(architecture: Architecture, recipe: Recipe) -> dict[str, object]:
    """Return the settings that a training's result depends on, as plain data.

    What is off is left out: a training from before there was such a setting is the same one.
    """
    stated = recipe.model_dump(mode="json", exclude=WITHOUT_EFFECT, exclude_none=True)
    return {
        "architecture": architecture.model_dump(mode="json", exclude_none=True),
        "training": stated | {"schedule": stated["schedule"] | WITHOUT_EFFECT_ONCE_STATED},
    }
