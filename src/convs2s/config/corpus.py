"""``languages``, ``corpus``, ``titles`` and ``hold_out`` of a task: its files and their use."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from convs2s.config.fields import Items, SomeDistinctItems, Text, matching
from convs2s.config.section import Section

Language = Annotated[
    str,
    matching(
        "^[a-z]{2,3}(_[a-z]+)?$",
        "expected a language code of two or three small letters, in quotes where YAML reads it as "
        'a truth value ("no")',
    ),
]

# The names of the other two splits are taken: files are named by them.
TestSetName = Annotated[
    str,
    matching(
        "^(?!train$|valid$)[a-z][a-z0-9_]*$",
        "expected a name of small letters, digits and underscores other than train and valid",
    ),
]


class Languages(Section):
    """Codes of the two languages of a task."""

    source: Language
    """Language that is translated from."""
    target: Language
    """Language that is translated to."""


class FilePair(Section):
    """Two files, line N of one the translation of line N of the other."""

    source: Text
    """File of the source side."""
    target: Text
    """File of the target side."""


class ScoredFilePair(FilePair):
    """Two files of a test set, and what else is right."""

    references: Items[Text] = ()
    """Further references: files whose line N is another translation or summary of line N of the
    source; an empty line where one has fewer. The target is the first reference."""


FilePairs = Annotated[Items[FilePair], Field(min_length=1)]
ScoredFilePairs = Annotated[Items[ScoredFilePair], Field(min_length=1)]


class Corpus(Section):
    """The files of a task."""

    model_config = ConfigDict(regex_engine="python-re")  # for the pattern's (?!...)

    train: FilePairs
    """Pairs of files, read one after the other."""
    valid: Items[FilePair] = ()
    """The same for validation; left out where hold_out is stated."""
    tests: Annotated[dict[TestSetName, ScoredFilePairs], Field(min_length=1)]
    """Test sets: name -> pairs of files."""
    obtain: Text | None = None
    """How to come by the files that nobody may download: what the message says that names those
    which are missing; null: it asks for them."""


class Titles(Section):
    """Papers, from whose abstracts and titles the workflow makes text."""

    files: SomeDistinctItems[Text]
    """Tab-separated tables with the columns arxiv_id, title and abstract, fields in quotes where
    they need them: paths or URLs, compressed or not. Of papers with the same id the first counts.
    The text is titles://TASK/SPLIT.SIDE: train, valid or test; sentence (the abstract's first) or
    title."""
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


@dataclass(frozen=True)
class HoldOutPart:
    """Which training pairs a split takes, where validation is held out from training.

    Attributes:
        every: the period.
        held: whether the split takes every such pair (valid) or all others (train).
    """

    every: int
    held: bool
