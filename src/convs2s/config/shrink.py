"""Small versions of the paper's models, made by one rule, for scales without a cluster."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from convs2s.config.architecture import Blocks, ConvS2SArchitecture
from convs2s.config.entries import Entries, extended
from convs2s.config.fields import Probability, matching
from convs2s.config.messages import validated
from convs2s.config.model import ModelSettings
from convs2s.config.recipe import Recipe
from convs2s.config.section import Section
from convs2s.config.yaml_file import Values


class Shrinking(Section):
    """How the small version of a convolutional model differs: in widths, dropout and recipe.

    Layers, kernels, attention and positions stay, so that rows of a table differ in what they
    differ in for the paper.
    """

    prefix: Annotated[
        str, matching("^[a-z][a-z0-9_]*$", "expected a name of small letters and digits")
    ]
    """The small version of NAME is called PREFIX_NAME."""
    divide_by: Annotated[int, Field(ge=2)]
    """What the widths of blocks and embeddings are divided by."""
    dropout: Probability | None = None
    """Dropout of every small version; null leaves each model its own. A narrow and deep network
    that sees each sentence once or twice learns faster without."""
    training: Recipe
    """The training recipe of every small version."""

    def name_of(self, model: str) -> str:
        """Return what the small version of a model is called."""
        return f"{self.prefix}_{model}"

    def entry(self, name: str, architecture: ConvS2SArchitecture) -> Values:
        """Return the small version of a model as config/models.yaml would state it."""
        return {
            "extends": name,
            "description": f"{name} with 1/{self.divide_by} of its widths",
            "architecture": {
                "dropout": architecture.dropout if self.dropout is None else self.dropout,
                "embedding": self._narrow(architecture.embedding),
                "output_embedding": self._narrow(architecture.output_embedding),
                "encoder": list(map(self._narrowed, architecture.encoder)),
                "decoder": list(map(self._narrowed, architecture.decoder)),
            },
            "training": self.training.model_dump(mode="json"),
        }

    def _narrowed(self, blocks: Blocks) -> Values:
        return {**blocks.model_dump(), "width": self._narrow(blocks.width)}

    def _narrow(self, width: int) -> int:
        return max(1, width // self.divide_by)


def small_versions(
    entries: Entries, names: Iterable[str], shrinking: Shrinking, file: str
) -> dict[str, Values]:
    """Return an entry for the small version of each convolutional model.

    Args:
        entries: of config/models.yaml.
        names: of models; one that there is not is left to whoever checks the names.
        shrinking: how a small version differs from its model.
        file: what messages call the entries' file.

    Raises:
        UserError: an entry of these is wrong.
    """
    made: Entries = {}
    for name in names:
        if name not in entries:
            continue
        model = validated(ModelSettings, extended(entries, name, file), f"{file}: {name}")
        if isinstance(model.architecture, ConvS2SArchitecture):
            made[shrinking.name_of(name)] = shrinking.entry(name, model.architecture)
    return made
