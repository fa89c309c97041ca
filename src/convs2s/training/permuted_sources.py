"""Pairs with sources that are not theirs: what they cost says whether a network reads its own."""

import numpy as np

from convs2s.data.batches import Indices
from convs2s.data.store import TokenStore


def permuted_sources(store: TokenStore) -> Indices | None:
    """Return for each pair another one whose source takes the place of its own; None for one pair.

    Each pair gets the source of the next longer one, as what a source's length alone gives away
    shall not count as reading it. The same store always has the same permutation.
    """
    lengths = store.lengths("source")
    if len(lengths) < 2:
        return None
    order = np.argsort(lengths, kind="stable")
    sources = np.empty_like(order)
    sources[order] = np.roll(order, -1)
    return sources
