"""Notes on the data behind a score: unknown tokens, and lines that were trained on.

The preparation of a task counts both, and writes them beside the token stores (`DataCounts`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, NonNegativeInt, TypeAdapter

from convs2s.errors import failures_of_file

MOST_UNKNOWN = 0.05
"""Share of unknown tokens above which there is a note on a text.

The papers' vocabularies of words leave up to 5 unknown tokens in a hundred, BPE a few in a
thousand. A text of another alphabet or language, or one that was prepared differently, has more.
"""


@dataclass(frozen=True)
class TokenCount:
    """The number of tokens of one side of a text, with ``</s>``, and how many are unknown."""

    tokens: NonNegativeInt
    unknown: NonNegativeInt

    def __str__(self) -> str:
        """Return the share of unknown tokens."""
        return f"{self.share:.1%}"

    @property
    def share(self) -> float:
        """The share of unknown tokens, from 0 to 1."""
        return self.unknown / max(1, self.tokens)


SideCounts = Mapping[str, TokenCount]
"""Side (source, target) -> the token count of this side of a text."""


def unknown_shares(counts: SideCounts) -> str:
    """Return the shares of unknown tokens of both sides of a text, in words."""
    source = counts["source"]
    target = counts["target"]
    return f"{source} of the source and {target} of the target tokens are unknown"


def unknown_notes(counts: SideCounts) -> list[str]:
    """Return a note if a side of a text has more than ``MOST_UNKNOWN`` unknown tokens."""
    if all(count.share <= MOST_UNKNOWN for count in counts.values()):
        return []
    return [
        f"{unknown_shares(counts)} (<unk>): does the text have the language and the alphabet that "
        "the vocabulary was made for, and was it prepared in the same way?"
    ]


@dataclass(frozen=True)
class Overlap:
    """How many pairs of a validation or test set have lines that are also in the training text."""

    # Ledger entries contain this class, and they forbid unknown keys.
    __pydantic_config__ = ConfigDict(extra="forbid")

    pairs: NonNegativeInt  # of the set
    both: NonNegativeInt  # those whose source and target are the two sides of one training pair
    source: NonNegativeInt  # those whose source is that of a training pair
    target: NonNegativeInt  # those whose target is that of a training pair

    def note(self) -> str:
        """Return a note for readers of this set's scores; "" if the set shares no line."""
        if not self.source and not self.target:
            return ""
        return (
            f"{self.both:,} of {self.pairs:,} pairs are also in the training text; counting each "
            f"side alone, {self.source:,} sources and {self.target:,} targets are "
            "(clean.remove_overlap removes them from training)"
        )


@dataclass(frozen=True)
class TrainingOverlap:
    """The lines that training text shares with validation and test text."""

    training: NonNegativeInt  # training pairs whose source or target is a line of a set
    sets: Mapping[str, Overlap]  # ``valid`` or a test set -> its overlap


@dataclass(frozen=True)
class DataCounts:
    """The content of ``dataset/counts.json``."""

    stores: Mapping[str, str]  # token store, such as ``dataset/train.arrow`` -> SHA-256
    unknown: Mapping[str, SideCounts]  # train, valid or a test set -> its token counts
    overlap: TrainingOverlap

    def notes(self, split: str) -> list[str]:
        """Return the notes on a split (train, valid or a test set), each in one line.

        The list is empty if there is nothing unusual.
        """
        notes = unknown_notes(self.unknown[split])
        shared = self.overlap.sets.get(split)
        if shared is not None and (note := shared.note()):
            notes.append(note)
        return notes


def read_overlap(path: Path) -> TrainingOverlap:
    """Read what `count_overlap` of `convs2s.data.overlap` wrote.

    Raises:
        UserError: the file is missing, or this version of the package did not write it.
    """
    problem = "not the overlap of a text; delete it and prepare the task again"
    with failures_of_file(str(path), problem):
        return TypeAdapter(TrainingOverlap).validate_json(path.read_bytes())


def read_data_counts(path: Path) -> DataCounts:
    """Read the counts of a task's data.

    Raises:
        UserError: the file is missing, or this version of the package did not write it.
    """
    problem = "not the counts of a dataset; delete it and prepare the task again"
    with failures_of_file(str(path), problem):
        return TypeAdapter(DataCounts).validate_json(path.read_bytes())
