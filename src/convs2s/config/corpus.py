"""``languages``, ``corpus`` and ``hold_out`` of a task: its files, and what they are used for."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from convs2s.config.fields import Items, Text, matching
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


FilePairs = Annotated[Items[FilePair], Field(min_length=1)]


class Corpus(Section):
    """The files of a task."""

    model_config = ConfigDict(regex_engine="python-re")  # for the pattern's (?!...)

    train: FilePairs
    """Pairs of files, read one after the other."""
    valid: Items[FilePair] = ()
    """The same for validation; left out where hold_out is stated."""
    tests: Annotated[dict[TestSetName, FilePairs], Field(min_length=1)]
    """Test sets: name -> pairs of files."""


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
