"""Plan the batches of an epoch, and read and pad their pairs.

Paper, section 4.2: the pairs of a batch have similar lengths, and each epoch shuffles the batches.
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
"""Row numbers of a store in some order, of type int32 if they fit, and int64 otherwise."""

SORT_CHUNK = 1 << 20
"""Number of rows that are sorted at a time.

It limits the memory of temporary arrays and does not change the result.
"""

INT32_ROWS = 1 << 31
"""Maximum number of rows whose indices fit in int32."""


@dataclass(frozen=True)
class Batch:
    """Padded index arrays of B pairs."""

    source: Indices  # (B, m), each row ends in </s> and is padded on the right
    previous: Indices  # (B, n), the decoder's input: </s>, then the target without its last token
    target: Indices  # (B, n), each row ends in </s> and is padded on the right


class EpochPlan(Sequence[Indices]):
    """The batches of an epoch in their order.

    ``plan[i]`` are the row numbers of batch i, and ``plan[i:]`` is the plan of the batches from i
    on. A plan holds one number for each pair and two for each batch, so that it needs little memory
    even for the largest store.
    """

    def __init__(self, order: Order, starts: Indices, ends: Indices) -> None:
        """Plan the batches ``order[starts[i] : ends[i]]``."""
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
    """Plan one epoch: sort the pairs by length, cut them into batches, shuffle the batches.

    If ``limits.lengths`` asks for batches of mixed lengths, the pairs are not sorted. Pairs of
    equal lengths are in random order before they are cut, so that the batches differ between
    epochs.

    The plan depends only on the lengths (N,), each at least 1, the limits, and the state of
    ``generator``, which the caller creates for each epoch.
    """
    count = len(source_lengths)
    row_type = np.int32 if count <= INT32_ROWS else np.int64
    order: Order = np.arange(count, dtype=row_type)
    generator.shuffle(order)
    # The sorts are stable, so the rows are then ordered by source length, rows with the same source
    # length by target length, and rows with the same two lengths stay shuffled. If the target
    # length came first, all targets of a batch would end at the same position, and the model would
    # learn from that: perplexity was 1% higher, over three seeds
    # (docs/notes/2026-11-21-multi30k.md).
    if limits.lengths is None:
        order = sort_by_length(order, target_lengths)
        order = sort_by_length(order, source_lengths)
    # (N,), the length of the longer side of each pair, in this order
    longest = in_order(np.maximum(source_lengths, target_lengths), order)
    starts = cut_starts(longest, limits.sentences, limits.tokens)
    ends = np.append(starts[1:], count)
    shuffled = generator.permutation(len(starts))
    starts = starts[shuffled]
    ends = ends[shuffled]
    if limits.split == "separate":
        # Each micro-batch becomes a batch of its own, so each batch is cut again. A micro-batch
        # ends where the next one of the same batch starts, and the last one where the batch ends.
        micro_starts: list[int] = []
        micro_ends: list[int] = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            cuts = start + cut_starts(
                longest[start:end], None, limits.micro_batch_tokens
            )
            micro_starts += cuts.tolist()
            micro_ends += cuts[1:].tolist()
            micro_ends.append(end)
        starts = np.array(micro_starts, np.int64)
        ends = np.array(micro_ends, np.int64)
    return EpochPlan(order, starts, ends)


def sort_by_length(order: Order, lengths: "Lengths") -> Order:
    """Return the rows of ``order`` sorted by ascending length.

    The sort is stable: rows of equal length keep their order. ``order`` and ``lengths`` are (N,),
    and ``lengths[r]`` is the length of the store's row r.

    This is a counting sort. Besides the result it needs memory for one chunk and for one number per
    length. numpy's sorts return 8 bytes per row and need as many again while they run.
    """
    # L, the number of possible lengths 0 .. maximum.
    sizes = int(lengths.max(initial=0)) + 1
    counts = np.zeros(sizes, np.int64)  # (L,), number of rows of each length
    for start in range(0, len(lengths), SORT_CHUNK):
        counts += np.bincount(lengths[start : start + SORT_CHUNK], minlength=sizes)
    # (L,), index in result of the next row of each length.
    next_index = np.cumsum(counts) - counts
    result = np.empty_like(order)
    for start in range(0, len(order), SORT_CHUNK):
        rows = order[start : start + SORT_CHUNK]  # (C,)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        chunk_lengths = lengths[rows]  # (C,), ascending
        chunk_counts = np.bincount(chunk_lengths, minlength=sizes)  # (L,)
        # (L,), index in rows of each length's first.
        first = np.cumsum(chunk_counts) - chunk_counts
        shift = next_index - first  # (L,), from an index in rows to the index in result
        result[np.arange(len(rows)) + shift[chunk_lengths]] = rows
        next_index += chunk_counts
    return result


def in_order(lengths: "Lengths", order: Order) -> "Lengths":
    """Return ``lengths[order]``, computed in chunks.

    For an index array of int32, numpy makes a temporary copy of type int64, which would be large.
    """
    result = np.empty(len(order), lengths.dtype)
    for start in range(0, len(order), SORT_CHUNK):
        result[start : start + SORT_CHUNK] = lengths[order[start : start + SORT_CHUNK]]
    return result


def cut(
    order: Indices, lengths: "Lengths", sentences: int | None, tokens: int | None
) -> list[Indices]:
    """Cut ``order`` into runs of at most ``sentences`` rows and ``tokens`` padded tokens.

    ``lengths[r]`` is the length of row r. See `cut_starts`.
    """
    starts = cut_starts(lengths[order], sentences, tokens)
    return np.split(order, starts[1:]) if len(order) else []


def cut_starts(
    lengths: "Lengths", sentences: int | None, tokens: int | None
) -> Indices:
    """Cut consecutive rows into runs greedily, and return the index at which each run starts.

    Each run takes as many rows as the limits allow: at most ``sentences`` rows, and at most
    ``tokens`` tokens after padding, which is the number of rows times the longest length. A row
    that is longer than ``tokens`` is a run of its own. None sets no limit.

    ``lengths`` is (N,), the length of each row, at least 1.
    """
    most = sentences or max(len(lengths), 1)
    if tokens is None:
        return np.arange(0, len(lengths), most, dtype=np.int64)
    starts = []
    start = 0
    while start < len(lengths):
        starts.append(start)
        # The first row alone limits the run to this number of rows.
        bound = min(most, tokens // int(lengths[start]))
        window = lengths[start : start + max(1, bound)]  # (W,)
        longest = int(window.max())
        if len(window) * longest <= tokens:
            start += len(window)
            continue
        # This many rows fit even if the longest row of the window is among them. Then find how many
        # more rows fit.
        fitting = max(1, tokens // longest)
        # (W - fitting,), rows of longer runs.
        run_sizes = np.arange(fitting + 1, len(window) + 1)
        padded_tokens = np.maximum.accumulate(window)[fitting:] * run_sizes  # ascending
        start += fitting + int(np.searchsorted(padded_tokens, tokens, side="right"))
    return np.array(starts, np.int64)


def collate(
    store: "TokenStore",
    rows: Sequence[int] | Indices,
    sources: Indices | None = None,
    multiple: int = 1,
) -> Batch:
    """Read rows of a store as a batch, padded on the right.

    Args:
        store: The store to read.
        rows: The numbers of the B rows.
        sources: For each row of the whole store, the row whose source is read in its place. None
            reads the row's own source.
        multiple: The width of each side is the length of its longest row, rounded up to a multiple
            of this number.
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
    """Return index lists as one array, padded on the right with ``<pad>``.

    The array is (B, W), where W is the length of the longest row rounded up to a multiple of
    ``multiple``.
    """
    longest = max(map(len, rows))
    width = math.ceil(longest / multiple) * multiple
    padded = np.full((len(rows), width), PADDING, np.int64)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded
