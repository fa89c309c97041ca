"""One update: micro-batches, their summed gradient, clipping, and a step of the optimizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from convs2s.config.recipe import Recipe
from convs2s.data.batches import Batch, Indices, collate, cut
from convs2s.data.shortlist import Shortlist, Types, places_of
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.errors import UserError
from convs2s.models.kernels.cross_entropy import summed_cross_entropy
from convs2s.models.kernels.dropout import hide_masks_from_compiler
from convs2s.models.network import Network, rows_of
from convs2s.training.epoch_progress import log
from convs2s.training.micro_batches import MicroBatch, split_batch
from convs2s.training.optimizer import build_optimizer, set_learning_rate
from convs2s.training.workers import ALONE, Workers

VALIDATION_TOKENS = 4000
"""Padded tokens of a validation batch; it bounds memory and changes no result without shortlist."""


@dataclass(frozen=True)
class UpdateReport:
    """What an update did.

    Attributes:
        loss: negative log-likelihood (smoothed where the recipe says so) summed over the target
            tokens, in nats.
        tokens: target tokens, ``</s>`` counted.
        norm: the gradient's norm before clipping.
    """

    loss: float
    tokens: int
    norm: float


@dataclass(frozen=True)
class StartedUpdate:
    """An update that the device may still be computing: reading it waits.

    Attributes:
        loss: this worker's share of it, float64.
        tokens: target tokens of all workers.
        norm: the gradient's norm before clipping.
    """

    loss: Tensor
    tokens: int
    norm: Tensor


class Updater:
    """Makes updates of one network, and computes its validation loss."""

    def __init__(
        self,
        network: Network,
        recipe: Recipe,
        *,
        seed: int,
        device: str,
        shortlist: Shortlist | None = None,
        workers: Workers = ALONE,
    ) -> None:
        """Build the recipe's optimizer over the network, which is moved to ``device``."""
        self.network, self.recipe = network.to(device), recipe
        self.seed, self.device, self.shortlist = seed, device, shortlist
        self.workers = workers
        self.optimizer = build_optimizer(network, recipe)
        self._features = network.features
        if recipe.compile:
            hide_masks_from_compiler()
            # Every batch has lengths of its own.
            self._features = torch.compile(network.features, dynamic=True)

    def update(
        self, store: TokenStore, rows: Indices, epoch: int, number: int, learning_rate: float
    ) -> UpdateReport:
        """Make one update from the pairs ``rows``, batch ``number`` of the epoch."""
        return self.read([self.start(store, rows, epoch, number, learning_rate)])[0]

    def read(self, started: Sequence[StartedUpdate]) -> list[UpdateReport]:
        """Wait for updates, and say what they did: one transfer for all of them."""
        losses, norms = (
            torch.stack([one.loss for one in started] + [one.norm.double() for one in started])
            .view(2, -1)
            .tolist()
        )
        totals = self.workers.totals(losses)
        return [
            UpdateReport(loss, one.tokens, norm)
            for loss, one, norm in zip(totals, started, norms, strict=True)
        ]

    def start(
        self, store: TokenStore, rows: Indices, epoch: int, number: int, learning_rate: float
    ) -> StartedUpdate:
        """Start an update as of ``update``, without waiting for the device."""
        workers = self.workers
        tokens = sum(len(store[int(row)][1]) for row in rows)
        divisor = tokens if self.recipe.normalize == "tokens" else len(rows)
        micro_batches = split_batch(
            store, rows, self.recipe.batch.micro_batch_tokens, workers.count
        )
        self.network.train()
        # One shortlist for the whole update, so that its micro-batches change nothing.
        types = None if self.shortlist is None else self.shortlist.of_pairs(store, rows)
        own = micro_batches[workers.rank :: workers.count]
        loss = self._gradient(store, own, (epoch, number), divisor, types)
        parameters = list(self.network.parameters())
        if workers.count > 1:
            for parameter in parameters:
                if parameter.grad is None:  # fewer pairs than workers
                    parameter.grad = torch.zeros_like(parameter)
            workers.sum_([cast(Tensor, parameter.grad) for parameter in parameters])
        norm = nn.utils.clip_grad_norm_(parameters, self.recipe.clip)
        set_learning_rate(self.optimizer, learning_rate, self.recipe.velocity)
        self.optimizer.step()
        return StartedUpdate(loss, tokens, norm)

    def _gradient(
        self,
        store: TokenStore,
        micro_batches: list[MicroBatch],
        moment: tuple[int, int],
        divisor: int,
        types: Types | None,
    ) -> Tensor:
        """Set the gradient to that of their summed loss / divisor; return the loss in float64.

        One that does not fit into memory is halved, and all start over, as the one that
        failed may have left a share of its gradient. How many a batch has decides nothing.

        Args:
            store: the pairs.
            micro_batches: this worker's.
            moment: the epoch and the batch's number in it.
            divisor: of the whole batch, over all workers.
            types: the batch's, where the softmax is over a shortlist.

        Raises:
            UserError: a single pair does not fit.
        """
        while True:
            self.optimizer.zero_grad()
            total = torch.zeros((), dtype=torch.float64, device=self.device)
            for index, micro_batch in enumerate(micro_batches):
                seeds = np.random.SeedSequence([self.seed, *moment, *micro_batch.place])
                torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
                loss = self._add_gradient(collate(store, micro_batch.rows), divisor, types)
                if loss is None:
                    _report(micro_batch, store, moment)
                    micro_batches[index : index + 1] = micro_batch.halves()
                    break
                total += loss
            else:
                return total

    def _add_gradient(self, batch: Batch, divisor: int, types: Types | None) -> Tensor | None:
        """Return the summed loss, or None where the batch does not fit into memory."""
        try:
            loss = self._loss(batch, self.recipe.label_smoothing, types)
            (loss / divisor).backward()
            return loss.detach()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Only here are the error, and with it the tensors of all frames that it passed, gone.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _loss(self, batch: Batch, label_smoothing: float, types: Types | None) -> Tensor:
        """Return the negative log-likelihood summed over the target tokens, in nats.

        With ``types`` it is that of a softmax over these alone, any other target being ``<unk>``.
        """
        tokens = batch.target if types is None else places_of(types, batch.target)
        # Found here, where no device has to be waited for.
        real = np.flatnonzero(tokens != PADDING)
        source, previous, places, target = (
            torch.from_numpy(array).to(self.device, non_blocking=True)
            for array in (batch.source, batch.previous, real, tokens.reshape(-1)[real])
        )
        chosen = None if types is None else torch.from_numpy(types).to(self.device)
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            features = self._features(source, previous).flatten(0, 1)  # (B * n, f_out)
            features = features.index_select(0, places)  # (N, f_out)
            weight, bias = rows_of(self.network.output, chosen)  # (S, f_out), (S,)
            return summed_cross_entropy(features, weight, bias, target, label_smoothing)

    @torch.no_grad()
    def validate(
        self, store: TokenStore, *, full: bool = False, sources: Indices | None = None
    ) -> float:
        """Return the validation loss in nats per target token, ``</s>`` counted.

        A shortlist is made for each batch without its references: those outside are ``<unk>``.

        Args:
            store: the pairs.
            full: whether all types are scored in any case.
            sources: as of ``collate``.
        """
        self.network.eval()
        shortlist = None if full else self.shortlist
        batches = validation_batches(store, self.recipe, shortlist, sources)
        losses = np.zeros(len(batches))
        for index in range(self.workers.rank, len(batches), self.workers.count):
            batch = collate(store, batches[index], sources)
            types = None if shortlist is None else shortlist.types(batch.source)
            losses[index] = self._loss(batch, 0.0, types).item()
        total = 0.0
        # Over the workers each loss is summed with zeros, and the losses are summed in their order:
        # the same bytes for any number of workers.
        for loss in self.workers.totals(losses.tolist()):
            total += loss
        return total / int(store.lengths("target").sum())


