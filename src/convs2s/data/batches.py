"""Plan the batches of an epoch, and read and pad their pairs.

Paper, section 4.2: the pairs of a batch have similar lengths, and each epoch shuffles the batches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from convs2s.config.model import BatchLimits
from convs2s.data.vocabulary import END, PADDING

if TYPE_CHECKING:
    from convs2s.data.store import Lengths, TokenStore

Indices = npt.NDArray[np.int64]

Order = npt.NDArray[np.int32]
"""All row numbers of a store in some order.

int32 takes half the memory of int64. It is wide enough for 2^31 rows, and numpy refuses more.
"""

Rows = npt.NDArray[np.signedinteger[Any]]
"""Row numbers of a store."""

SORT_CHUNK = 1 << 20
"""Number of rows that are sorted at a time.

It limits the memory of temporary arrays and does not change the result.
"""


@dataclass(frozen=True)
class Batch:
    """Padded index arrays of B pairs."""

    # (B, m), each row ends in </s> and is padded on the right
    source: Indices
    # (B, n), the decoder's input: </s>, then the target without its last token
    previous: Indices
    # (B, n), each row ends in </s> and is padded on the right
    target: Indices


def plan_batches(
    source_lengths: "Lengths",
    target_lengths: "Lengths",
    limits: BatchLimits,
    generator: np.random.Generator,
) -> list[Rows]:
    """Plan one epoch: sort the pairs by length, cut them into batches, shuffle the batches.

    If ``limits.lengths`` asks for batches of mixed lengths, the pairs are not sorted. Pairs of
    equal lengths are in random order before they are cut, so that the batches differ between
    epochs.

    The plan depends only on the lengths (N,), each at least 1, the limits, and the state of
    ``generator``, which the caller creates for each epoch.

    Returns:
        The row numbers of each batch. They are views of one array.
    """
    order: Order = np.arange(len(source_lengths), dtype=np.int32)
    generator.shuffle(order)
    # Both sorts are stable. The rows are therefore sorted by source length, then by target length,
    # and rows with the same two lengths stay shuffled. If the target length came first, all targets
    # of a batch would end at the same position, and the model would learn from that: perplexity was
    # 1% higher, over three seeds (docs/notes/2026-11-21-multi30k.md).
    is_sorted = limits.lengths != "mixed"
    if is_sorted:
        order = sort_by_length(order, target_lengths)
        order = sort_by_length(order, source_lengths)
    # (N,), the length of the longer side of each pair
    longest = np.maximum(source_lengths, target_lengths)
    batches = cut(order, longest, limits.sentences, limits.tokens)
    batches = [batches[index] for index in generator.permutation(len(batches))]
    if limits.split == "separate":
        # Each micro-batch becomes a batch of its own.
        micro_batches: list[Rows] = []
        for batch in batches:
            micro_batches += cut(batch, longest, None, limits.micro_batch_tokens)
        return micro_batches
    return batches


def sort_by_length(order: Order, lengths: "Lengths") -> Order:
    """Return the rows of ``order`` sorted by ascending length.

    The sort is stable: rows of equal length keep their order. ``order`` and ``lengths`` are (N,),
    and ``lengths[r]`` is the length of the store's row r.

    This is a counting sort. Besides the result it needs memory for one chunk and for one number per
    length. numpy.argsort would return 8 bytes per row, and need 8 more per row while it runs.
    """
    # L, the number of bins: one for each length 0, 1, ..., maximum.
    bins = int(lengths.max(initial=0)) + 1
    # (L,), number of rows of each length.
    counts = np.zeros(bins, np.int64)
    for start in range(0, len(lengths), SORT_CHUNK):
        counts += np.bincount(lengths[start : start + SORT_CHUNK], minlength=bins)
    # (L,), index in `result` for the next row of each length.
    next_index = np.cumsum(counts) - counts
    result = np.empty_like(order)
    for start in range(0, len(order), SORT_CHUNK):
        rows = order[start : start + SORT_CHUNK]  # (C,)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        chunk_lengths = lengths[rows]  # (C,), ascending
        chunk_counts = np.bincount(chunk_lengths, minlength=bins)  # (L,)
        # (L,), index in `rows` of the first row of each length.
        first = np.cumsum(chunk_counts) - chunk_counts
        # (L,), what is added to an index in `rows` to get the index in `result`.
        shift = next_index - first
        result[np.arange(len(rows)) + shift[chunk_lengths]] = rows
        next_index += chunk_counts
    return result


def cut(
    order: Rows,
    lengths: "Lengths",
    sentences: int | None,
    tokens: int | None,
) -> list[Rows]:
    """Cut ``order`` into runs of at most ``sentences`` rows and ``tokens`` padded tokens.

    `cut_starts` decides where. ``lengths[r]`` is the length of row r.
    """
    if not len(order):
        return []
    # The length of each row of `order`. The rows are looked up in chunks, because numpy makes a
    # temporary copy of type int64 of its index array, which would be large for all rows.
    ordered = np.empty(len(order), lengths.dtype)
    for start in range(0, len(order), SORT_CHUNK):
        ordered[start : start + SORT_CHUNK] = lengths[order[start : start + SORT_CHUNK]]
    # np.split expects the inner boundaries only, so the first start, 0, is left out.
    return np.split(order, cut_starts(ordered, sentences, tokens)[1:])


def cut_starts(
    lengths: "Lengths",
    sentences: int | None,
    tokens: int | None,
) -> Indices:
    """Cut consecutive rows into runs greedily, and return the index at which each run starts.

    Each run takes as many rows as the limits allow: at most ``sentences`` rows, and at most
    ``tokens`` tokens after padding, which is the number of rows times the longest length. A row
    that is longer than ``tokens`` is a run of its own. None sets no limit.

    ``lengths`` is (N,), the length of each row, at least 1.
    """
    # Without a limit, all rows. The step of np.arange must be at least 1, even if there are none.
    most_rows = sentences or max(len(lengths), 1)
    if tokens is None:
        return np.arange(0, len(lengths), most_rows, dtype=np.int64)
    starts = []
    start = 0
    while start < len(lengths):
        starts.append(start)
        # An upper bound on the rows of the run: after padding, each row is at least as long as the
        # first one.
        bound = min(most_rows, tokens // int(lengths[start]))
        window = lengths[start : start + max(1, bound)]  # (W,)
        row_counts = np.arange(1, len(window) + 1)
        # (W,), ascending: the padded tokens of a run of 1, 2, ..., W rows.
        padded_tokens = np.maximum.accumulate(window) * row_counts
        fitting = int(np.searchsorted(padded_tokens, tokens, side="right"))
        # If not even the first row fits, it is a run of its own.
        start += max(1, fitting)
    return np.array(starts, np.int64)


def collate(
    store: "TokenStore",
    rows: Sequence[int] | Rows,
    sources: Indices | None = None,
    multiple: int = 1,
) -> Batch:
    """Read rows of a store as a batch, padded on the right.

    Args:
        store: The store to read.
        rows: The numbers of the B rows.
        sources: (N,) for the N rows of the whole store: the number of the row from which the
            source of each row is taken. None takes each row's own source.
        multiple: The width of each side is the length of its longest row, rounded up to a multiple
            of this number.
    """
    source_rows = rows if sources is None else sources[rows]
    source = pad([store[int(row)][0] for row in source_rows], multiple)
    target = pad([store[int(row)][1] for row in rows], multiple)
    previous = np.full_like(target, PADDING)
    previous[:, 0] = END
    # The target, shifted by one position. Its last token, </s>, is no input of the decoder, so the
    # input is padded where the target is.
    previous[:, 1:] = np.where(target[:, 1:] == PADDING, PADDING, target[:, :-1])
    return Batch(source, previous, target)


def pad(
    rows: Sequence[Sequence[int] | npt.NDArray[np.int32]], multiple: int = 1
) -> Indices:
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
