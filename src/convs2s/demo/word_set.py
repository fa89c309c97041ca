"""Words that may stand for each other, and how one of them is drawn."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")

RARE_SHARE = 0.1
"""How often a rare word is drawn where a set has common and rare ones."""

SKEW = 1.5
"""How much more often the first words of a set are drawn than the last; at 1 all are alike."""


@dataclass(frozen=True)
class WordSet(Generic[Item]):
    """Common words and rare ones."""

    common: Sequence[Item] = ()
    rare: Sequence[Item] = ()

    def __add__(self, other: "WordSet[Item]") -> "WordSet[Item]":
        """Return the words of both sets."""
        return WordSet([*self.common, *other.common], [*self.rare, *other.rare])

    def draw(self, rng: random.Random) -> Item:
        """Draw a common word, the first ones most often, or now and then a rare one."""
        if self.rare and rng.random() < RARE_SHARE:
            return rng.choice(self.rare)
        return self.common[int(len(self.common) * rng.random() ** SKEW)]
