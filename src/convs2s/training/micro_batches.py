"""The micro-batches of a batch: what a device takes at a time, and which worker takes it."""

from dataclasses import dataclass

import numpy as np

from convs2s.data.batches import Indices, cut
from convs2s.data.store import TokenStore


@dataclass(frozen=True)
class MicroBatch:
    """Some rows of a batch.

    Attributes:
        rows: their numbers in the store.
        place: where it is in the batch: its number, then which half of it, and so on. The
            seed of its dropout follows from it.
        size: padded tokens.
    """

    rows: Indices
    place: tuple[int, ...]
    size: int

    def halves(self) -> list["MicroBatch"]:
        """Return two micro-batches for this one, of as many rows each."""
        middle = (len(self.rows) + 1) // 2
        longest = self.size // len(self.rows)
        return [
            MicroBatch(rows, (*self.place, half), len(rows) * longest)
            for half, rows in enumerate((self.rows[:middle], self.rows[middle:]), start=1)
        ]


def split_batch(
    store: TokenStore, rows: Indices, micro_batch_tokens: int | None, workers: int = 1
) -> list[MicroBatch]:
    """Split a batch into what is processed at a time, worker by worker in turn.

    Micro-batch i is worker i % workers'. The largest ones are halved until every worker has as
    many, or until all of them are single pairs.
    """
    longest = np.array([max(map(len, store[int(row)])) for row in rows], np.int32)
    runs = cut(np.arange(len(rows)), longest, None, micro_batch_tokens)
    sizes = [len(run) * int(longest[run].max()) for run in runs]
    while len(runs) % workers and len(runs) < len(rows):
        largest = max(
            (index for index, run in enumerate(runs) if len(run) > 1), key=lambda i: sizes[i]
        )
        middle = (len(runs[largest]) + 1) // 2
        both = [runs[largest][:middle], runs[largest][middle:]]
        runs[largest : largest + 1] = both
        sizes[largest : largest + 1] = [len(run) * int(longest[run].max()) for run in both]
    return [
        MicroBatch(rows[run], (index,), size)
        for index, (run, size) in enumerate(zip(runs, sizes, strict=True))
    ]
