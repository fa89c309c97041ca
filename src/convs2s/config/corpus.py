"""The keys of a task that describe its text: files, preparation, alignment and vocabulary."""

import re
from typing import Annotated, Literal, NamedTuple, Self, get_args

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from convs2s.config.section import (
    Expecting,
    ExtensionName,
    FileName,
    Items,
    NonNegativeInt,
    PositiveInt,
    Section,
    SomeDistinctItems,
    SomeItems,
    Text,
)

Language = Annotated[
    str,
    Expecting(
        "expected a language code of two or three lower-case letters, optionally with a suffix "
        'such as _title; write "no" in quotes, because YAML reads it as false without them',
        pattern="^[a-z]{2,3}(_[a-z]+)?$",
    ),
]

# train and valid are the names of the other two splits. Files are named after splits, so a test set
# cannot have these names. $ also matches before a line break at the end, which (?!\n) excludes.
TestSetName = Annotated[
    str,
    Expecting(
        "expected a name of lower-case letters, digits and underscores other than train and valid",
        pattern="^(?!train$|valid$)[a-z][a-z0-9_]*$(?!\n)",
    ),
]


class Languages(Section):
    """Codes of the two languages of a task."""

    source: Language
    """Code of the language that is translated from."""
    target: Language
    """Code of the language that is translated into."""


OPUS = "https://object.pouta.csc.fi/OPUS-{0}/{1}/moses/{2}.txt.zip#{0}.{2}.{3}"
"""Address of one side of an OPUS corpus as plain text (OPUS calls the format moses).

Its fields are the corpus, the version, the pair of languages and the language of the side.
"""


def _address(name: str) -> str:
    """Return the address that ``opus:...`` abbreviates; return any other name unchanged."""
    if not name.startswith("opus:"):
        return name
    parts = re.fullmatch(r"opus:([\w.-]+)/([\w.-]+)/(\w+)-(\w+)#(\w+)", name, re.ASCII)
    if parts:
        corpus, version, first, second, side = parts.groups()
        if first < second and side in (first, second):
            return OPUS.format(corpus, version, f"{first}-{second}", side)
    raise PydanticCustomError(
        "opus",
        "expected opus:CORPUS/VERSION/LANGUAGES#LANGUAGE with the two languages in alphabetical "
        "order, such as opus:SETIMES/v2/en-ro#ro",
    )


CorpusFile = Annotated[FileName, AfterValidator(_address)]


class FilePair(Section):
    """Two parallel files: line N of the target is the translation of line N of the source."""

    source: CorpusFile
    """File of the source side: a path, a URL, or `opus:CORPUS/VERSION/LANGUAGES#LANGUAGE`."""
    target: CorpusFile
    """File of the target side, stated like source."""

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        if self.source == self.target:
            raise PydanticCustomError(
                "sides",
                "expected different files for source and target; name fields or members of one "
                "file after #",
            )
        return self


class ScoredFilePair(FilePair):
    """A pair of files of a test set, and further references for its source lines."""

    references: Items[FileName] = ()
    """Further references for ROUGE; the target is the first reference. Line N of each file is
    another summary of line N of the source, or empty if that line has no further summary."""


class Corpus(Section):
    """The files of a task."""

    # pydantic's default engine does not support the (?!...) in the pattern of TestSetName.
    model_config = ConfigDict(regex_engine="python-re")

    train: SomeItems[FilePair]
    """Pairs of files of the training text, which are read one after the other."""
    valid: Items[FilePair] = ()
    """Pairs of files of the validation text. Leave it out if hold_out is stated."""
    tests: Annotated[dict[TestSetName, SomeItems[ScoredFilePair]], Field(min_length=1)]
    """Test sets: name -> its pairs of files."""
    obtain: Text | None = None
    """How to get files that the workflow cannot download, for example licensed text. The message
    that names missing files ends with this advice. null: the message asks the user to put the files
    there."""


class Titles(Section):
    """Tables of papers; the workflow makes sentence and title pairs from them."""

    files: SomeDistinctItems[FileName]
    """Paths or URLs of tab-separated tables with the columns arxiv_id, title and abstract. The
    files may be compressed, and fields may be in quotes. If several papers have the same id, the
    first is used. corpus names the text that is made from the tables as titles://TASK/SPLIT.SIDE.
    SPLIT is train, valid or test. SIDE is title, or sentence for the first sentence of the
    abstract."""
    one_in: Annotated[int, Field(ge=3)] = 43
    """One paper in this many goes into the test set, and another one into the validation data. The
    SHA-256 of a paper's id decides, so adding files moves no paper from one split to another."""


TITLE_FILES = tuple(
    f"{split}.{side}"
    for split in ("train", "valid", "test")
    for side in ("sentence", "title")
)
"""Names of the files that the workflow makes from ``Titles``: titles://TASK/FILE."""


class HoldOut(Section):
    """Training pairs that become the validation data."""

    every: Annotated[int, Field(ge=2)]
    """Each training pair whose number is a multiple of this value is held out; 100 holds out 1% of
    the pairs."""


