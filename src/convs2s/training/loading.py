"""What updates learn from, read and made ready while the device is busy with those before.

Reading takes no part in any chance: what comes out follows from the rows alone, so that a training
which goes on reads what it would have read.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from convs2s.config.model import BatchLimits
from convs2s.data.batches import Batch, Indices, collate
from convs2s.data.shortlist import Shortlist, Types, places_of
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.training.micro_batches import MicroBatch, split_batch
from convs2s.training.workers import Workers

AHEAD = 2
"""Updates that are read before their turn."""

COMPILED_LENGTHS = 8
"""What is compiled for a GPU reads sentences padded to a multiple of so many tokens: a kernel that
serves such lengths reads whole vectors, and there are fewer of them. It costs a seventh of the
arithmetic at 25 tokens, which only pays where the kernels are worth it."""

_Asked = TypeVar("_Asked")
_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True)
class LossInputs:
    """A batch of B pairs as the loss reads it.

    Attributes:
        source: (B, m), padded on the right.
        previous: (B, n), the decoder's input.
        places: (N,), where in the flattened (B * n) the target is not padding.
        target: (N,), what stands there.
        types: (S,), those that the softmax is over, by which ``target`` counts; None: all.
    """

    source: Tensor
    previous: Tensor
    places: Tensor
    target: Tensor
    types: Tensor | None

    def to(self, device: str) -> "LossInputs":
        """Return them on a device, which is not waited for where they are in pinned memory."""
        return LossInputs(
            self.source.to(device, non_blocking=True),
            self.previous.to(device, non_blocking=True),
            self.places.to(device, non_blocking=True),
            self.target.to(device, non_blocking=True),
            None if self.types is None else self.types.to(device, non_blocking=True),
        )


@dataclass(frozen=True)
class LoadedUpdate:
    """What a worker needs for its share of an update.

    Attributes:
        store: where the pairs are from.
        rows: the pairs of the whole update.
        tokens: target tokens of the whole update.
        types: those of the whole update, where the softmax is over a shortlist.
        micro_batches: this worker's.
        inputs: of each of them.
    """

    store: TokenStore
    rows: Indices
    tokens: int
    types: Types | None
    micro_batches: list[MicroBatch]
    inputs: list[LossInputs]


@dataclass(frozen=True)
class Loader:
    """Reads what the loss needs.

    Attributes:
        limits: of a batch.
        shortlist: how the model selects its vocabulary, if it does.
        workers: among which a batch is shared out.
        device: what the loss is computed on.
        multiple: of tokens, to which sentences are padded.
    """

    limits: BatchLimits
    shortlist: Shortlist | None
    workers: Workers
    device: str
    multiple: int = 1

    def load(self, store: TokenStore, rows: Indices) -> LoadedUpdate:
        """Read an update's pairs ``rows``."""
        tokens = sum(len(store[int(row)][1]) for row in rows)
        workers = self.workers
        micro_batches = split_batch(store, rows, self.limits.micro_batch_tokens, workers.count)
        # One shortlist for the whole update, so that its micro-batches change nothing.
        types = None if self.shortlist is None else self.shortlist.of_pairs(store, rows)
        own = micro_batches[workers.rank :: workers.count]
        inputs = [self.inputs(self.batch(store, one.rows), types) for one in own]
        return LoadedUpdate(store, rows, tokens, types, own, inputs)

    def halves(
        self, loaded: LoadedUpdate, micro_batch: MicroBatch
    ) -> list[tuple[MicroBatch, LossInputs]]:
        """Return both halves of one of an update's micro-batches, and what the loss reads."""
        return [
            (half, self.inputs(self.batch(loaded.store, half.rows), loaded.types))
            for half in micro_batch.halves()
        ]

    def batch(self, store: TokenStore, rows: Indices, sources: Indices | None = None) -> Batch:
        """Return padded pairs; ``sources`` as of ``collate``."""
        return collate(store, rows, sources, self.multiple)

    def inputs(self, batch: Batch, types: Types | None) -> LossInputs:
        """Return what the loss reads of a batch, where its softmax is over ``types``, or over all.

        Any other target is ``<unk>``.
        """
        tokens = batch.target if types is None else places_of(types, batch.target)
        # Found here, where no device has to be waited for.
        real = np.flatnonzero(tokens != PADDING)
        return LossInputs(
            self._tensor(batch.source),
            self._tensor(batch.previous),
            self._tensor(real),
            self._tensor(tokens.reshape(-1)[real]),
            None if types is None else self._tensor(types),
        )

    def _tensor(self, array: Indices) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor.pin_memory() if torch.device(self.device).type == "cuda" else tensor


@contextmanager
def ahead(
    load: Callable[[_Asked], _Loaded], items: Iterable[_Asked]
) -> Iterator[Iterator[_Loaded]]:
    """Load items in a thread before their turn; it has ended when the block has.

    Yields:
        what was loaded, in the items' order; a failure to load one is raised in its turn.
    """
    pool = ThreadPoolExecutor(1, "loading", initializer=_compute_where, initargs=_computing())
    try:
        yield _in_order(pool, load, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ThreadPoolExecutor, load: Callable[[_Asked], _Loaded], items: Iterable[_Asked]
) -> Iterator[_Loaded]:
    rest = iter(items)
    started = deque(pool.submit(load, item) for item in islice(rest, AHEAD))
    while started:
        next_one = started.popleft()
        started.extend(pool.submit(load, item) for item in islice(rest, 1))
        yield next_one.result()


def _computing() -> tuple[int | None]:
    """Return the number of the GPU that this thread computes on, if it does on any."""
    return (torch.cuda.current_device() if torch.cuda.is_initialized() else None,)


def _compute_where(gpu: int | None) -> None:
    """Compute on a GPU: each thread begins with the first one, and would start CUDA there."""
    if gpu is not None:
        torch.cuda.set_device(gpu)
