"""``preparation``, ``clean`` and ``alignment`` of a task: from its raw text to aligned words."""

from typing import Annotated, Literal

from pydantic import Field

from convs2s.config.fields import NonNegativeInt, PositiveInt
from convs2s.config.section import Section

PreparationRecipe = Literal[
    "moses_train",
    "moses_test",
    "stanford",
    "wmt16",
    "wmt16_plain",
    "lowercase",
    "lowercase_test",
    "none",
]
"""A recipe of `convs2s.text.preparation`."""


class PreparationRecipes(Section):
    """Recipes that turn raw text into words."""

    train: PreparationRecipe = "moses_train"
    """Recipe for training and validation text: moses_train also normalizes punctuation; wmt16 is
    Sennrich et al.'s for Romanian, wmt16_plain the same without diacritics; stanford is for the
    text that Luong et al. tokenized; lowercase leaves hyphens within words and lowers all letters,
    as fairseq's script does to talks; none takes the words of text that comes tokenized."""
    test: PreparationRecipe = "moses_test"
    """Recipe for test text, and for what convs2s translate is given; lowercase_test is lowercase
    with straight apostrophes; none of both is for text whose
    words are what blanks separate, and translations are then such words, too."""
    truecase: bool = False
    """Whether words that start a sentence are given the case that they have elsewhere in the
    training text; translations are capitalized again."""


class CleanLimits(Section):
    """Training and validation pairs that are kept."""

    minimum: PositiveInt = 1
    """Fewest words of either side."""
    maximum: PositiveInt | None = 175
    """Most words of either side; null sets no limit."""
    ratio: Annotated[float, Field(ge=1)] | None = 1.5
    """Longest side over shortest side at most; null sets no limit."""
    tokens: PositiveInt | None = 1023
    """Most tokens of either side, once BPE has split its words; null sets no limit. With the end
    token, 1023 are what fits into a model's 1024 positions."""


AlignerName = Literal["fast_align", "eflomal"]


class AlignmentSettings(Section):
    """Word alignment, from which the dictionary for unknown words is made."""

    dictionary: Literal["aligned", "identity"] = "aligned"
    """What stands for an unknown word of word models: aligned is the target word that its source
    word is aligned to most often; identity the source word itself, for tasks within one language.
    Then no text is aligned, unless a model selects its vocabulary."""
    aligner: AlignerName = "fast_align"
    """What aligns words: fast_align, this package's own, whose links are always the same for the
    same text; or eflomal, which is to be installed (docs/install.md) and draws its seed from the
    system: its links move from run to run."""
    pairs: PositiveInt | None = None
    """Training pairs to align, drawn at random; null aligns all."""
    seed: NonNegativeInt = 1
    """Decides which pairs are drawn; the number of shards does not."""
