"""The training loop: updates, epochs, validation, and states to go on from.

Paper, section 4.2. The order of the data and every dropout mask are functions of the seed, the
epoch and the batch alone, so that a training which was killed anywhere ends with the same bytes.
"""

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.data.batches import Batch, Indices, collate, cut, plan_batches
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.errors import UserError
from convs2s.tensor_file import load_tensors, save_tensors
from convs2s.training.progress import EpochProgress, say
from convs2s.training.recipe import Recipe
from convs2s.training.schedule import Schedule
from convs2s.training.state import StateFolder

VALIDATION_WORDS = 4000
"""Padded words of a validation batch; it bounds memory and does not change the result."""


@dataclass
class Position:
    """How far a training is.

    Attributes:
        epoch: the running epoch, from 1.
        batch: the next batch of it, from 0.
        updates: updates made.
        loss: summed training loss of the running epoch, in nats.
        words: its target symbols so far.
        seconds: time spent on it so far; it decides nothing.
        schedule: where the learning rate stands.
        history: a row for each finished epoch.
    """

    schedule: Schedule
    epoch: int = 1
    batch: int = 0
    updates: int = 0
    loss: float = 0.0
    words: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Position":
        """Read what ``asdict`` gave."""
        return cls(**{**fields, "schedule": Schedule(**fields["schedule"])})


