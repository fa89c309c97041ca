"""Batches: which pairs are learned from together, in which order, padded to which shape.

Paper, section 4.2: batches of sentences of similar length; each epoch shuffles the batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import END, PADDING

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BatchLimits:
    """How much goes into a batch (one update) and into a part (one forward and backward pass).

    Attributes:
        sentences: the most sentences of a batch, or None.
        words: the most words of a batch (sentences x longest padded side), or None.
        part_words: the most words of a part, or None: a batch over it is split.
    """

    sentences: int | None
    words: int | None
    part_words: int | None


@dataclass(frozen=True)
class Batch:
    """Padded index arrays of B pairs.

    Attributes:
        source: (B, m), ends in ``</s>``, padded on the right.
        previous: (B, n), the decoder's input: ``</s>`` and the target without its last symbol.
        target: (B, n), ends in ``</s>``, padded on the right.
        target_words: the number of target symbols that are not padding.
    """

    source: npt.NDArray[np.int64]
    previous: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    target_words: int


def plan_batches(
    source_lengths: npt.NDArray[np.int32],
    target_lengths: npt.NDArray[np.int32],
    limits: BatchLimits,
    generator: np.random.Generator,
) -> list[Indices]:
    """Plan one epoch: sort by length, cut into batches, shuffle the batches.

    Pairs of equal lengths come in random order before the cut, so that batches differ between
    epochs. The plan is a function of the lengths, the limits and the generator's state alone.

    Returns:
        Row indices of each batch, in the order of the epoch.
    """
    ties = generator.permutation(len(source_lengths))
    order = ties[np.lexsort((source_lengths[ties], target_lengths[ties]))]
    longest = np.maximum(source_lengths, target_lengths)
    batches = cut(order, longest, limits.sentences, limits.words)
    return [batches[index] for index in generator.permutation(len(batches))]


def cut(
    order: Indices, lengths: npt.NDArray[np.int32], sentences: int | None, words: int | None
) -> list[Indices]:
    """Cut ``order`` into runs of at most ``sentences`` rows and ``words`` padded words.

    A row longer than ``words`` makes a run of its own.
    """
    runs, start, longest = [], 0, 0
    for position, length in enumerate(lengths[order].tolist()):
        grown = max(longest, length)
        size = position - start + 1
        full = sentences is not None and size > sentences
        wide = words is not None and size * grown > words
        if position > start and (full or wide):
            runs.append(order[start:position])
            start, grown = position, length
        longest = grown
    if start < len(order):
        runs.append(order[start:])
    return runs


def collate(store: TokenStore, rows: Sequence[int] | Indices) -> Batch:
    """Read rows of the store and pad them on the right to the longest of each side."""
    sources, targets = zip(*(store[int(row)] for row in rows), strict=True)
    source, target = pad(sources), pad(targets)
    previous = np.full_like(target, PADDING)
    previous[:, 0] = END
    previous[:, 1:] = np.where(target[:, 1:] == PADDING, PADDING, target[:, :-1])
    return Batch(source, previous, target, int((target != PADDING).sum()))


def pad(rows: Sequence[Sequence[int] | npt.NDArray[np.int32]]) -> npt.NDArray[np.int64]:
    """Return the rows as one array (rows, longest), padded on the right."""
    padded = np.full((len(rows), max(map(len, rows))), PADDING, np.int64)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded
