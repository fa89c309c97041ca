"""The training loop: epochs of updates, validation, and states to go on from.

Paper, section 4.2. The order of the data and every dropout mask are functions of the seed, the
epoch and the batch alone, so that a training which was killed anywhere ends with the same bytes.
"""

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from convs2s.data.batches import EpochPlan, plan_batches
from convs2s.data.selection import VocabularySelection
from convs2s.data.store import TokenStore
from convs2s.errors import UserError
from convs2s.models.network import Network
from convs2s.tensor_file import load_tensors, save_tensors
from convs2s.training.optimiser import optimiser_tensors, restore_optimiser
from convs2s.training.progress import EpochProgress, say
from convs2s.training.recipe import Recipe
from convs2s.training.schedule import Schedule
from convs2s.training.state import StateFolder
from convs2s.training.update import Updater, UpdateReport


@dataclass
class Position:
    """How far a training is.

    Attributes:
        schedule: where the learning rate stands.
        rate: the learning rate of the last update.
        epoch: the running epoch, from 1.
        batch: the next batch of it, from 0.
        updates: updates made.
        loss: summed training loss of the running epoch, in nats.
        words: its target symbols so far.
        seconds: time spent on it so far; it decides nothing.
        history: a row for each finished epoch.
    """

    schedule: Schedule
    rate: float
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
        network: Network,
        recipe: Recipe,
        stores: tuple[TokenStore, TokenStore],
        state: StateFolder,
        *,
        seed: int,
        device: str,
        checkpoint_minutes: float,
        selection: VocabularySelection | None = None,
    ) -> None:
        """Start from the folder's last state if it has one, else from the network as it is."""
        self.updater = Updater(network, recipe, seed=seed, device=device, selection=selection)
        self.network, self.recipe, self.state = network, recipe, state
        self.train, self.valid = stores
        self.seed, self.device = seed, device
        self.checkpoint_seconds = 60.0 * checkpoint_minutes
        self.position = Position(Schedule(recipe.learning_rate), recipe.learning_rate)
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
        position = self.position
        batches = self.plan(position.epoch)
        share = 1.0  # of the epoch, where the recipe ends in the middle of one
        if self.recipe.maximum_epochs is not None:
            share = min(1.0, self.recipe.maximum_epochs - (position.epoch - 1))
        end = math.ceil(share * len(batches))
        saved = started = time.monotonic()
        before = position.seconds
        with EpochProgress(position.epoch, end, position.batch) as progress:
            while position.batch < end:
                # An update's middle decides: no rate is 0, and a division comes in time.
                done = position.epoch - 1 + (position.batch + 0.5) / len(batches)
                position.rate = position.schedule.rate(done, self.recipe)
                report = self.updater.update(
                    self.train,
                    batches[position.batch],
                    position.epoch,
                    position.batch,
                    position.rate,
                )
                self._count(report)
                now = time.monotonic()
                position.seconds = before + now - started
                progress.advance(position.loss / position.words, report.words, report.norm)
                if now - saved > self.checkpoint_seconds:
                    self._save()
                    saved = now

    def _count(self, report: UpdateReport) -> None:
        """Add an update to the position.

        Raises:
            UserError: its loss or gradient is not a number; the last state is from before it.
        """
        position, recipe = self.position, self.recipe
        if not math.isfinite(report.loss) or not math.isfinite(report.norm):
            raise UserError(
                f"training diverged in epoch {position.epoch} at update "
                f"{position.updates + 1}: loss {report.loss}, gradient norm {report.norm}; lower "
                f"learning_rate ({recipe.learning_rate:g}) or clip ({recipe.clip:g})"
            )
        position.loss += report.loss
        position.words += report.words
        position.batch += 1
        position.updates += 1

    def plan(self, epoch: int) -> EpochPlan:
        """Return the rows of each update of an epoch, in their order."""
        lengths = self.train.lengths("source"), self.train.lengths("target")
        generator = np.random.default_rng([self.seed, epoch])
        separate = self.recipe.split == "separate"
        return plan_batches(*lengths, self.recipe.batch, generator, separate=separate)

    def _finish_epoch(self) -> None:
        position = self.position
        loss = self.updater.validate(self.valid)
        if not math.isfinite(loss):
            raise UserError(f"training diverged in epoch {position.epoch}: validation loss {loss}")
        position.schedule = position.schedule.after_epoch(position.epoch, loss, self.recipe)
        position.history.append(
            {
                "epoch": position.epoch,
                "updates": position.updates,
                "learning_rate": position.rate,
                "train_loss": position.loss / position.words,
                "valid_loss": loss,
                "valid_perplexity": math.exp(loss),
                "words": position.words,
                "words_per_second": round(position.words / max(position.seconds, 1e-9)),
            }
        )
        if self.updater.selection is not None:
            full = self.updater.validate(self.valid, full=True)
            position.history[-1]["valid_perplexity_full"] = math.exp(full)
        say(position.history[-1])
        if position.schedule.best_epoch == position.epoch:
            save_tensors(self.state.best, self.network.state_dict(), {"epoch": position.epoch})
        position.epoch += 1
        position.batch, position.loss, position.words, position.seconds = 0, 0.0, 0, 0.0
        self._save()

    def _save(self) -> None:
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for name, value in optimiser_tensors(self.updater.optimiser, self.network):
            tensors[f"optimiser.{name}"] = value
        save_tensors(self.state.last, tensors, asdict(self.position))

    def _restore(self, path: Path) -> None:
        tensors, fields = load_tensors(path, self.device)
        self.position = Position.from_json(fields)
        parts: dict[str, dict[str, Any]] = {"network": {}, "optimiser": {}}
        for name, tensor in tensors.items():
            part, rest = name.split(".", 1)
            parts[part][rest] = tensor
        self.network.load_state_dict(parts["network"])
        restore_optimiser(
            self.updater.optimiser, self.network, parts["optimiser"], self.position.rate
        )