class HoldOutPart(NamedTuple):
    """The training pairs that a split takes if validation data is held out from training."""

    every: int
    held: bool
    """True (valid): the split takes each pair whose number is a multiple of ``every``. False
    (train): it takes all others."""


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
"""Name of a recipe that is built in (`convs2s.text.preparation`)."""

PREPARATIONS: tuple[str, ...] = get_args(PreparationRecipe)

PreparationName = PreparationRecipe | ExtensionName


class PreparationRecipes(Section):
    """Recipes that turn raw text into words."""

    train: PreparationName = "moses_train"
    """Recipe for training and validation text, or the name of an extension's preparation.
    moses_train tokenizes like moses_test and also normalizes punctuation. wmt16 is the recipe of
    Sennrich et al. for Romanian; wmt16_plain also removes diacritics. stanford is for the text that
    Luong et al. tokenized. lowercase lower-cases all letters and does not split words at hyphens,
    like fairseq's script for talks. none is for text that is already tokenized."""
    test: PreparationName = "moses_test"
    """Recipe for test text and for the input of `convs2s translate`. lowercase_test is lowercase
    with straight apostrophes. If train and test are both none, words are what blanks separate, and
    translations are written as words separated by blanks."""
    truecase: bool = False
    """Whether a word that starts a sentence gets the case that it has elsewhere in the training
    text. Translations are capitalized again."""


class CleanLimits(Section):
    """The limits of training and validation pairs; pairs outside of them are dropped."""

    minimum: PositiveInt = 1
    """Minimum number of words on each side."""
    maximum: PositiveInt | None = 175
    """Maximum number of words on each side; null sets no limit."""
    ratio: Annotated[float, Field(ge=1)] | None = 1.5
    """Maximum ratio of the longer side's words to the shorter side's; null sets no limit."""
    tokens: PositiveInt | None = 1023
    """Maximum number of tokens on each side, after BPE has split the words; null sets no limit. A
    model has 1024 positions by default, and the end token takes one of them."""
    remove_overlap: bool = False
    """Whether a training pair is dropped if its source or target has the same words as a line of
    the validation text or of a test set. dataset/counts.txt counts such lines in any case
    (docs/preparation.md)."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        for most in (self.maximum, self.tokens):
            if most is not None and self.minimum > most:
                message = f"expected a minimum of at most {most}, or no pair is kept"
                raise PydanticCustomError("bounds", message)
        return self


AlignerName = Literal["fast_align", "eflomal"]


class AlignmentSettings(Section):
    """Word alignment, from which the dictionary for unknown words is made."""

    dictionary: Literal["aligned", "identity"] = "aligned"
    """What a word model writes in place of an unknown word. aligned: the target word that is most
    often aligned to the source word. identity: the source word itself, for tasks within one
    language; no text is aligned then, unless a model selects its vocabulary."""
    aligner: AlignerName = "fast_align"
    """The word aligner. fast_align is part of this package and gives the same links each time for
    the same text. eflomal must be installed (docs/install.md). It draws its seed from the system,
    so its links differ from run to run."""
    pairs: PositiveInt | None = None
    """Number of training pairs that are aligned, drawn at random; null aligns all."""
    seed: NonNegativeInt = 1
    """Seed for drawing the pairs. The number of parts in which the text is prepared does not change
    which pairs are drawn."""


class VocabularySettings(Section):
    """What a token is: a piece of a word as BPE splits it, or a whole word."""

    kind: Literal["bpe", "word"] = "bpe"
    """bpe: tokens are pieces of words, split by byte pair encoding (keys merges, joint, glossaries,
    and either threshold or the sizes). word: tokens are the most frequent words (keys source_size
    and target_size)."""
    merges: PositiveInt = 8000
    """Number of BPE merge operations (40,000 in the paper)."""
    joint: bool = True
    """Whether one set of merges is learned from both languages together. false: one set is learned
    for each language."""
    threshold: NonNegativeInt = 0
    """Subwords that occur less often than this in the language's training text are split further;
    0 splits none."""
    glossaries: Items[Text] = ()
    """Regular expressions; BPE does not split the words that match one of them."""
    source_size: PositiveInt | None = None
    """Maximum number of types in the source vocabulary, not counting special tokens; null keeps
    all."""
    target_size: PositiveInt | None = None
    """Maximum number of types in the target vocabulary, not counting special tokens; null keeps
    all."""
    minimum_count: PositiveInt = 1
    """Types that occur less often than this in the training text are left out of the vocabulary. If
    there is a threshold, rare subwords are split further before the types are counted."""

    def bpe_codes_names(self, *languages: str) -> list[str]:
        """Return the names of the BPE codes of these languages.

        Joint codes have one name for all languages; a vocabulary of words has no codes.
        """
        if self.kind == "word":
            return []
        if self.joint:
            return ["codes"]
        return [f"codes.{language}" for language in languages]
