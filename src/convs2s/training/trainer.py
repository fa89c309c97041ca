"""The training loop: epochs of updates, validation, and states to go on from.

Paper, section 4.2. The order of the data and every dropout mask are functions of the seed, the
epoch and the batch alone, so that a training which was killed anywhere ends with the same bytes.
With several workers each runs this loop; the first one alone writes and speaks.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from torch import Tensor

from convs2s.config.model import Recipe
from convs2s.data.batches import EpochPlan, plan_batches
from convs2s.data.shortlist import Shortlist
from convs2s.data.store import TokenStore
from convs2s.errors import UnfinishedError, UserError, failures_of_file
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.models.network import Network
from convs2s.training.average import keep_epoch, mean_of_epochs
from convs2s.training.epoch_progress import EpochProgress, EpochSpan, UpdatesRead, say
from convs2s.training.history import LARGEST_LOSS, EpochRecord, SourceUse, perplexity
from convs2s.training.interruption import Interruption
from convs2s.training.loading import LoadedUpdate, ahead
from convs2s.training.memory import return_freed_memory
from convs2s.training.optimizer import optimizer_tensors, restore_optimizer
from convs2s.training.permuted_sources import permuted_sources
from convs2s.training.schedule import Schedule
from convs2s.training.state_folder import StateFolder
from convs2s.training.update import StartedUpdate, Updater, UpdateReport
from convs2s.training.watch import Watch
from convs2s.training.workers import Workers

MEMORY_UPDATES = 100
"""Updates after which freed memory goes back to the system: it costs them half a percent."""


@dataclass
class TrainerState:
    """How far a training is.

    Attributes:
        schedule: where the learning rate stands.
        learning_rate: that of the last update.
        epoch: the running epoch, from 1.
        batch: the next batch of it, from 0.
        updates: updates made.
        loss: summed training loss of the running epoch, in nats.
        tokens: its target tokens so far.
        seconds: time spent on it so far; it decides nothing.
        history: a record of each finished epoch.
    """

    schedule: Schedule
    learning_rate: float
    epoch: int = 1
    batch: int = 0
    updates: int = 0
    loss: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    history: list[EpochRecord] = field(default_factory=list)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "TrainerState":
        """Read what ``asdict`` gave."""
        history = [EpochRecord(**row) for row in fields["history"]]
        schedule = Schedule(**fields["schedule"])
        return cls(**{**fields, "schedule": schedule, "history": history})


@dataclass(frozen=True)
class TrainingResult:
    """What a finished training exports.

    Attributes:
        weights: the parameters.
        loss: their validation loss.
        source_use: how much they read of the source; None where there is but one validation pair.
    """

    weights: dict[str, Tensor]
    loss: float
    source_use: SourceUse | None


class Trainer:
    """One training of one network; ``run`` ends with the best weights in the state folder."""

    def __init__(
        self,
        network: Network,
        recipe: Recipe,
        stores: tuple[TokenStore, TokenStore],
        folder: StateFolder,
        *,
        seed: int,
        device: str,
        stop: Interruption,
        workers: Workers,
        shortlist: Shortlist | None = None,
        watch: Watch | None = None,
        first_epoch: int = 1,
    ) -> None:
        """Start from the folder's last state if it has one, else from the network as it is.

        A network that was trained before goes on with ``first_epoch``.

        Raises:
            UserError: the state is no state, or the workers have not started from the same.
        """
        self.updater = Updater(
            network, recipe, seed=seed, device=device, shortlist=shortlist, workers=workers
        )
        self.network, self.recipe, self.folder = network, recipe, folder
        self.stop, self.workers = stop, workers
        self.watch = watch or Watch(folder.progress)
        self.train, self.valid = stores
        self.seed, self.device = seed, device
        self.checkpoint_seconds = 60.0 * recipe.checkpoint_minutes
        schedule = Schedule(recipe.learning_rate)
        self.state = TrainerState(schedule, recipe.learning_rate, epoch=first_epoch)
        if folder.last.is_file():
            self._restore(folder.last)
        workers.check_same("parameters", self.network.state_dict().values())

    def run(self) -> TrainerState:
        """Train until the schedule says why to stop.

        Raises:
            UserError: training diverged, or a state cannot be written.
            UnfinishedError: training stopped early; the last state is from this moment.
        """
        state = self.state
        self.watch.begin(state.history, state.schedule, state.updates)
        while state.schedule.stop_reason is None:
            self._epoch()
            self._finish_epoch()
        return state

    def _epoch(self) -> None:
        state = self.state
        batches = self.plan(state.epoch)
        share = 1.0  # of the epoch, where the recipe ends in the middle of one
        if self.recipe.maximum_epochs is not None:
            share = min(1.0, self.recipe.maximum_epochs - (state.epoch - 1))
        end = math.ceil(share * len(batches))
        saved = started = time.monotonic()
        before = state.seconds
        silent = not self.workers.is_first
        epochs = state.schedule.last_epoch(state.epoch, self.recipe)
        span = EpochSpan(state.epoch, epochs, end, len(batches), state.batch, state.updates)
        unread: list[StartedUpdate] = []
        with (
            EpochProgress(span, self.watch, silent=silent) as progress,
            ahead(partial(self.updater.load, self.train), batches[state.batch : end]) as loaded,
        ):
            for update in loaded:
                unread.append(self._start_update(update, batches))
                reason = self.stop.reason()
                is_due = time.monotonic() - saved > self.checkpoint_seconds
                wanted = reason is not None, is_due or progress.is_due()
                stops, reads = self.workers.flags(wanted)
                if reads or stops or state.batch == end:
                    self._count(self.updater.read(unread), progress)
                    unread.clear()
                state.seconds = before + time.monotonic() - started
                if stops:
                    self._stop(reason)
                if is_due:
                    self._save()
                    saved = time.monotonic()

    def _start_update(self, loaded: LoadedUpdate, batches: EpochPlan) -> StartedUpdate:
        """Start the next update; what it did is read when somebody wants to know."""
        state = self.state
        # An update's middle decides: no learning rate is 0, and a division comes in time.
        done = state.epoch - 1 + (state.batch + 0.5) / len(batches)
        state.learning_rate = state.schedule.learning_rate_at(done, self.recipe)
        started = self.updater.start(loaded, state.epoch, state.batch, state.learning_rate)
        state.batch += 1
        state.updates += 1
        if state.batch % MEMORY_UPDATES == 0:
            return_freed_memory()
        return started

    def _stop(self, reason: str | None) -> NoReturn:
        """Save and stop, as a worker has a reason to.

        Raises:
            UnfinishedError: with the reason.
        """
        self._save()
        self.workers.wait()  # or the first to end would have the others killed while they save
        self.workers.fail(
            UnfinishedError(
                f"training is not finished: {reason or 'another worker was told to stop'}; "
                f"saved in epoch {self.state.epoch} after update {self.state.updates}: "
                "run the same command again to go on"
            )
        )

    def _count(self, reports: Sequence[UpdateReport], progress: EpochProgress) -> None:
        """Add the last updates to the state's loss.

        Raises:
            UserError: a loss or gradient is not a number; the last state is from before it.
        """
        state = self.state
        for number, report in enumerate(reports, start=state.updates - len(reports) + 1):
            if not math.isfinite(report.loss) or not math.isfinite(report.norm):
                self._diverged(
                    f"at update {number}: loss {report.loss}, gradient norm {report.norm}"
                )
            state.loss += report.loss
            state.tokens += report.tokens
        tokens = sum(report.tokens for report in reports)
        progress.advance(
            UpdatesRead(
                len(reports),
                tokens,
                state.loss / state.tokens,
                reports[-1].norm,
                state.learning_rate,
            )
        )

    def plan(self, epoch: int) -> EpochPlan:
        """Return the rows of each update of an epoch, in their order."""
        lengths = self.train.lengths("source"), self.train.lengths("target")
        generator = np.random.default_rng([self.seed, epoch])
        return plan_batches(*lengths, self.recipe.batch, generator)

    def _finish_epoch(self) -> None:
        state = self.state
        loss = self.updater.validate(self.valid)
        if not loss < LARGEST_LOSS:
            self._diverged(f"with validation loss {loss:g}")
        epochs = state.schedule.last_epoch(state.epoch, self.recipe)
        state.schedule = state.schedule.after_epoch(state.epoch, loss, self.recipe)
        full = (
            None if self.updater.shortlist is None else self.updater.validate(self.valid, full=True)
        )
        record = EpochRecord(
            epoch=state.epoch,
            updates=state.updates,
            learning_rate=state.learning_rate,
            train_loss=state.loss / state.tokens,
            valid_loss=loss,
            valid_perplexity=perplexity(loss),
            tokens=state.tokens,
            tokens_per_second=round(state.tokens / max(state.seconds, 1e-9)),
            valid_perplexity_full=None if full is None else perplexity(full),
        )
        state.history.append(record)
        if self.workers.is_first:
            say(record, epochs)
        if self.workers.is_first and state.schedule.best_epoch == state.epoch:
            save_tensors(self.folder.best, self.network.state_dict(), {"epoch": state.epoch})
        if self.workers.is_first and self.recipe.average is not None:
            weights = self.network.state_dict()
            keep_epoch(self.folder.path, state.epoch, self.recipe.average, weights)
        state.epoch += 1
        state.batch, state.loss, state.tokens, state.seconds = 0, 0.0, 0, 0.0
        self._save()
        self.watch.end_epoch(state.history, state.schedule)

    def result(self) -> TrainingResult:
        """Return what a finished training exports; the network has its parameters from then on."""
        self.workers.wait()  # for the first one to have written the last epoch
        schedule, average = self.state.schedule, self.recipe.average
        if average is None or schedule.best_loss is None:
            best = math.inf if schedule.best_loss is None else schedule.best_loss
            weights, loss = load_tensors(self.folder.best)[0], best
            self.network.load_state_dict(weights)
        else:
            most = min(average, len(self.state.history))  # a model's own epochs are not here
            weights = mean_of_epochs(self.folder.path, self.state.epoch - 1, most)
            self.network.load_state_dict(weights)
            loss = self.updater.validate(self.valid)
        return TrainingResult(weights, loss, self._source_use(loss))

    def _source_use(self, loss: float) -> SourceUse | None:
        """Return how much the network, whose validation loss is given, reads of its source."""
        sources = permuted_sources(self.valid)
        if sources is None:
            return None
        # A shortlist comes from the source itself: another one's would lack the references.
        if self.updater.shortlist is not None:
            loss = self.updater.validate(self.valid, full=True)
        permuted = self.updater.validate(self.valid, full=True, sources=sources)
        return SourceUse.from_losses(loss, permuted)

    def _diverged(self, what: str) -> NoReturn:
        """End training; the last state is from before it, and never one that is not finite.

        Raises:
            UserError: with what to do.
        """
        kept = f"; the state before it is kept: {self.folder.last}"
        self.workers.fail(
            UserError(
                f"training diverged in epoch {self.state.epoch} {what}; lower learning_rate "
                f"({self.recipe.learning_rate:g}) or clip ({self.recipe.clip:g})"
                f"{kept if self.folder.last.exists() else ''}"
            )
        )

    def _save(self) -> None:
        if not self.workers.is_first:
            return
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for name, value in optimizer_tensors(self.updater.optimizer, self.network):
            tensors[f"optimizer.{name}"] = value
        save_tensors(self.folder.last, tensors, asdict(self.state))

    def _restore(self, path: Path) -> None:
        tensors, fields = load_tensors(path, self.device)
        with failures_of_file(str(path), "not a state of this training; remove it to start over"):
            self.state = TrainerState.from_json(fields)
            parts: dict[str, dict[str, Any]] = {"network": {}, "optimizer": {}}
            for name, tensor in tensors.items():
                part, rest = name.split(".", 1)
                parts[part][rest] = tensor
            self.network.load_state_dict(parts["network"])
            restore_optimizer(
                self.updater.optimizer, self.network, parts["optimizer"], self.state.learning_rate
            )
