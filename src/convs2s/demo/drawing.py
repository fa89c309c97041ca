"""Drawing the sentences of splits, no two of which read the same."""

import random
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


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

    def part(self, split: str, size: int) -> list[T]:
        """Return as many further sentences of a split."""
        return [self._new(split, number) for number in range(size)]

    def splits(self, sizes: Mapping[str, int]) -> dict[str, list[T]]:
        """Return the sentences of each split by its name and size."""
        return {split: self.part(split, size) for split, size in sizes.items()}

    def _new(self, split: str, number: int) -> T:
        while True:
            drawn = self._draw(self._rng)
            english = self._english(drawn)
            if english not in self._seen and self._fits(drawn, split, number):
                self._seen.add(english)
                return drawn
