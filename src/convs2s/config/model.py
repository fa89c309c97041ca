"""config/models.yaml: named architectures with their training recipes."""

import json
from pathlib import Path

from convs2s.config.architecture import Architecture
from convs2s.config.messages import validated
from convs2s.config.recipe import Recipe
from convs2s.config.section import Section
from convs2s.errors import UserError


class ModelSettings(Section):
    """Named architectures with their training recipes: name -> the settings below.

    A model that says "extends: OTHER" has all of OTHER's values but those that it states itself.
    """

    description: str
    """One line: what the model is and where in the papers it comes from."""
    extends: str | None = None
    """The model whose values this one starts from; null starts from the defaults."""
    architecture: Architecture
    """The network: its kind, and the settings of that kind."""
    training: Recipe = Recipe()
    """The training recipe; the defaults are the paper's (section 4.2)."""

    def training_settings(self) -> dict[str, object]:
        """Return what a training reads, as plain data for `read_training_settings`.

        A switch that is off and changes no result stays out: the settings of a training from before
        there was such a switch stay the same file, and nothing is made again for it.
        """
        off = set() if self.training.tensorboard else {"tensorboard"}
        return {
            "architecture": self.architecture.model_dump(mode="json"),
            "training": self.training.model_dump(mode="json", exclude=off),
        }


class _TrainingSettings(Section):
    """What a training reads of a model."""

    architecture: Architecture
    """The network: its kind, and the settings of that kind."""
    training: Recipe
    """The training recipe."""


def read_training_settings(path: Path) -> tuple[Architecture, Recipe]:
    """Read a JSON file of a model's ``architecture`` and ``training``.

    Raises:
        UserError: the file is missing, is not JSON, or one line that names the key.
    """
    try:
        stated = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    settings = validated(_TrainingSettings, stated, str(path))
    return settings.architecture, settings.training
