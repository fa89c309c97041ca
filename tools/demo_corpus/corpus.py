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
from typing import TypeVar
from zlib import crc32

from demo_corpus.grammar import load_grammar
from demo_corpus.notation import Sentence, category_of

AnySentence = TypeVar("AnySentence", bound=Sentence)

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


def draw_splits(
    sizes: Mapping[str, int],
    draw: Callable[[random.Random], AnySentence],
    fits: Callable[[AnySentence, str, int], bool],
) -> dict[str, list[AnySentence]]:
    """Return the sentences of each split; no two of them have the same English text.

    The same on every machine and every Python version: all chance is ``random.Random(SEED)``'s.

    Args:
        sizes: how many sentences each split has.
        draw: draws a sentence.
        fits: whether it may become the one with this number in a split.
    """
    rng = random.Random(SEED)
    seen: set[str] = set()

    def new(split: str, number: int) -> AnySentence:
        while True:
            sentence = draw(rng)
            english = sentence.english()
            if english not in seen and fits(sentence, split, number):
                seen.add(english)
                return sentence

    return {
        split: [new(split, number) for number in range(size)]
        for split, size in sizes.items()
    }


def sentences() -> dict[str, list[Sentence]]:
    """Return the demo corpus: for each split of ``SIZES`` its sentences."""
    return draw_splits(SIZES, load_grammar().draw, belongs)
