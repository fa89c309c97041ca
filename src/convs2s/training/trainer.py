"""The training loop: epochs of updates, validation, and states to resume from.

Paper, section 4.2. The order of the data and every dropout mask are functions of the seed, the
epoch, the batch and the micro-batch's place in it alone, so that a training which was killed
anywhere ends with the same bytes, on a GPU up to rounding. With several workers each runs this
loop; the first one alone writes and speaks.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from convs2s.data.batches import EpochPlan, plan_batches
from convs2s.data.store import TokenStore
from convs2s.devices import return_freed_memory
from convs2s.errors import LastingError, UnfinishedError, UserError, failures_of_file
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.manifest import processor
from convs2s.model_file import check_weights
from convs2s.models.network import Network
from convs2s.training.history import (
    LARGEST_LOSS,
    SourceUse,
    TrainingMachine,
    Validation,
    perplexity,
)
from convs2s.training.interruption import Interruption
from convs2s.training.loading import ahead, permuted_sources
from convs2s.training.log import log
from convs2s.training.progress import EpochProgress, Watch
from convs2s.training.schedule import Schedule, TrainerState, optimizer_tensors, restore_optimizer
from convs2s.training.state_folder import StateFolder
from convs2s.training.update import StartedUpdate, Updater, UpdateReport

MEMORY_UPDATES = 100  # after which freed memory goes back to the system; costs half a percent


class Trainer:
    """One training of one network; ``run`` ends with the best weights in the state folder."""

    def __init__(
        self,
        updater: Updater,
        stores: tuple[TokenStore, TokenStore],
        folder: StateFolder,
        *,
        stop: Interruption,
        watch: Watch | None = None,
        first_epoch: int = 1,
        bleu: Callable[[Network], float] | None = None,
    ) -> None:
        """Start from the folder's last state if it has one, else from the network as it is.

        A network that was trained before goes on with ``first_epoch``.

        Raises:
            UserError: The state is no state, or the workers have not started from the same.
        """
        self.updater = updater
        self.network = updater.network
        self.recipe = updater.recipe
        self.workers = updater.workers
        self.folder = folder
        self.stop = stop
        self.watch = watch or Watch(folder.progress, silent=not self.workers.is_first)
        self.train, self.valid = stores
        self.bleu = bleu
        self.machine = TrainingMachine(
            workers=self.workers.count, threads=torch.get_num_threads(), processor=processor()
        )
        if torch.device(updater.device).type == "cuda":
            self.machine["gpu"] = torch.cuda.get_device_name(updater.device)
        rate = self.recipe.learning_rate
        self.state = TrainerState(Schedule(rate), rate, first_epoch)
        self.is_dropped = False  # true once the last state has no parameters any more
        if folder.last.is_file():
            self._restore(folder.last)
        self.workers.check_same(self.network.state_dict().values())

    def run(self) -> TrainerState:
        """Train until the schedule says why to stop.

        Raises:
            LastingError: Training diverged.
            UnfinishedError: Training stopped early; the last state is from this moment.
            UserError: A state cannot be written.
        """
        state = self.state
        self.watch.begin(state)
        while state.schedule.stop_reason is None:
            self._train_epoch()
            self._finish_epoch()
        return state

    def _train_epoch(self) -> None:
        """Make the updates of the running epoch that are left."""
        state = self.state
        batches = self.plan(state.epoch)
        epochs_left = (self.recipe.maximum_epochs or math.inf) - (state.epoch - 1)
        end = math.ceil(min(1.0, epochs_left) * len(batches))  # the last one may be cut short
        epochs = state.schedule.last_epoch(state.epoch, self.recipe)
        progress = EpochProgress(state, epochs, end, len(batches), self.watch)
        seconds_before = state.seconds  # by earlier tries of this epoch
        if state.batch < end:  # else the epoch is of the machine that was killed in validation
            state.machine = self.machine
        started = time.monotonic()
        saved = started
        checkpoint_seconds = 60.0 * self.recipe.checkpoint_minutes
        unread: list[StartedUpdate] = []

        load = partial(self.updater.loader.load, self.train)
        with progress.bar, closing(ahead(load, batches[state.batch : end])) as loaded_updates:
            for loaded in loaded_updates:
                moment = state.begin_update(len(batches), self.recipe)
                unread.append(self.updater.start(loaded, moment))
                if state.batch % MEMORY_UPDATES == 0:
                    return_freed_memory()
                reason = self.stop.reason()
                is_last = state.batch == end
                # The last one of an epoch is saved before validation, which may take long.
                save_is_due = is_last or time.monotonic() - saved > checkpoint_seconds
                has_to_read = save_is_due or progress.is_due()
                # All workers stop, or read, where one of them has to.
                stops, reads = self.workers.flags([reason is not None, has_to_read])
                # Reading waits for the device, so it is done only where the figures are needed.
                if stops or reads:
                    self._count(self.updater.read(unread), progress)
                    unread.clear()
                state.seconds = seconds_before + time.monotonic() - started
                if stops:
                    self._stop(reason)
                if save_is_due:
                    self._save()
                    saved = time.monotonic()

    def plan(self, epoch: int) -> EpochPlan:
        """Return the rows of each update of an epoch, in their order."""
        return plan_batches(
            self.train.lengths("source"),
            self.train.lengths("target"),
            self.recipe.batch,
            np.random.default_rng([self.updater.seed, epoch]),
        )

    def _count(self, reports: Sequence[UpdateReport], progress: EpochProgress) -> None:
        """Add the last updates to the state's loss, which must be finite."""
        state = self.state
        first = state.updates - len(reports) + 1
        for number, report in enumerate(reports, start=first):
            if not math.isfinite(report.loss) or not math.isfinite(report.norm):
                self._diverged(f"at update {number}: loss {report.loss}, gradient {report.norm}")
            state.loss += report.loss
            state.tokens += report.tokens
        progress.advance(reports[-1].norm)

    def _finish_epoch(self) -> None:
        """Validate, move the schedule on, and save what the epoch gave."""
        state = self.state
        epoch = state.epoch
        loss = self.updater.validate(self.valid)
        if not loss < LARGEST_LOSS:
            self._diverged(f"with validation loss {loss:g}")
        full_loss = None
        if self.updater.shortlist is not None:
            full_loss = self.updater.validate(self.valid, full=True)
        epochs = state.schedule.last_epoch(epoch, self.recipe)
        bleu = None if self.bleu is None else self.bleu(self.network)
        record = state.finish_epoch(loss, full_loss, self.recipe, bleu)
        if self.workers.is_first:
            log(record.line(epochs))
            if self.recipe.average is not None:
                path = self.folder.epoch_file(epoch)
                self._write(path, self.network.state_dict(), {"epoch": epoch})
                unneeded = self.folder.epoch_file(epoch - self.recipe.average)
                unneeded.unlink(missing_ok=True)
        self._save()
        self._keep_best()
        self.watch.end_epoch(state)

    def _stop(self, reason: str | None) -> NoReturn:
        """Save and stop, as this worker or another one has a reason to."""
        self._save()
        self.workers.wait()  # or the first to end would have the others killed while they save
        self.workers.fail(
            UnfinishedError(
                f"training is not finished: {reason or 'another worker was told to stop'}; "
                f"saved in epoch {self.state.epoch} after update {self.state.updates}: "
                "rerun the same command to resume"
            )
        )

    def _diverged(self, how: str) -> NoReturn:
        """End training; the last state is from before it, and never one that is not finite."""
        message = (
            f"training diverged in epoch {self.state.epoch} {how}; lower the learning rate or "
            f"clip ({self.recipe.clip:g})"
        )
        if self.folder.last.exists():
            message += f"; the state before it is kept: {self.folder.last}"
        self.workers.fail(LastingError(message))

    def result(self) -> Validation:
        """Give the network the parameters that a training exports; return what they give."""
        self.workers.wait()  # for the first one to have written the last epoch
        if self.recipe.average is None:
            weights = self._weights(self.folder.best, self.state.schedule.best_epoch)
        else:
            weights = self._mean_weights(self.recipe.average)
        self.network.load_state_dict(weights)
        if self.state.validation is None:
            loss = self.state.schedule.best_loss
            is_known = self.recipe.average is None and self.recipe.best_by is None
            if loss is None or not is_known:  # of a mean, or where the best is a BLEU
                loss = round(self.updater.validate(self.valid), 6)
            self.state.validation = Validation(loss, self._source_use(loss))
        return self.state.validation

    def _mean_weights(self, average: int) -> dict[str, Tensor]:
        """Return the mean of the parameters after so many last epochs."""
        epochs = [record.epoch for record in self.state.history[-average:]]
        states = [self._weights(self.folder.epoch_file(epoch), epoch) for epoch in epochs]
        mean = {}
        for name, value in self.network.state_dict().items():
            # In float64, in the order of the states.
            stacked = torch.stack([state[name].double() for state in states])
            mean[name] = stacked.mean(0).to(value.dtype)
        return mean

    def drop_unneeded(self) -> None:
        """Keep of the states what exporting the model again needs.

        Those are the parameters that it is made of, and where training ended, without the
        parameters and the optimizer of the last epoch.
        """
        if self.recipe.average is not None:
            self.folder.best.unlink(missing_ok=True)
        if not self.is_dropped:
            self._write(self.folder.last, {}, asdict(self.state))

    def _source_use(self, loss: float) -> SourceUse | None:
        """Return how much the network, whose validation loss is given, reads of its source."""
        sources = permuted_sources(self.valid)
        if sources is None:
            return None
        # A shortlist comes from the source itself: another one's would lack the references.
        if self.updater.shortlist is not None:
            loss = self.updater.validate(self.valid, full=True)
        permuted = self.updater.validate(self.valid, full=True, sources=sources)
        return SourceUse(
            perplexity=round(perplexity(loss), 4),
            permuted_perplexity=round(perplexity(permuted), 4),
            ratio=round(perplexity(permuted - loss), 4),
        )

    def _save(self) -> None:
        if not self.workers.is_first:
            return
        tensors = {}
        for name, value in self.network.state_dict().items():
            tensors[f"network.{name}"] = value
        for name, value in optimizer_tensors(self.updater.optimizer, self.network):
            tensors[f"optimizer.{name}"] = value
        self._write(self.folder.last, tensors, asdict(self.state))

    def _keep_best(self) -> None:
        """Keep the parameters of the epoch that has ended, if it is the best one.

        The state is written before, and has them too: a kill in between loses nothing, where one
        before it could leave the best of an epoch that is trained again, to other numbers.
        """
        best = self.state.schedule.best_epoch  # 0 before the first epoch has ended
        is_best = best > 0 and best == self.state.epoch - 1
        has_ended = self.state.batch == 0  # else the parameters are of the epoch after it
        if self.workers.is_first and is_best and has_ended:
            self._write(self.folder.best, self.network.state_dict(), {"epoch": best})

    def _restore(self, path: Path) -> None:
        tensors, fields = self._read(path, self.updater.device)
        with failures_of_file(str(path), "not a state of this training; remove it to start over"):
            self.state = TrainerState.from_json(fields)
            if not tensors and self.state.schedule.stop_reason is not None:
                # It was exported, by a version that kept its validation.
                self.is_dropped = self.state.validation is not None
                return
            parts: dict[str, dict[str, Tensor]] = {"network": {}, "optimizer": {}}
            for name, tensor in tensors.items():
                part, _, rest = name.partition(".")
                parts[part][rest] = tensor
            self.network.load_state_dict(parts["network"])
            restore_optimizer(self.updater.optimizer, self.network, parts["optimizer"], self.state)
        self._keep_best()

    def _write(
        self, path: Path, tensors: Mapping[str, Tensor], description: Mapping[str, object]
    ) -> None:
        """Write a state, which says of which training it is."""
        save_tensors(path, tensors, {**description, "training": self.folder.path.name})
        if self.folder.copies:
            self.folder.copies.keep(path)

    def _read(self, path: Path, device: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Read a state, which must be of this training; those of before do not say so."""
        tensors, fields = load_tensors(path, device)
        own = self.folder.path.name
        if fields.pop("training", own) != own:
            raise self._foreign(path, "training")
        return tensors, fields

    def _weights(self, path: Path, epoch: int) -> dict[str, Tensor]:
        """Return the parameters after an epoch, which must be those of this network."""
        weights, fields = self._read(path, "cpu")
        if fields.get("epoch") != epoch:
            raise self._foreign(path, "epoch")
        check_weights(weights, self.network, str(path))
        return weights

    def _foreign(self, path: Path, origin: str) -> UserError:
        return UserError(
            f"{path}: is a state of another {origin}: put back the file that was here, or remove "
            f"{self.folder.path}, and the same command trains again"
        )
