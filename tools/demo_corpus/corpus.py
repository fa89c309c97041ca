"""The demo corpus: which sentences go to training, validation and test.

A template-slot combination is a triple (template, slot, dictionary word): a noun, verb, adjective
or fixed expression in a certain slot of a certain template. Of the nouns and adjectives, one in
``WITHHELD`` combinations is kept out of training, and a fixed share of the validation and test
sentences is made to hold at least one of those, so that the scores measure composition, not memory.
What is withheld follows from a checksum of the combination, so that an edited template leaves the
others' as they were. Only slots of categories that many templates share take part, so that every
word is still seen in training, in other templates.
"""

import random
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar
from zlib import crc32

from demo_corpus.grammar import load_grammar
from demo_corpus.notation import Sentence, category_of

T = TypeVar("T")

SEED = 2017
SIZES = {"test": 500, "valid": 500, "train": 12_000}
WITHHELD = 12
WITHHELD_CATEGORIES = frozenset(
    {
        "person",
        "adult",
        "relative",
        "thing",
        "item",
        "object",
        "things",
        "animal",
        "food",
        "drink",
        "dish",
        "place",
        "building",
        "room",
        "agent",
        "other",
        "goods",
    }
)
COMPOSED_OF_FIVE = 2
"""Of five validation or test sentences, how many must hold a withheld combination."""


class Drawing(Generic[T]):
    """Draws sentences that are new, each for its place in a split.

    Args:
        seed: of the generator that ``draw`` is handed.
        draw: draws a sentence.
        english: its English text.
        fits: whether it may become the one with this number in a split.
    """

    def __init__(
        self,
        seed: int,
        draw: Callable[[random.Random], T],
        english: Callable[[T], str],
        fits: Callable[[T, str, int], bool],
    ):
        self._rng = random.Random(seed)
        self._draw, self._english, self._fits = draw, english, fits
        self._seen: set[str] = set()

    def splits(self, sizes: Mapping[str, int]) -> dict[str, list[T]]:
        """Return the sentences of each split by its name and size."""
        return {
            split: [self._new(split, number) for number in range(size)]
            for split, size in sizes.items()
        }

    def _new(self, split: str, number: int) -> T:
        while True:
            drawn = self._draw(self._rng)
            english = self._english(drawn)
            if english not in self._seen and self._fits(drawn, split, number):
                self._seen.add(english)
                return drawn


def withheld(combination: tuple[str, str, str]) -> bool:
    """Say whether a template-slot combination is kept out of training."""
    if category_of(combination[1]) not in WITHHELD_CATEGORIES:
        return False
    return crc32("\n".join(combination).encode()) % WITHHELD == 0


def is_composed(sentence: Sentence) -> bool:
    """Say whether a sentence holds a combination that training does not show."""
    return any(withheld(combination) for combination in sentence.combinations())


def belongs(sentence: Sentence, split: str, number: int) -> bool:
    """Say whether a sentence may become the one with this number in a split."""
    if split == "train":
        return not is_composed(sentence)
    return is_composed(sentence) or number % 5 >= COMPOSED_OF_FIVE


def sentences() -> dict[str, list[Sentence]]:
    """Return the sentences of each split; no two of them have the same English text."""
    return Drawing(SEED, load_grammar().draw, Sentence.english, belongs).splits(SIZES)


def generate() -> dict[str, list[tuple[str, str]]]:
    """Return the corpus: for train, valid and test, the pairs (English, French).

    The same on every machine and every Python version: all chance is ``random.Random(SEED)``'s.
    """
    return {
        split: [(sentence.english(), sentence.french()) for sentence in drawn]
        for split, drawn in sentences().items()
    }
