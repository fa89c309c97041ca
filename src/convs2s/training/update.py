"""One update: a batch's parts, their summed gradient, clipping, and a step of the optimiser."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from convs2s.data.batches import Batch, Indices, collate, cut
from convs2s.data.selection import Types, VocabularySelection, places_of
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.models.network import Network, rows_of
from convs2s.training.cross_entropy import summed_cross_entropy
from convs2s.training.optimiser import build_optimiser, change_rate
from convs2s.training.recipe import Recipe

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
    ) -> None:
        """Build the recipe's optimiser over the network, which is moved to ``device``."""
        self.network, self.recipe = network.to(device), recipe
        self.seed, self.device, self.selection = seed, device, selection
        self.optimiser = build_optimiser(network, recipe)

    def update(
        self, store: TokenStore, rows: Indices, epoch: int, number: int, rate: float
    ) -> UpdateReport:
        """Make one update from the pairs ``rows``, batch ``number`` of the epoch."""
        parts = [collate(store, part) for part in split_batch(store, rows, self.recipe)]
        words = sum(part.target_words for part in parts)
        divisor = words if self.recipe.normalise == "words" else len(rows)
        # One selection for the whole update, so that its parts change nothing.
        types = None if self.selection is None else self.selection.of_pairs(store, rows)
        self.network.train()
        self.optimiser.zero_grad()
        total = 0.0
        for index, part in enumerate(parts):
            seeds = np.random.SeedSequence([self.seed, epoch, number, index])
            torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
            loss = self._loss(part, self.recipe.label_smoothing, types)
            (loss / divisor).backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        change_rate(self.optimiser, rate, self.recipe.velocity)
        self.optimiser.step()
        return UpdateReport(total, words, norm.item())

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
            features = self.network.features(source, previous)[real]  # (N, f_out)
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
        total, words = 0.0, 0
        for rows in validation_batches(store, self.recipe, selection):
            batch = collate(store, rows)
            types = None if selection is None else selection.types(batch.source)
            total += self._loss(batch, 0.0, types).item()
            words += batch.target_words
        return total / words


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


def split_batch(store: TokenStore, rows: Indices, recipe: Recipe) -> list[Indices]:
    """Split a batch into the parts that are processed one at a time."""
    longest = np.array([max(map(len, store[int(row)])) for row in rows], np.int32)
    runs = cut(np.arange(len(rows)), longest, None, recipe.batch.part_words)
    return [rows[run] for run in runs]
