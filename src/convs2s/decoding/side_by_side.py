"""Batches side by side, each searched by a thread of its own.

Threads that shared each operation of one batch would wait for each other at each of them, hundreds
of times a step: where a sleeping thread takes 40 microseconds to wake, one thread alone is faster
(docs/benchmarks.md, generation). Batches wait for nothing but Python's lock.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

import torch

from convs2s.models.kernels.measurements import one_thread

Searched = TypeVar("Searched")
Found = TypeVar("Found")

LEAST_SENTENCES = 8
"""Of a batch that is made smaller so that each thread has one."""


def sentences_for_each(count: int, threads: int, most: int) -> int:
    """Return the sentences of a batch, ``most`` of them where there are enough for each thread."""
    return min(most, max(LEAST_SENTENCES, -(-count // threads)))


def side_by_side(
    search: Callable[[Searched, Event], Found], batches: Sequence[Searched], threads: int
) -> list[Found]:
    """Search several batches at a time.

    Args:
        search: takes a batch, and what is set once nobody wants its result any more.
        batches: the last ones, which take longest where batches are sorted by length, come first.
        threads: batches at a time.

    Returns:
        What was found of each batch, in their order.
    """
    stopped = Event()
    with one_thread():  # around the pool as well: each of its threads sets what later ones inherit
        if threads == 1 or len(batches) < 2:
            return [search(batch, stopped) for batch in batches]
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            try:
                return list(pool.map(lambda batch: search(batch, stopped), batches[::-1]))[::-1]
            except BaseException:
                stopped.set()  # or Ctrl-C would wait for the batches that are under way
                raise
