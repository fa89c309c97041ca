"""The text of a task: its files, how it is prepared, and what a token of it is."""

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
        "expected a language code of two or three small letters, perhaps with more after an _ (as "
        'en_title), in quotes where YAML reads it as a truth value ("no")',
        pattern="^[a-z]{2,3}(_[a-z]+)?$",
    ),
]

# The names of the other two splits are taken: files are named by them.
TestSetName = Annotated[
    str,
    Expecting(
        "expected a name of small letters, digits and underscores other than train and valid",
        pattern="^(?!train$|valid$)[a-z][a-z0-9_]*$(?!\n)",
    ),
]


class Languages(Section):
    """Codes of the two languages of a task."""

    source: Language
    """Language that is translated from."""
    target: Language
    """Language that is translated to."""


OPUS = "https://object.pouta.csc.fi/OPUS-{0}/{1}/moses/{2}.txt.zip#{0}.{2}.{3}"
"""Where OPUS has a side of a corpus as plain text (the format that it calls moses)."""


def _address(name: str) -> str:
    """Return the address of an entry of OPUS, and any other file's name as it is."""
    if not name.startswith("opus:"):
        return name
    parts = re.fullmatch(r"opus:([\w.-]+)/([\w.-]+)/(\w+)-(\w+)#(\w+)", name, re.ASCII)
    if parts:
        corpus, version, first, second, side = parts.groups()
        if first < second and side in (first, second):
            return OPUS.format(corpus, version, f"{first}-{second}", side)
    raise PydanticCustomError(
        "opus",
        "expected opus:CORPUS/VERSION/LANGUAGES#LANGUAGE, both languages in the order of "
        "letters, such as opus:SETIMES/v2/en-ro#ro",
    )


CorpusFile = Annotated[FileName, AfterValidator(_address)]


class FilePair(Section):
    """Two files, line N of one the translation of line N of the other."""

    source: CorpusFile
    """File of the source side: a path, an URL, or `opus:CORPUS/VERSION/LANGUAGES#LANGUAGE`."""
    target: CorpusFile
    """File of the target side."""

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        if self.source == self.target:
            words = "expected two files, not one for both sides; name its fields or members after #"
            raise PydanticCustomError("sides", words)
        return self


class ScoredFilePair(FilePair):
    """Two files of a test set, and what else is right."""

    references: Items[FileName] = ()
    """Further references of ROUGE: files whose line N is another summary of line N of the source;
    an empty line where one has fewer. The target is the first reference."""


class Corpus(Section):
    """The files of a task."""

    model_config = ConfigDict(regex_engine="python-re")  # for the pattern's (?!...)

    train: SomeItems[FilePair]
    """Pairs of files, read one after the other."""
    valid: Items[FilePair] = ()
    """The same for validation; left out where hold_out is stated."""
    tests: Annotated[dict[TestSetName, SomeItems[ScoredFilePair]], Field(min_length=1)]
    """Test sets: name -> pairs of files."""
    obtain: Text | None = None
    """How to come by the files that nobody may download: what the message says that names those
    which are missing; null: it asks for them."""


class Titles(Section):
    """Papers, from whose abstracts and titles the workflow makes text."""

    files: SomeDistinctItems[FileName]
    """Tab-separated tables with the columns arxiv_id, title and abstract, fields in quotes where
    they need them: paths or URLs, compressed or not. Of papers with the same id the first counts.
    The text is titles://TASK/SPLIT.SIDE: train, valid or test; sentence (the first) or title."""
    one_in: Annotated[int, Field(ge=3)] = 43
    """One paper in this many is for test, another one for validation. Its id alone decides, by its
    SHA-256: other files move no paper from one part to another."""


TITLE_FILES = tuple(
    f"{split}.{side}" for split in ("train", "valid", "test") for side in ("sentence", "title")
)
"""What is made of papers: titles://TASK/FILE."""


class HoldOut(Section):
    """Training pairs that become the validation data."""

    every: Annotated[int, Field(ge=2)]
    """Each pair whose number is a multiple of this is held out: 100 holds out 1%."""


class HoldOutPart(NamedTuple):
    """Which training pairs a split takes, where validation is held out from training."""

    every: int
    held: bool
    """Whether the split takes each pair whose number is a multiple, or (train) all others."""


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

PREPARATIONS: tuple[str, ...] = get_args(PreparationRecipe)

PreparationName = PreparationRecipe | ExtensionName


class PreparationRecipes(Section):
    """Recipes that turn raw text into words."""

    train: PreparationName = "moses_train"
    """Recipe for training and validation text: moses_train also normalizes punctuation; wmt16 is
    Sennrich et al.'s for Romanian, wmt16_plain the same without diacritics; stanford is for the
    text that Luong et al. tokenized; lowercase leaves hyphens within words and lowers all letters,
    as fairseq's script does to talks; none takes the words of text that comes tokenized."""
    test: PreparationName = "moses_test"
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

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        bounds = [bound for bound in (self.maximum, self.tokens) if bound is not None]
        most = min(bounds, default=self.minimum)
        if self.minimum > most:
            raise PydanticCustomError(
                "bounds", "expected a minimum of at most {most}, or no pair is kept", {"most": most}
            )
        return self


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
    """Decides which pairs are drawn; the number of parts does not."""


class VocabularySettings(Section):
    """What a token is: a piece of a word that BPE leaves, or a whole word."""

    kind: Literal["bpe", "word"] = "bpe"
    """bpe: byte pair encoding (merges, joint, threshold, glossaries apply, or the sizes in place of
    a threshold); word: the most frequent words (the sizes apply)."""
    merges: PositiveInt = 8000
    """BPE merge operations (the paper: 40,000)."""
    joint: bool = True
    """Whether one set of merges is learned on both languages together."""
    threshold: NonNegativeInt = 0
    """Subwords seen less often than this in a language's training text are split; 0 splits none."""
    glossaries: Items[Text] = ()
    """Regular expressions of words that BPE leaves whole."""
    source_size: PositiveInt | None = None
    """Most types of the source vocabulary, special tokens not counted; null keeps all."""
    target_size: PositiveInt | None = None
    """Most types of the target vocabulary; null keeps all."""
    minimum_count: PositiveInt = 1
    """Types seen less often than this in the training text are left out; where there is a
    threshold, subwords are split further first."""

    def bpe_codes_names(self, *languages: str) -> list[str]:
        """Return the names of languages' BPE codes: one if joint, none where words are whole."""
        if self.kind == "word":
            return []
        return ["codes"] if self.joint else [f"codes.{language}" for language in languages]
