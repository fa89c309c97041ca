"""One update: a batch's parts, their summed gradient, clipping, and a step of the optimiser."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from convs2s.data.batches import Batch, Indices, collate, cut
from convs2s.data.selection import Types, VocabularySelection, places_of
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.errors import UserError
from convs2s.models.network import Network, rows_of
from convs2s.training.cross_entropy import summed_cross_entropy
from convs2s.training.optimiser import build_optimiser, change_rate
from convs2s.training.parts import Part, split_batch
from convs2s.training.progress import log
from convs2s.training.recipe import Recipe
from convs2s.training.workers import ALONE, Workers

VALIDATION_WORDS = 4000
"""Padded words of a validation batch; it bounds memory and changes no result without selection."""


@dataclass(frozen=True)
class UpdateReport:
    """What an update did.

    Attributes:
        loss: negative log-likelihood (smoothed where the recipe says so) summed over the target
            symbols, in nats.
        words: target symbols, ``</s>`` counted.
        norm: the gradient's norm before clipping.
    """

    loss: float
    words: int
    norm: float


class Updater:
    """Makes updates of one network, and computes its validation loss."""

    def __init__(
        self,
        network: Network,
        recipe: Recipe,
        *,
        seed: int,
        device: str,
        selection: VocabularySelection | None = None,
        workers: Workers = ALONE,
    ) -> None:
        """Build the recipe's optimiser over the network, which is moved to ``device``."""
        self.network, self.recipe = network.to(device), recipe
        self.seed, self.device, self.selection = seed, device, selection
        self.workers = workers
        self.optimiser = build_optimiser(network, recipe)
        # Every batch has lengths of its own.
        self._features = (
            torch.compile(network.features, dynamic=True) if recipe.compile else network.features
        )

    def update(
        self, store: TokenStore, rows: Indices, epoch: int, number: int, rate: float
    ) -> UpdateReport:
        """Make one update from the pairs ``rows``, batch ``number`` of the epoch."""
        workers = self.workers
        words = sum(len(store[int(row)][1]) for row in rows)
        divisor = words if self.recipe.normalise == "words" else len(rows)
        parts = split_batch(store, rows, self.recipe.batch.part_words, workers.count)
        self.network.train()
        # One selection for the whole update, so that its parts change nothing.
        types = None if self.selection is None else self.selection.of_pairs(store, rows)
        own = parts[workers.rank :: workers.count]
        loss = self._gradient(store, own, (epoch, number), divisor, types)
        parameters = list(self.network.parameters())
        if workers.count > 1:
            for parameter in parameters:
                if parameter.grad is None:  # fewer pairs than workers
                    parameter.grad = torch.zeros_like(parameter)
            workers.sum_([cast(Tensor, parameter.grad) for parameter in parameters])
        norm = nn.utils.clip_grad_norm_(parameters, self.recipe.clip)
        change_rate(self.optimiser, rate, self.recipe.velocity)
        self.optimiser.step()
        return UpdateReport(workers.totals([loss])[0], words, norm.item())

    def _gradient(
        self,
        store: TokenStore,
        parts: list[Part],
        moment: tuple[int, int],
        divisor: int,
        types: Types | None,
    ) -> float:
        """Set the gradient to that of the parts' summed loss / divisor; return the loss.

        A part that does not fit into memory is halved, and all parts start over, as the one that
        failed may have left a share of its gradient. How many parts a batch has decides nothing.

        Args:
            store: the pairs.
            parts: this worker's.
            moment: the epoch and the batch's number in it.
            divisor: of the whole batch, over all workers.
            types: the batch's, where the softmax is over a selection.

        Raises:
            UserError: a single pair does not fit.
        """
        while True:
            self.optimiser.zero_grad()
            total = 0.0
            for index, part in enumerate(parts):
                seeds = np.random.SeedSequence([self.seed, *moment, *part.place])
                torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
                loss = self._add_gradient(collate(store, part.rows), divisor, types)
                if loss is None:
                    _report(part, store, moment)
                    parts = [*parts[:index], *part.halves(), *parts[index + 1 :]]
                    break
                total += loss
            else:
                return total

    def _add_gradient(self, batch: Batch, divisor: int, types: Types | None) -> float | None:
        """Return the summed loss, or None where the batch does not fit into memory."""
        try:
            loss = self._loss(batch, self.recipe.label_smoothing, types)
            (loss / divisor).backward()
            return loss.item()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Only here are the error, and with it the tensors of all frames that it passed, gone.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _loss(self, batch: Batch, label_smoothing: float, types: Types | None) -> Tensor:
        """Return the negative log-likelihood summed over the target symbols, in nats.

        With ``types`` it is that of a softmax over these alone, any other target being ``<unk>``.
        """
        symbols = batch.target if types is None else places_of(types, batch.target)
        source, previous, target = (
            torch.from_numpy(array).to(self.device, non_blocking=True)
            for array in (batch.source, batch.previous, symbols)
        )
        chosen = None if types is None else torch.from_numpy(types).to(self.device)
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            real = target != PADDING
            features = self._features(source, previous)[real]  # (N, f_out)
            weight, bias = rows_of(self.network.output, chosen)  # (S, f_out), (S,)
            return summed_cross_entropy(features, weight, bias, target[real], label_smoothing)

    @torch.no_grad()
    def validate(self, store: TokenStore, *, full: bool = False) -> float:
        """Return the validation loss in nats per target symbol, ``</s>`` counted.

        A selection is made for each batch without its references: those outside are ``<unk>``.
        ``full`` scores all types in any case.
        """
        self.network.eval()
        selection = None if full else self.selection
        batches = validation_batches(store, self.recipe, selection)
        losses = np.zeros(len(batches))
        for index in range(self.workers.rank, len(batches), self.workers.count):
            batch = collate(store, batches[index])
            types = None if selection is None else selection.types(batch.source)
            losses[index] = self._loss(batch, 0.0, types).item()
        total = 0.0
        # Over the workers each loss is summed with zeros, and the losses are summed in their order:
        # the same bytes for any number of workers.
        for loss in self.workers.totals(losses.tolist()):
            total += loss
        return total / int(store.lengths("target").sum())


def validation_batches(
    store: TokenStore, recipe: Recipe, selection: VocabularySelection | None
) -> list[Indices]:
    """Return the rows of each validation batch.

    With a selection, which widens with the batch, they are of as many sentences as an update's.
    """
    longest = np.maximum(store.lengths("source"), store.lengths("target"))
    order = np.argsort(longest, kind="stable")
    sentences = None if selection is None else recipe.batch.sentences
    return cut(order, longest, sentences, VALIDATION_WORDS)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory ran out, the device's or the machine's."""
    # The CPU's allocator has no class of error of its own.
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error)
    )


def _report(part: Part, store: TokenStore, moment: tuple[int, int]) -> None:
    """Say that a part did not fit.

    Raises:
        UserError: it is a single pair.
    """
    row = int(part.rows[0])
    if len(part.rows) == 1:
        source, target = map(len, store[row])
        raise UserError(
            f"{store.path}: out of memory at pair {row + 1} alone, of {source} and {target} "
            "symbols: lower clean.maximum, or train a smaller network or on a larger device"
        )
    log(
        f"out of memory in epoch {moment[0]}, batch {moment[1] + 1}: its part of "
        f"{len(part.rows)} pairs and {part.size} padded words is halved (batch.part_words below "
        f"{part.size} avoids the second try)"
    )
