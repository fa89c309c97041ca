"""config/models.yaml: named architectures with their training recipes."""

from convs2s.config.architecture import Architecture
from convs2s.config.recipe import Recipe
from convs2s.config.section import Section


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
