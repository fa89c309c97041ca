"""What updates learn from, read and made ready while the device is busy with those before.

Nothing here is drawn at random: what is read follows from the rows alone, so that a training that
is resumed reads what it would have read.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from convs2s.config.model import BatchLimits, Recipe
from convs2s.data.batches import Batch, Indices, collate, cut, cut_starts
from convs2s.data.shortlist import Shortlist, Types, places_of
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.training.workers import Workers

AHEAD = 2  # Updates that are read before their turn

COMPILED_LENGTHS = 8
"""What is compiled for a GPU reads sentences padded to a multiple of so many tokens: a kernel that
serves such lengths reads whole vectors, and there are fewer of them. It costs a seventh of the
arithmetic at 25 tokens, which only pays where the kernels are worth it."""

VALIDATION_TOKENS = 4000
"""Padded tokens of a validation batch; it bounds memory and changes no result without shortlist."""

_Asked = TypeVar("_Asked")
_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True)
class MicroBatch:
    """Some rows of a batch."""

    rows: Indices  # their numbers in the store
    # where it is in the batch: its number, then which half of it, and so on. The seed of its
    # dropout follows from it
    place: tuple[int, ...]
    size: int  # padded tokens

    def halves(self) -> list["MicroBatch"]:
        """Return two micro-batches for this one, of as many rows each."""
        longest = self.size // len(self.rows)
        return [
            MicroBatch(rows, (*self.place, half), len(rows) * longest)
            for half, rows in enumerate(np.array_split(self.rows, 2), start=1)
        ]


def split_batch(
    store: TokenStore, rows: Indices, micro_batch_tokens: int | None, workers: int
) -> list[MicroBatch]:
    """Split a batch into what a device takes at a time, worker by worker in turn.

    Micro-batch i is worker i % workers'. For several workers they are as few as every worker has
    the same number of, and cut where the slowest has the least to do, padding included. Where that
    leaves fewer, or too large ones, the largest are halved, down to single pairs.
    """
    pairs = [store[int(row)] for row in rows]
    lengths = np.array([(len(source), len(target)) for source, target in pairs], np.int32)  # (B, 2)
    longest = lengths.max(1)  # (B,)
    runs = cut(np.arange(len(rows)), longest, None, micro_batch_tokens)
    if workers > 1:
        shares = -(-len(runs) // workers) * workers
        runs = _even_runs(lengths.sum(1), shares)

    def padded_size(run: Indices) -> int:
        return len(run) * int(longest[run].max())

    most = micro_batch_tokens or math.inf
    while len(runs) < len(rows):
        divisible = [number for number, run in enumerate(runs) if len(run) > 1]
        largest = max(divisible, key=lambda number: padded_size(runs[number]))
        if len(runs) % workers == 0 and padded_size(runs[largest]) <= most:
            break
        runs[largest : largest + 1] = np.array_split(runs[largest], 2)
    return [MicroBatch(rows[run], (number,), padded_size(run)) for number, run in enumerate(runs)]


def _even_runs(tokens: Indices, most: int) -> list[Indices]:
    """Cut pairs of ``tokens``, (B,), into at most ``most`` runs, the largest as small as can be.

    Padding counts: a run is as large as its longest pair times its pairs.
    """
    longest = int(tokens.max())
    limits = range(longest, len(tokens) * longest + 1)

    def suffices(limit: int) -> bool:
        return len(cut_starts(tokens, None, limit)) <= most

    smallest = bisect_left(limits, True, key=suffices)
    return cut(np.arange(len(tokens)), tokens, None, limits[smallest])


@dataclass(frozen=True)
class LossInputs:
    """A batch of B pairs as the loss reads it."""

    source: Tensor  # (B, m), padded on the right
    previous: Tensor  # (B, n), the decoder's input
    places: Tensor  # (N,), where in the flattened (B * n) the target is not padding
    target: Tensor  # (N,), what stands there
    lengths: Tensor  # (B,), tokens of each source, which stay on the CPU
    # (S,), those that the softmax is over, by which ``target`` counts; None: all
    types: Tensor | None

    def to(self, device: str) -> "LossInputs":
        """Return them on a device, which is not waited for where they are in pinned memory."""
        moved = {}
        for name, tensor in vars(self).items():
            if tensor is not None and name != "lengths":
                moved[name] = tensor.to(device, non_blocking=True)
        return replace(self, **moved)


@dataclass(frozen=True)
class LoadedUpdate:
    """What a worker needs for its share of an update."""

    store: TokenStore  # where the pairs are from
    rows: Indices  # the pairs of the whole update
    tokens: int  # target tokens of the whole update
    types: Types | None  # those of the whole update, where the softmax is over a shortlist
    # this worker's, each with what the loss reads of it
    micro_batches: list[tuple[MicroBatch, LossInputs]]


@dataclass(frozen=True)
class Loader:
    """Reads what the loss needs."""

    limits: BatchLimits  # of a batch
    shortlist: Shortlist | None  # how the model selects its vocabulary, if it does
    workers: Workers  # among which a batch is shared out
    device: str  # what the loss is computed on
    multiple: int  # of tokens, to which sentences are padded

    def load(self, store: TokenStore, rows: Indices) -> LoadedUpdate:
        """Read what an update from the pairs ``rows`` needs; any thread may."""
        pairs = [store[int(row)] for row in rows]
        sources, targets = zip(*pairs, strict=True)
        workers = self.workers
        micro_batches = split_batch(store, rows, self.limits.micro_batch_tokens, workers.count)
        # One shortlist for the whole update, so that its micro-batches change nothing.
        types = None
        if self.shortlist is not None:
            types = self.shortlist.types(np.concatenate(sources), np.concatenate(targets))
        own = self.read(store, micro_batches[workers.rank :: workers.count], types)
        tokens = sum(len(target) for target in targets)
        return LoadedUpdate(store, rows, tokens, types, own)

    def read(
        self, store: TokenStore, micro_batches: Iterable[MicroBatch], types: Types | None
    ) -> list[tuple[MicroBatch, LossInputs]]:
        """Return micro-batches, each with what the loss reads of it; ``types`` as of ``inputs``."""
        loaded = []
        for micro_batch in micro_batches:
            batch = collate(store, micro_batch.rows, multiple=self.multiple)
            loaded.append((micro_batch, self.inputs(batch, types)))
        return loaded

    def inputs(self, batch: Batch, types: Types | None) -> LossInputs:
        """Return what the loss reads of a batch, where its softmax is over ``types``, or over all.

        Any other target is ``<unk>``.
        """
        tokens = batch.target if types is None else places_of(types, batch.target)
        # Searched here, where no device has to be waited for.
        real = np.flatnonzero(tokens != PADDING)
        return LossInputs(
            source=self._tensor(batch.source),
            previous=self._tensor(batch.previous),
            places=self._tensor(real),
            target=self._tensor(tokens.reshape(-1)[real]),
            lengths=torch.from_numpy((batch.source != PADDING).sum(1)),
            types=None if types is None else self._tensor(types),
        )

    def _tensor(self, array: Indices) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor.pin_memory() if torch.device(self.device).type == "cuda" else tensor


def ahead(load: Callable[[_Asked], _Loaded], items: Iterable[_Asked]) -> Generator[_Loaded]:
    """Load items in a thread before their turn; it ends with this generator, which is to be closed.

    Yield what was loaded, in the items' order; a failure to load one is raised in its turn.
    """
    # Each thread begins with the first GPU, and would start CUDA there; -1 leaves it alone.
    gpu = torch.cuda.current_device() if torch.cuda.is_initialized() else -1
    pool = ThreadPoolExecutor(1, "loading", torch.cuda.set_device, (gpu,))
    rest = iter(items)
    try:
        started = deque(pool.submit(load, item) for item in islice(rest, AHEAD))
        while started:
            following = started.popleft()
            started.extend(pool.submit(load, item) for item in islice(rest, 1))
            yield following.result()
    finally:
        pool.shutdown(cancel_futures=True)


def validation_batches(
    store: TokenStore, recipe: Recipe, shortlist: Shortlist | None, sources: Indices | None = None
) -> list[Indices]:
    """Return the rows of each validation batch, with ``sources`` as of ``collate``.

    With a shortlist, which widens with the batch, an update's limit of sentences holds as well.
    """
    read = store.lengths("source")
    source_lengths = read if sources is None else read[sources]
    longest = np.maximum(source_lengths, store.lengths("target"))
    sentences = None if shortlist is None else recipe.batch.sentences
    order = np.argsort(longest, kind="stable")
    return cut(order, longest, sentences, VALIDATION_TOKENS)


def permuted_sources(store: TokenStore) -> Indices | None:
    """Return for each pair another one whose source takes the place of its own; None for one pair.

    What such pairs cost says whether a network reads its source. Each pair gets the source of the
    next longer one, as what a source's length alone gives away shall not count as reading it. The
    same store always has the same permutation.
    """
    lengths = store.lengths("source")
    if len(lengths) < 2:
        return None
    order = np.argsort(lengths, kind="stable")
    sources = np.empty_like(order)
    sources[order] = np.roll(order, -1)
    return sources