class Trainer:
    """One training of one network; ``run`` ends with the best weights in the state folder."""

    def __init__(
        self,
        network: nn.Module,
        recipe: Recipe,
        stores: tuple[TokenStore, TokenStore],
        state: StateFolder,
        *,
        seed: int,
        device: str,
        checkpoint_minutes: float,
    ) -> None:
        """Start from the folder's last state if it has one, else from the network as it is."""
        self.network, self.recipe, self.state = network.to(device), recipe, state
        self.train, self.valid = stores
        self.seed, self.device = seed, device
        self.checkpoint_seconds = 60.0 * checkpoint_minutes
        self.optimiser = torch.optim.SGD(
            network.parameters(), recipe.learning_rate, recipe.momentum, nesterov=True
        )
        self.position = Position(Schedule(recipe.learning_rate))
        if state.last.is_file():
            self._restore(state.last)

    def run(self) -> Position:
        """Train until the schedule says why to stop."""
        position = self.position
        while position.schedule.stop_reason is None:
            self._epoch()
            self._finish_epoch()
        return position

    def _epoch(self) -> None:
        position, recipe = self.position, self.recipe
        batches = self._plan(position.epoch)
        saved = started = time.monotonic()
        before = position.seconds
        with EpochProgress(position.epoch, len(batches), position.batch) as progress:
            for rows in batches[position.batch :]:
                loss, words, norm = self.update(rows, position.epoch, position.batch)
                if not math.isfinite(loss) or not math.isfinite(norm):
                    raise UserError(
                        f"training diverged in epoch {position.epoch} at update "
                        f"{position.updates + 1}: loss {loss}, gradient norm {norm}; lower "
                        f"learning_rate ({recipe.learning_rate:g}) or clip ({recipe.clip:g})"
                    )
                position.loss += loss
                position.words += words
                position.batch += 1
                position.updates += 1
                now = time.monotonic()
                position.seconds = before + now - started
                progress.advance(position.loss / position.words, words, norm)
                if now - saved > self.checkpoint_seconds:
                    self._save()
                    saved = now

    def _plan(self, epoch: int) -> list[Indices]:
        lengths = self.train.lengths("source"), self.train.lengths("target")
        generator = np.random.default_rng([self.seed, epoch])
        batches = plan_batches(*lengths, self.recipe.batch, generator)
        if self.recipe.split == "separate":
            return [part for rows in batches for part in self._parts(rows)]
        return batches

    def _parts(self, rows: Indices) -> list[Indices]:
        """Split a batch into the parts that are processed one at a time."""
        longest = np.array([max(map(len, self.train[int(row)])) for row in rows], np.int32)
        runs = cut(np.arange(len(rows)), longest, None, self.recipe.batch.part_words)
        return [rows[run] for run in runs]

    def update(self, rows: Indices, epoch: int, number: int) -> tuple[float, int, float]:
        """Make one update from the pairs ``rows``.

        Returns:
            The summed loss in nats, the target symbols, and the gradient's norm before clipping.
        """
        parts = [collate(self.train, part) for part in self._parts(rows)]
        words = sum(part.target_words for part in parts)
        self.network.train()
        self.optimiser.zero_grad()
        total = 0.0
        for index, part in enumerate(parts):
            seeds = np.random.SeedSequence([self.seed, epoch, number, index])
            torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
            loss = self._loss(part, self.recipe.label_smoothing)
            (loss / words).backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self.optimiser.step()
        return total, words, norm.item()

    def _loss(self, batch: Batch, label_smoothing: float) -> Tensor:
        """Return the negative log-likelihood summed over the target symbols, in nats."""
        source, previous, target = (
            torch.from_numpy(array).to(self.device, non_blocking=True)
            for array in (batch.source, batch.previous, batch.target)
        )
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            logits, _ = self.network(source, previous)  # (B, n, V)
            real = target != PADDING
            return functional.cross_entropy(
                logits[real], target[real], reduction="sum", label_smoothing=label_smoothing
            )

    @torch.no_grad()
    def validate(self) -> float:
        """Return the validation loss in nats per target symbol, ``</s>`` counted."""
        self.network.eval()
        longest = np.maximum(self.valid.lengths("source"), self.valid.lengths("target"))
        order = np.argsort(longest, kind="stable")
        total, words = 0.0, 0
        for rows in cut(order, longest, None, VALIDATION_WORDS):
            batch = collate(self.valid, rows)
            total += self._loss(batch, 0.0).item()
            words += batch.target_words
        return total / words

    def _finish_epoch(self) -> None:
        position = self.position
        loss = self.validate()
        if not math.isfinite(loss):
            raise UserError(f"training diverged in epoch {position.epoch}: validation loss {loss}")
        rate = position.schedule.learning_rate
        position.schedule = position.schedule.after_epoch(position.epoch, loss, self.recipe)
        position.history.append(
            {
                "epoch": position.epoch,
                "updates": position.updates,
                "learning_rate": rate,
                "train_loss": position.loss / position.words,
                "valid_loss": loss,
                "valid_perplexity": math.exp(loss),
                "words": position.words,
                "words_per_second": round(position.words / max(position.seconds, 1e-9)),
            }
        )
        say(position.history[-1])
        if position.schedule.best_epoch == position.epoch:
            save_tensors(self.state.best, self.network.state_dict(), {"epoch": position.epoch})
        self._change_rate(position.schedule.learning_rate)
        position.epoch += 1
        position.batch, position.loss, position.words, position.seconds = 0, 0.0, 0, 0.0
        self._save()

    def _change_rate(self, rate: float) -> None:
        """Set the learning rate; torch's velocity is in units of the gradient.

        A step is rate x velocity, so leaving the velocity rescales the step with the rate (py), and
        dividing it by the rate's change keeps the step (lua).
        """
        (group,) = self.optimiser.param_groups
        if rate != group["lr"] and self.recipe.velocity == "keep":
            for state in self.optimiser.state.values():
                state["momentum_buffer"].mul_(group["lr"] / rate)
        group["lr"] = rate

    def _save(self) -> None:
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            tensors[f"velocity.{name}"] = self.optimiser.state[parameter]["momentum_buffer"]
        save_tensors(self.state.last, tensors, asdict(self.position))

    def _restore(self, path: Path) -> None:
        tensors, fields = load_tensors(path, self.device)
        self.position = Position.from_json(fields)
        state = {
            name.removeprefix("network."): tensor
            for name, tensor in tensors.items()
            if name.startswith("network.")
        }
        self.network.load_state_dict(state)
        for name, parameter in self.network.named_parameters():
            velocity = tensors[f"velocity.{name}"]
            self.optimiser.state[parameter] = {"momentum_buffer": velocity}
        (group,) = self.optimiser.param_groups
        group["lr"] = self.position.schedule.learning_rate
