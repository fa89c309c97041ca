"""Sorting an epoch's pairs by length: seconds and little memory for tens of millions of them."""

from typing import Any

import numpy as np
import numpy.typing as npt

Lengths = npt.NDArray[np.integer[Any]]
Order = npt.NDArray[np.signedinteger[Any]]

SORT_CHUNK = 1 << 20
"""Rows handled at a time; it bounds the temporary arrays and does not change the result."""


def sort_by_length(order: Order, lengths: Lengths) -> Order:
    """Return the rows of ``order`` by growing length; rows of equal length keep their order.

    A counting sort: apart from the result its memory is that of one chunk and one number for each
    length. numpy's own sorts return 8 bytes a row and need as much again while they work.

    Args:
        order: (N,), rows.
        lengths: (N,), the length of each row, in the order of the store.
    """
    counts = np.zeros(int(lengths.max(initial=0)) + 1, np.int64)
    for start in range(0, len(lengths), SORT_CHUNK):
        counts += np.bincount(lengths[start : start + SORT_CHUNK], minlength=len(counts))
    place = (np.cumsum(counts) - counts).tolist()  # where the next row of each length goes
    result = np.empty_like(order)
    for start in range(0, len(order), SORT_CHUNK):
        rows = order[start : start + SORT_CHUNK]
        keys = lengths[rows]
        rows = rows[np.argsort(keys, kind="stable")]
        counts = np.bincount(keys)
        ends = np.cumsum(counts)
        for length in np.flatnonzero(counts).tolist():
            run = rows[ends[length] - counts[length] : ends[length]]
            result[place[length] : place[length] + len(run)] = run
            place[length] += len(run)
    return result


def in_order(lengths: Lengths, order: Order) -> Lengths:
    """Return ``lengths[order]``, by chunks: numpy first copies 4-byte indices to 8-byte ones."""
    result = np.empty(len(order), lengths.dtype)
    for start in range(0, len(order), SORT_CHUNK):
        result[start : start + SORT_CHUNK] = lengths[order[start : start + SORT_CHUNK]]
    return result