def validation_batches(
    store: TokenStore,
    recipe: Recipe,
    shortlist: Shortlist | None,
    sources: Indices | None = None,
) -> list[Indices]:
    """Return the rows of each validation batch, with ``sources`` as of ``collate``.

    With a shortlist, which widens with the batch, they are of as many sentences as an update's.
    """
    read = store.lengths("source")
    longest = np.maximum(read if sources is None else read[sources], store.lengths("target"))
    order = np.argsort(longest, kind="stable")
    sentences = None if shortlist is None else recipe.batch.sentences
    return cut(order, longest, sentences, VALIDATION_TOKENS)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory ran out, the device's or the machine's."""
    # The CPU's allocator has no class of error of its own.
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error)
    )


def _report(micro_batch: MicroBatch, store: TokenStore, moment: tuple[int, int]) -> None:
    """Say that a micro-batch did not fit.

    Raises:
        UserError: it is a single pair.
    """
    row = int(micro_batch.rows[0])
    if len(micro_batch.rows) == 1:
        source, target = map(len, store[row])
        raise UserError(
            f"{store.path}: out of memory at pair {row + 1} alone, of {source} and {target} "
            "tokens: lower clean.tokens, or train a smaller network or on a larger device"
        )
    log(
        f"out of memory in epoch {moment[0]}, batch {moment[1] + 1}: its micro-batch "
        f"of {len(micro_batch.rows)} pairs and {micro_batch.size} padded tokens is halved "
        f"(batch.micro_batch_tokens below {micro_batch.size} avoids the second try)"
    )
