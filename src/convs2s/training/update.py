"""One update: a batch's parts, their summed gradient, clipping, and a step of the optimiser."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from convs2s.data.batches import Batch, Indices, collate, cut
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.models.network import Network
from convs2s.training.cross_entropy import summed_cross_entropy
from convs2s.training.optimiser import build_optimiser, change_rate
from convs2s.training.recipe import Recipe

VALIDATION_WORDS = 4000
"""Padded words of a validation batch; it bounds memory and does not change the result."""


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

    def __init__(self, network: Network, recipe: Recipe, *, seed: int, device: str) -> None:
        """Build the recipe's optimiser over the network, which is moved to ``device``."""
        self.network, self.recipe = network.to(device), recipe
        self.seed, self.device = seed, device
        self.optimiser = build_optimiser(network, recipe)

    def update(
        self, store: TokenStore, rows: Indices, epoch: int, number: int, rate: float
    ) -> UpdateReport:
        """Make one update from the pairs ``rows``, batch ``number`` of the epoch."""
        parts = [collate(store, part) for part in split_batch(store, rows, self.recipe)]
        words = sum(part.target_words for part in parts)
        divisor = words if self.recipe.normalise == "words" else len(rows)
        self.network.train()
        self.optimiser.zero_grad()
        total = 0.0
        for index, part in enumerate(parts):
            seeds = np.random.SeedSequence([self.seed, epoch, number, index])
            torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
            loss = self._loss(part, self.recipe.label_smoothing)
            (loss / divisor).backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        change_rate(self.optimiser, rate, self.recipe.velocity)
        self.optimiser.step()
        return UpdateReport(total, words, norm.item())

    def _loss(self, batch: Batch, label_smoothing: float) -> Tensor:
        """Return the negative log-likelihood summed over the target symbols, in nats."""
        source, previous, target = (
            torch.from_numpy(array).to(self.device, non_blocking=True)
            for array in (batch.source, batch.previous, batch.target)
        )
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            real = target != PADDING
            features = self.network.features(source, previous)[real]  # (N, f_out)
            return summed_cross_entropy(
                features,
                self.network.output.weight(),
                self.network.output.bias,
                target[real],
                label_smoothing,
            )

    @torch.no_grad()
    def validate(self, store: TokenStore) -> float:
        """Return the validation loss in nats per target symbol, ``</s>`` counted."""
        self.network.eval()
        longest = np.maximum(store.lengths("source"), store.lengths("target"))
        order = np.argsort(longest, kind="stable")
        total, words = 0.0, 0
        for rows in cut(order, longest, None, VALIDATION_WORDS):
            batch = collate(store, rows)
            total += self._loss(batch, 0.0).item()
            words += batch.target_words
        return total / words


def split_batch(store: TokenStore, rows: Indices, recipe: Recipe) -> list[Indices]:
    """Split a batch into the parts that are processed one at a time."""
    longest = np.array([max(map(len, store[int(row)])) for row in rows], np.int32)
    runs = cut(np.arange(len(rows)), longest, None, recipe.batch.part_words)
    return [rows[run] for run in runs]
