"""Split batches into micro-batches, and load updates while the device computes earlier ones.

Nothing here is random. The inputs of an update depend only on its rows, so a resumed training loads
the same inputs as a training that was never interrupted.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from convs2s.config.model import Recipe
from convs2s.data.batches import Indices, Rows, cut, cut_starts
from convs2s.data.shortlist import Shortlist, Types
from convs2s.data.store import TokenStore

AHEAD = 2  # number of updates that are loaded before their turn

GPU_LENGTHS = 8
"""For a network that is compiled or recorded for a GPU, sentences are padded to a multiple of this.

Compiled kernels for such lengths read whole vectors, and fewer kernels and recordings are needed.
For sentences of about 25 tokens, the padding costs an eighth of the arithmetic. With a multiple of
16 it would cost a quarter.
"""

VALIDATION_TOKENS = 4000
"""Maximum number of padded tokens in a validation batch.

This number bounds the memory that validation needs. Without a shortlist, it does not change the
validation loss. A shortlist is made for each batch, so with a shortlist the loss depends on how the
pairs are batched.
"""

_Item = TypeVar("_Item")
_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True)
class MicroBatch:
    """A part of a batch that a device computes at once."""

    rows: Rows  # row numbers of its pairs in the store
    # Identifies the micro-batch within its batch: its number, from 0, then 1 or 2 for each time
    # that it was halved. (3, 1, 2) is the second half of the first half of micro-batch 3. The seed
    # of the dropout masks is derived from it.
    key: tuple[int, ...]
    size: int  # padded tokens: number of rows times the length of the longest pair

    def halves(self) -> list["MicroBatch"]:
        """Return the first and the second half of the rows as two micro-batches.

        Each half keeps the length of the longest pair as its padded length, so ``size`` is an upper
        bound for the half without that pair. If the number of rows is odd, the first half has one
        row more.
        """
        longest = self.size // len(self.rows)
        halves = []
        for number, rows in enumerate(np.array_split(self.rows, 2), start=1):
            halves.append(MicroBatch(rows, (*self.key, number), len(rows) * longest))
        return halves


def split_batch(
    rows: Rows,
    lengths: Indices,
    micro_batch_tokens: int | None,
    workers: int,
) -> list[MicroBatch]:
    """Split a batch into micro-batches, and deal them out to the workers in turn.

    ``lengths`` (B, 2) has the number of source and of target tokens of each of the B pairs. Each
    micro-batch is a run of consecutive ``rows``. Micro-batch i belongs to worker i % workers.

    1. Cut the batch into runs of at most ``micro_batch_tokens`` padded tokens; None sets no limit.
    2. For several workers, round the number of runs up to a multiple of ``workers``, and cut the
       batch again into at most this many runs, so that the most expensive run is as cheap as
       possible: all workers wait for the slowest one.
    3. Halve the largest run until every worker has the same number of runs and no run exceeds the
       limit. A run of one pair is never split. If all runs are single pairs, some workers may get
       one run fewer than the others, or none.
    """
    longest = lengths.max(1)  # (B,), the longer side of each pair
    # A run is an array of indices into ``rows``.
    runs = cut(np.arange(len(rows)), longest, None, micro_batch_tokens)
    if workers > 1:
        # The cost of a pair is the number of its source and target tokens together.
        runs_per_worker = math.ceil(len(runs) / workers)
        runs = _even_runs(lengths.sum(1), runs_per_worker * workers)

    def padded_size(run: Indices) -> int:
        return len(run) * int(longest[run].max())

    limit = micro_batch_tokens or math.inf
    while len(runs) < len(rows):
        divisible = [number for number, run in enumerate(runs) if len(run) > 1]
        largest = max(divisible, key=lambda number: padded_size(runs[number]))
        if len(runs) % workers == 0 and padded_size(runs[largest]) <= limit:
            break
        runs[largest : largest + 1] = np.array_split(runs[largest], 2)
    return [
        MicroBatch(rows[run], (number,), padded_size(run))
        for number, run in enumerate(runs)
    ]


def _even_runs(tokens: Indices, maximum_runs: int) -> list[Indices]:
    """Cut a batch into at most ``maximum_runs`` runs, so that the largest is as small as possible.

    ``tokens`` has the number of tokens of each pair, (B,). The size of a run includes padding: the
    number of its pairs times the tokens of its longest pair. Each run is an array of indices into
    ``tokens``.
    """
    longest = int(tokens.max())
    # Possible sizes of the largest run: from that of the longest pair alone to that of one run with
    # all pairs.
    limits = range(longest, len(tokens) * longest + 1)

    def suffices(limit: int) -> bool:
        return len(cut_starts(tokens, None, limit)) <= maximum_runs

    # A larger limit never needs more runs, so ``suffices`` is False up to some limit and True from
    # there on. False sorts before True: bisect_left finds the first limit that suffices.
    smallest = bisect_left(limits, True, key=suffices)
    return cut(np.arange(len(tokens)), tokens, None, limits[smallest])


@dataclass(frozen=True)
class LossInputs:
    """The tensors from which the loss of B pairs is computed."""

    source: Tensor  # (B, m), padded on the right
    previous: Tensor  # (B, n), the decoder's input
    # (N,), the indices into the flattened target (B * n) that are not padding. None: all B * n
    # indices; the loss then ignores padding.
    positions: Tensor | None
    target: Tensor  # (N,), the target tokens at these positions
    lengths: Tensor  # (B,), tokens of each source; stays on the CPU
    # (S,), the vocabulary types that the softmax is over; ``target`` then has indices into
    # ``types``. None: the softmax is over the whole vocabulary.
    types: Tensor | None

    def to(self, device: str) -> "LossInputs":
        """Return a copy on a device, with ``lengths`` left on the CPU.

        If the tensors are in pinned memory, this does not wait for the device.
        """
        moved = {}
        for name, tensor in vars(self).items():
            if tensor is not None and name != "lengths":
                moved[name] = tensor.to(device, non_blocking=True)
        return replace(self, **moved)

    def read(self, other: "LossInputs") -> None:
        """Copy other inputs of the same shapes into these tensors, except ``lengths``.

        ``positions`` and ``types`` are None in both.
        """
        self.source.copy_(other.source, non_blocking=True)
        self.previous.copy_(other.previous, non_blocking=True)
        self.target.copy_(other.target, non_blocking=True)


@dataclass(frozen=True)
class LoadedUpdate:
    """What one worker needs for its share of an update."""

    store: TokenStore  # contains the pairs
    rows: Rows  # rows of the whole update, over all workers
    limit: int | None  # the most padded tokens of a micro-batch
    tokens: int  # target tokens of the whole update, over all workers
    types: Types | None  # the shortlist of the whole update; None without a shortlist
    # The micro-batches of this worker, each with the inputs of its loss.
    micro_batches: list[tuple[MicroBatch, LossInputs]]


def ahead(
    load: Callable[[_Item], _Loaded], items: Iterable[_Item]
) -> Generator[_Loaded]:
    """Load items in a thread, up to ``AHEAD`` of them before their turn; yield them in order.

    If loading an item fails, the exception is raised when the turn of this item comes. The caller
    must close the generator, which ends the thread (``contextlib.closing``).
    """
    # A new thread uses the first GPU by default, and would start CUDA there. It must use the GPU of
    # this process instead. Without CUDA, set_device(-1) does nothing.
    gpu = torch.cuda.current_device() if torch.cuda.is_initialized() else -1
    pool = ThreadPoolExecutor(1, "loading", torch.cuda.set_device, (gpu,))
    started: deque[Future[_Loaded]] = deque()
    try:
        for item in items:
            started.append(pool.submit(load, item))
            if len(started) > AHEAD:
                yield started.popleft().result()
        while started:
            yield started.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def validation_batches(
    store: TokenStore,
    recipe: Recipe,
    shortlist: Shortlist | None,
    sources: Indices | None = None,
) -> list[Indices]:
    """Return the rows of each validation batch, shortest pairs first.

    ``sources`` replaces the sources of the pairs, as in ``collate``. A batch has at most
    ``VALIDATION_TOKENS`` padded tokens. With a shortlist, it also has at most as many sentences as
    a training batch, because a shortlist grows with its batch.
    """
    own_lengths = store.lengths("source")
    source_lengths = own_lengths if sources is None else own_lengths[sources]
    longest = np.maximum(source_lengths, store.lengths("target"))
    sentences = None if shortlist is None else recipe.batch.sentences
    order = np.argsort(longest, kind="stable")
    return cut(order, longest, sentences, VALIDATION_TOKENS)


def permuted_sources(store: TokenStore) -> Indices | None:
    """Return for each pair the row of another pair, whose source replaces its own source.

    The validation loss with these wrong sources shows whether a network reads its source. Each pair
    gets the source of the pair that follows it in order of source length, and the pair with the
    longest source gets the shortest one. The lengths hardly change this way: a network that uses
    only the length of its source must not appear to read the source. The permutation depends only
    on the store. With fewer than two pairs there is no other source, and the result is None.
    """
    lengths = store.lengths("source")
    if len(lengths) < 2:
        return None
    order = np.argsort(lengths, kind="stable")
    sources = np.empty_like(order)
    sources[order] = np.roll(order, -1)
    return sources
