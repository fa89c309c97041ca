"""How far the positions of aligned words are from the diagonal of their sentence pair.

Dyer, Chahuneau and Smith (2013), section 2: a word at position j of m has its counterpart at
position i of n with a probability that falls as exp(-tension * |j/m - i/n|). The sums over i are
geometric series to both sides of the diagonal.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST_TENSION = 4.0
_LEAST_TENSION, _MOST_TENSION = 0.1, 14.0
_STEPS, _RATE = 8, 20.0


@dataclass(frozen=True)
class Shapes:
    """The lengths of a corpus' sentence pairs, a row for each position of a target word."""

    position: Integers
    """From 1."""
    length: Integers
    """Words of its sentence."""
    others: Integers
    """Words of the source sentence."""
    count: Integers
    """Sentence pairs of these lengths."""

    @classmethod
    def of(cls, source_lengths: Integers, target_lengths: Integers) -> "Shapes":
        """Count the sentence pairs of each two lengths."""
        lengths, count = np.unique(
            np.stack([target_lengths, source_lengths]), axis=1, return_counts=True
        )
        length, others, count = (np.repeat(one, lengths[0]) for one in (*lengths, count))
        starts = np.repeat(np.cumsum(lengths[0]) - lengths[0], lengths[0])
        return cls(np.arange(len(length)) - starts + 1, length, others, count)


def tightened(tension: float, distance: float, shapes: Shapes) -> float:
    """Return the tension under which the mean distance is nearer to an observed one.

    Args:
        tension: the present one.
        distance: mean over the corpus' target words, as the last expectation had it.
        shapes: of the same corpus.
    """
    words = shapes.count.sum()
    for _ in range(_STEPS):
        expected = (shapes.count * _expected_distance(shapes, tension)).sum() / words
        tension += (expected - distance) * _RATE
        tension = min(max(tension, _LEAST_TENSION), _MOST_TENSION)
    return tension


def _expected_distance(shapes: Shapes, tension: float) -> Floats:
    """Return the expected distance of each shape from the diagonal.

    fast_align normalizes by the sum in which both lengths have changed places, and so it is here:
    the tension, and with it the links, would be others.
    """
    normalizer, _ = _series(shapes.position, shapes.others, shapes.length, tension)
    _, distances = _series(shapes.position, shapes.length, shapes.others, tension)
    return distances / normalizer


def _series(
    position: Integers, length: Integers, others: Integers, tension: float
) -> tuple[Floats, Floats]:
    """Return the sums over all counterparts of exp(-tension * d), and of d times that."""
    share, before = position / length, position * others // length
    sums = (
        _falling(abs(before / others - share), 1 / others, before, tension),
        _falling(abs((before + 1) / others - share), 1 / others, others - before, tension),
    )
    return sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]


def _falling(first: Floats, step: Floats, terms: Integers, tension: float) -> tuple[Floats, Floats]:
    """Return the sums of exp(-tension * d) and d times that for d = first, first + step, ...

    Without end where the terms are fewer than none, as they are where the lengths changed places.
    """
    ratio = np.exp(-tension * step)
    last = np.where(terms < 0, 0.0, ratio ** np.maximum(terms, 0))
    plain = (1 - last) / (1 - ratio)
    rising = (ratio - terms * last + (terms - 1) * last * ratio) / (1 - ratio) ** 2
    scale = np.exp(-tension * first)
    return scale * plain, scale * (first * plain + step * rising)
