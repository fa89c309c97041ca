"""Batches: which pairs are learned from together, in which order, padded to which shape.

Paper, section 4.2: batches of sentences of similar length; each epoch shuffles the batches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from convs2s.config.model import BatchLimits
from convs2s.data.vocabulary import END, PADDING

if TYPE_CHECKING:
    from convs2s.data.store import Lengths, TokenStore

Indices = npt.NDArray[np.int64]
Order = npt.NDArray[np.signedinteger[Any]]

SORT_CHUNK = 1 << 20
"""Rows sorted at a time; it bounds the temporary arrays and does not change the result."""

INT32_ROWS = 1 << 31  # rows that 32-bit indices can count


@dataclass(frozen=True)
class Batch:
    """Padded index arrays of B pairs."""

    source: Indices  # (B, m), ends in </s>, padded on the right
    previous: Indices  # (B, n), the decoder's input: </s> and the target without its last token
    target: Indices  # (B, n), ends in </s>, padded on the right


class EpochPlan(Sequence[Indices]):
    """The batches of an epoch: ``plan[i]`` is the rows of its i-th, ``plan[i:]`` what is left.

    It holds one number a pair and two a batch, so that it stays small beside the largest store.
    """

    def __init__(self, order: Order, starts: Indices, ends: Indices) -> None:
        """Batch i is ``order[starts[i] : ends[i]]``."""
        self._order = order
        self._starts = starts
        self._ends = ends

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Indices: ...
    @overload
    def __getitem__(self, index: slice) -> "EpochPlan": ...
    def __getitem__(self, index: int | slice) -> "Indices | EpochPlan":
        if isinstance(index, slice):
            return EpochPlan(self._order, self._starts[index], self._ends[index])
        rows = self._order[self._starts[index] : self._ends[index]]
        return rows.astype(np.int64)


def plan_batches(
    source_lengths: "Lengths",
    target_lengths: "Lengths",
    limits: BatchLimits,
    generator: np.random.Generator,
) -> EpochPlan:
    """Plan one epoch: sort by length, cut into batches, shuffle the batches.

    Batches of mixed lengths are cut without the sort.

    Pairs of equal lengths come in random order before the cut, so that batches differ between
    epochs. The plan is a function of the lengths (N,), each at least 1, the limits and the
    state of the epoch's own generator.
    """
    count = len(source_lengths)
    kind = np.int32 if count <= INT32_ROWS else np.int64
    order: Order = np.arange(count, dtype=kind)
    generator.shuffle(order)
    # The sorts are stable, so rows come by source length, then by target length, then as shuffled.
    # By the target first, a batch's targets would all end at one place, and an update learns that
    # as well: perplexity was 1% higher, over three seeds (docs/notes/2026-11-21-multi30k.md).
    if limits.lengths is None:
        order = sort_by_length(order, target_lengths)
        order = sort_by_length(order, source_lengths)
    longest = in_order(np.maximum(source_lengths, target_lengths), order)
    starts = cut_starts(longest, limits.sentences, limits.tokens)
    ends = np.append(starts[1:], count)
    shuffled = generator.permutation(len(starts))
    starts = starts[shuffled]
    ends = ends[shuffled]
    if limits.split == "separate":
        part_starts: list[int] = []  # of micro-batches
        part_ends: list[int] = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            inner = start + cut_starts(longest[start:end], None, limits.micro_batch_tokens)
            part_starts += inner.tolist()
            part_ends += inner[1:].tolist()
            part_ends.append(end)
        starts = np.array(part_starts, np.int64)
        ends = np.array(part_ends, np.int64)
    return EpochPlan(order, starts, ends)


def sort_by_length(order: Order, lengths: "Lengths") -> Order:
    """Return the rows of ``order`` by growing length; rows of equal length keep their order.

    A counting sort: apart from the result its memory is that of one chunk and one number for each
    length. numpy's own sorts return 8 bytes a row and need as much again while they work.
    ``order`` and ``lengths`` are (N,), the lengths in the order of the store.
    """
    sizes = int(lengths.max(initial=0)) + 1  # L, lengths that there may be
    counts = np.zeros(sizes, np.int64)  # (L,): rows of each length
    for start in range(0, len(lengths), SORT_CHUNK):
        counts += np.bincount(lengths[start : start + SORT_CHUNK], minlength=sizes)
    place = np.cumsum(counts) - counts  # (L,): where the next row of each length goes
    result = np.empty_like(order)
    for start in range(0, len(order), SORT_CHUNK):
        rows = order[start : start + SORT_CHUNK]  # (C,)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        keys = lengths[rows]  # (C,), ascending
        counts = np.bincount(keys, minlength=sizes)  # (L,)
        first = np.cumsum(counts) - counts  # (L,): where those of each length start in the chunk
        shift = place - first  # (L,)
        result[np.arange(len(rows)) + shift[keys]] = rows
        place += counts
    return result


def in_order(lengths: "Lengths", order: Order) -> "Lengths":
    """Return ``lengths[order]``, by chunks: numpy first copies 4-byte indices to 8-byte ones."""
    result = np.empty(len(order), lengths.dtype)
    for start in range(0, len(order), SORT_CHUNK):
        result[start : start + SORT_CHUNK] = lengths[order[start : start + SORT_CHUNK]]
    return result


def cut(
    order: Indices, lengths: "Lengths", sentences: int | None, tokens: int | None
) -> list[Indices]:
    """Cut ``order`` into runs of at most ``sentences`` rows and ``tokens`` padded tokens.

    A row longer than ``tokens`` makes a run of its own.
    """
    starts = cut_starts(lengths[order], sentences, tokens)
    return np.split(order, starts[1:]) if len(order) else []


def cut_starts(lengths: "Lengths", sentences: int | None, tokens: int | None) -> Indices:
    """Return where each run of a greedy cut starts: every run takes all rows that it can hold.

    ``lengths`` is (N,), each at least 1. A run has so many rows and so many padded tokens at most;
    one row may have more tokens. None sets no bound.
    """
    most = sentences or max(len(lengths), 1)
    if tokens is None:
        return np.arange(0, len(lengths), most, dtype=np.int64)
    starts = []
    start = 0
    while start < len(lengths):
        starts.append(start)
        # The first row's length already says that no run from here can be longer than this.
        bound = min(most, tokens // int(lengths[start]))
        window = lengths[start : start + max(1, bound)]  # (W,)
        longest = int(window.max())
        if len(window) * longest <= tokens:
            start += len(window)
            continue
        fit = max(1, tokens // longest)  # so many fit whichever they are
        rows = np.arange(fit + 1, len(window) + 1)  # (W - fit,)
        padded = np.maximum.accumulate(window)[fit:] * rows  # tokens of a run of so many rows
        start += fit + int(np.searchsorted(padded, tokens, side="right"))
    return np.array(starts, np.int64)


def collate(
    store: "TokenStore",
    rows: Sequence[int] | Indices,
    sources: Indices | None = None,
    multiple: int = 1,
) -> Batch:
    """Read rows of the store and pad them on the right to the longest, or to the next ``multiple``.

    ``sources`` says for each row of the store whose source is read in its place; None: its own.
    """
    source_rows = rows if sources is None else sources[rows]
    source = pad([store[int(row)][0] for row in source_rows], multiple)
    target = pad([store[int(row)][1] for row in rows], multiple)
    previous = np.full_like(target, PADDING)
    previous[:, 0] = END
    previous[:, 1:] = np.where(target[:, 1:] == PADDING, PADDING, target[:, :-1])
    return Batch(source, previous, target)


def pad(
    rows: Sequence[Sequence[int] | npt.NDArray[np.int32]], multiple: int = 1
) -> npt.NDArray[np.int64]:
    """Return the rows as one array, padded on the right to the longest, or the next multiple."""
    longest = max(map(len, rows))
    width = math.ceil(longest / multiple) * multiple
    padded = np.full((len(rows), width), PADDING, np.int64)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded
