"""The training loop: epochs of updates, validation, and states to resume from.

Paper, section 4.2. The order of the data depends only on the seed and the epoch. A dropout mask
depends only on the seed, the epoch, the batch and the key of the micro-batch. So a training that
was killed at any moment and resumed ends with the same bytes as one that was never killed. On a
GPU, the two may differ by rounding errors. With several workers, each worker runs this loop, but
only the first one writes files and logs.
"""

import math
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor

from convs2s.data.batches import Rows, plan_batches
from convs2s.devices import return_freed_memory
from convs2s.errors import (
    LastingError,
    LostWorkerError,
    UnfinishedError,
    failures_of_file,
)
from convs2s.manifest import processor
from convs2s.model_file import check_weights
from convs2s.training.data import TrainingData
from convs2s.training.heartbeat import PULSE, Pace
from convs2s.training.history import (
    LARGEST_LOSS,
    SourceUse,
    TrainingMachine,
    Validation,
    perplexity,
)
from convs2s.training.identity import may_be_longer
from convs2s.training.interruption import Interruption
from convs2s.training.loading import LoadedUpdate, ahead, permuted_sources
from convs2s.training.log import log
from convs2s.training.progress import EpochProgress, Watch
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.state_folder import StateFolder
from convs2s.training.update import StartedUpdate, Updater, UpdateReport
from convs2s.training.workers import Notices

MEMORY_UPDATES = 100
"""After this many updates, freed memory is returned to the system.

Returning it makes the training half a percent slower.
"""


class Trainer:
    """One training of one network.

    Call ``run``, then ``result``, then, after the model was exported, ``drop_unneeded``. With
    several workers, every worker calls ``run`` and ``result``, but only the first worker exports
    the model and drops states.
    """

    def __init__(
        self,
        updater: Updater,
        data: TrainingData,
        folder: StateFolder,
        *,
        stop: Interruption,
        watch: Watch,
        first_epoch: int = 1,
    ) -> None:
        """Resume from the last state in the folder, or start with the network as it is.

        Every worker must create its trainer: the workers compare their parameters.

        Args:
            updater: makes the updates; it has the network, the recipe and the workers.
            data: the pairs to learn from, and the validation pairs.
            folder: the folder of this training's states.
            stop: says after each update whether to stop the training.
            watch: writes progress, history and TensorBoard's events.
            first_epoch: number of the first epoch, more than 1 if the training continues the
                training of an existing model. Ignored if there is a state.

        Raises:
            UserError: The last state cannot be read, or the parameters differ between workers.
        """
        self.updater = updater
        self.network = updater.network
        self.recipe = updater.recipe
        self.workers = updater.workers
        self.folder = folder
        self.stop = stop
        self.watch = watch
        self.data = data
        self.train = data.train
        self.valid = data.valid
        self.machine = TrainingMachine(
            workers=self.workers.count,
            threads=torch.get_num_threads(),
            processor=processor(),
        )
        # On a CPU, the figures of an update are ready when ``Updater.start`` returns.
        device_type = torch.device(updater.device).type
        self.reads_at_once = device_type == "cpu"
        if device_type == "cuda":
            self.machine["gpu"] = torch.cuda.get_device_name(updater.device)
        rate = self.recipe.learning_rate
        self.state = TrainerState(Schedule(rate), rate, first_epoch)
        # Whether ``drop_unneeded`` has already written the last state, with validation figures.
        self.is_complete = False
        # Whether the last state had no tensors when it was read.
        self.is_without_tensors = False
        if folder.last.is_file():
            self._restore(folder.last)
        self.workers.check_same(self.network.state_dict().values())

    def run(self) -> None:
        """Train until the schedule has a reason to stop.

        The folder of states then has the weights of the best epoch, or those of the last epochs if
        the recipe averages them. Read them with ``result``.

        Raises:
            LastingError: Training diverged.
            UnfinishedError: Training stopped early, after it saved its state.
            UserError: A state cannot be written, or a pair does not fit into memory.
            SystemExit: On the other workers, in place of LastingError and UnfinishedError.
        """
        self.watch.begin(self.state)
        while self.state.schedule.stop_reason is None:
            self._train_epoch()
            self._finish_epoch()

    def _train_epoch(self) -> None:
        """Make the remaining updates of the running epoch.

        The losses of updates stay on a GPU until they are needed: for a save, for a progress line
        or file, or to stop. Reading the losses waits for the GPU.
        """
        state = self.state
        batches = self.plan(state.epoch)
        end = self._end_of_epoch(len(batches))
        last_epoch = state.schedule.last_epoch(state.epoch, self.recipe)
        progress = EpochProgress(state, last_epoch, end, len(batches), self.watch)
        seconds_before = state.seconds  # spent on this epoch by earlier tries
        # If no update is left, an earlier try has made all updates and was stopped before the end
        # of validation. The record of the epoch then names the machine of that try.
        if state.batch < end:
            state.machine = self.machine
        started = time.monotonic()
        saved = started
        checkpoint_seconds = 60.0 * self.recipe.checkpoint_minutes
        unread: list[StartedUpdate] = []
        notices = Notices(self.workers)
        pace = Pace(is_compiled=self.recipe.compile)

        load = partial(self.updater.load, self.train)
        with (
            progress.bar,
            closing(ahead(load, batches[state.batch : end])) as loaded_updates,
        ):
            for loaded in loaded_updates:
                # This adds 1 to ``state.batch``.
                unread.append(self._start_update(loaded, len(batches)))
                if state.batch % MEMORY_UPDATES == 0:
                    return_freed_memory()
                reason = self.stop.reason()
                is_last = state.batch == end
                # After the last update of an epoch, save before validation, which may take long.
                save_is_due = is_last or time.monotonic() - saved > checkpoint_seconds
                has_to_read = save_is_due or progress.is_due()
                # If one worker has to stop or to read, all workers do, after the same update. So
                # they exchange these numbers, and each worker gets the maximum of each number.
                # ``fitting`` is negated, because its minimum is needed.
                fitting = self.updater.fitting or math.inf
                any_stop, any_read, negative_fitting = notices.exchange(
                    [reason is not None, has_to_read, -fitting], waits=is_last
                )
                stops = any_stop > 0
                reads = any_read > 0 or is_last
                self._limit_micro_batches(-negative_fitting)
                if stops or reads or self.reads_at_once:
                    reports = self.updater.read(unread)
                    unread.clear()
                    self._count(reports, progress)
                    pace.note(len(reports))
                state.seconds = seconds_before + time.monotonic() - started
                if stops:
                    self._stop(reason)
                # A save waits for the read, which several workers make one update later.
                if save_is_due and reads:
                    self._save()
                    saved = time.monotonic()
        # Validation and the next epoch's first update may take any time, until ``pace.note``.
        PULSE.patience = None

    def _end_of_epoch(self, batches: int) -> int:
        """Return the number of updates of the running epoch; a full epoch has ``batches``.

        If maximum_epochs is not a whole number, the last epoch is cut short.
        """
        maximum_epochs = self.recipe.maximum_epochs or math.inf
        epochs_left = maximum_epochs - (self.state.epoch - 1)
        return math.ceil(min(1.0, epochs_left) * batches)

    def _start_update(self, loaded: LoadedUpdate, batches: int) -> StartedUpdate:
        """Count an update, and start it; ``batches`` is the number of updates of a full epoch.

        On a CPU, if another worker was lost, the first worker saves the state after the previous
        update, because no parameter has changed since then. On a GPU nothing is saved: later
        operations may already have changed the parameters.

        Raises:
            LostWorkerError: Another worker has ended.
            UserError: A pair does not fit into memory.
        """
        before = replace(self.state)
        moment = self.state.begin_update(batches, self.recipe)
        PULSE.updates = self.state.updates
        try:
            return self.updater.start(loaded, moment)
        except LostWorkerError:
            if self.reads_at_once:
                self.state = before
                self._save()
            raise

    def _limit_micro_batches(self, tokens: float) -> None:
        """Limit the padded tokens of later micro-batches to what fits into the workers' memory.

        If ``tokens`` is infinite, there is no limit.
        """
        if tokens < math.inf:
            self.updater.limit = int(tokens)
            self.state.micro_batch_tokens = int(tokens)

    def plan(self, epoch: int) -> list[Rows]:
        """Return the rows of each update of an epoch, in order."""
        return plan_batches(
            self.train.lengths("source"),
            self.train.lengths("target"),
            self.recipe.batch,
            np.random.default_rng([self.updater.seed, epoch]),
        )

    def _count(self, reports: Sequence[UpdateReport], progress: EpochProgress) -> None:
        """Add the reports of the last updates to the state, and update the progress display.

        There must be at least one report. The training ends if a loss or a gradient norm is not
        finite.
        """
        state = self.state
        first = state.updates - len(reports) + 1  # number of the first reported update
        for number, report in enumerate(reports, start=first):
            if not math.isfinite(report.loss) or not math.isfinite(report.norm):
                self._diverged(
                    f"at update {number}: loss {report.loss}, gradient {report.norm}"
                )
            state.loss += report.loss
            state.tokens += report.tokens
        progress.advance(reports[-1].norm)

    def _finish_epoch(self) -> None:
        """Validate, record the epoch, advance the schedule, and save the state and the weights.

        All workers validate. The first one writes the files.
        """
        state = self.state
        epoch = state.epoch
        loss = self.updater.validate(self.valid)
        # Unlike ``loss >= LARGEST_LOSS``, this condition is also true if the loss is nan.
        if not loss < LARGEST_LOSS:
            self._diverged(f"with validation loss {loss:g}")
        full_loss = None
        if self.updater.shortlist is not None:
            full_loss = self.updater.validate(self.valid, full=True)
        last_epoch = state.schedule.last_epoch(epoch, self.recipe)
        bleu = None
        if self.recipe.best_by:
            # Imported only here, because it imports sacrebleu.
            from convs2s.training.validation_bleu import validation_bleu

            bleu = validation_bleu(self.data, self.workers, self.network)
        record = state.finish_epoch(loss, full_loss, self.recipe, bleu)
        if self.workers.is_first:
            log(record.line(last_epoch))
            if self.recipe.average is not None:
                path = self.folder.epoch_file(epoch)
                self.folder.write(path, self.network.state_dict(), {"epoch": epoch})
                unneeded = self.folder.epoch_file(epoch - self.recipe.average)
                unneeded.unlink(missing_ok=True)
        self._save()
        self._keep_best()
        self.watch.end_epoch(state)

    def _stop(self, reason: str | None) -> NoReturn:
        """Save the state and end the training early.

        ``reason`` is this worker's reason to stop; None if only another worker has one.
        """
        self._save()
        # torchrun kills the other workers as soon as one ends, so wait until the first has saved.
        self.workers.wait()
        self.workers.fail(
            UnfinishedError(
                f"training is not finished: {reason or 'another worker was told to stop'}; "
                f"saved in epoch {self.state.epoch} after update {self.state.updates}: "
                "rerun the same command to resume"
            )
        )

    def _diverged(self, how: str) -> NoReturn:
        """End the training without saving its state, because it diverged.

        ``how`` continues the message, such as "at update 7: loss nan". The last state was saved
        before, so all of its losses are finite.
        """
        message = (
            f"training diverged in epoch {self.state.epoch} {how}; lower the learning rate or "
            f"clip ({self.recipe.clip:g})"
        )
        if self.folder.last.exists():
            message += f"; the last state before that is kept in {self.folder.last}"
        self.workers.fail(LastingError(message))

    def result(self) -> Validation:
        """Load the weights to export into the network; return their validation figures.

        These are the weights of the best epoch, or the mean of the last epochs if the recipe
        averages. Every worker must call this method.

        Raises:
            UserError: A file of weights is missing or damaged, or is of another epoch or training.
        """
        # Wait until the first worker has written the weights of the last epoch.
        self.workers.wait()
        if self.recipe.average is None:
            weights = self._weights(self.folder.best, self.state.schedule.best_epoch)
        else:
            weights = self._mean_weights(self.recipe.average)
        self.network.load_state_dict(weights)
        if self.state.validation is None:
            loss = self.state.schedule.best_loss
            # With ``average``, the mean of the weights has not been validated yet.
            if loss is None or self.recipe.average is not None:
                loss = round(self.updater.validate(self.valid), 6)
            self.state.validation = Validation(loss, self._source_use(loss))
        return self.state.validation

    def _mean_weights(self, average: int) -> dict[str, Tensor]:
        """Return the mean of the parameters after each of the last ``average`` epochs."""
        states = []
        for record in self.state.history[-average:]:
            path = self.folder.epoch_file(record.epoch)
            states.append(self._weights(path, record.epoch))
        mean = {}
        for name, value in self.network.state_dict().items():
            # Add up in float64, in the order of the epochs.
            stacked = torch.stack([state[name].double() for state in states])
            mean[name] = stacked.mean(0).to(value.dtype)
        return mean

    def drop_unneeded(self) -> None:
        """Remove from the folder of states what is not needed to export the model again.

        The weights that the model was made from stay, and so does the last state. Its tensors, the
        parameters and the optimizer's state of the last epoch, are dropped unless a longer training
        can go on from them.
        """
        if self.recipe.average is not None:
            self.folder.best.unlink(missing_ok=True)
        if self.is_complete:
            return
        tensors: dict[str, Tensor] = {}
        if self.can_be_longer:
            tensors, _ = self.folder.read(self.folder.last, "cpu")
        self.folder.write(self.folder.last, tensors, asdict(self.state))

    @property
    def can_be_longer(self) -> bool:
        """Whether a training with a larger maximum of epochs can go on from the end of this one."""
        recipe = self.recipe
        return (
            not self.is_without_tensors
            and may_be_longer(recipe.schedule.kind, recipe.maximum_epochs)
            and self.state.ended_by_maximum(recipe)
        )

    def _source_use(self, loss: float) -> SourceUse | None:
        """Return how much the predictions of the network depend on the source.

        ``loss`` is the validation loss of the network. The result is None if there is only one
        validation pair.
        """
        sources = permuted_sources(self.valid)
        if sources is None:
            return None
        # A shortlist is made from the source, so the shortlist of a permuted source would lack
        # tokens of the target. Compare losses over all types instead.
        if self.updater.shortlist is not None:
            loss = self.updater.validate(self.valid, full=True)
        permuted = self.updater.validate(self.valid, full=True, sources=sources)
        return SourceUse(
            perplexity=round(perplexity(loss), 4),
            permuted_perplexity=round(perplexity(permuted), 4),
            ratio=round(perplexity(permuted - loss), 4),  # e^permuted / e^loss
        )

    def _save(self) -> None:
        """Write the last state: parameters, optimizer and counts; only the first worker writes."""
        if not self.workers.is_first:
            return
        tensors = {}
        for name, value in self.network.state_dict().items():
            tensors[f"network.{name}"] = value
        for name, parameter in self.network.named_parameters():
            for key, value in self.updater.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = value
        with PULSE.resting():
            self.folder.write(self.folder.last, tensors, asdict(self.state))

    def _keep_best(self) -> None:
        """Write the parameters as the best weights, if the epoch that has just ended is the best.

        Call this after the last state was written, which has the same parameters. If the training
        is killed in between, resuming calls this again. If the best weights were written first, a
        kill could leave weights of an epoch that no state includes and that is trained again.
        """
        best = self.state.schedule.best_epoch  # 0 before the first epoch has ended
        is_best = best > 0 and best == self.state.epoch - 1
        # After the first update of the next epoch, the network no longer has these parameters.
        just_ended = self.state.batch == 0
        if self.workers.is_first and is_best and just_ended:
            self.folder.write(
                self.folder.best, self.network.state_dict(), {"epoch": best}
            )

    def _restore(self, path: Path) -> None:
        """Load a state into the trainer, the network and the optimizer.

        Raises:
            UserError: The file is not a state of this training.
        """
        tensors, fields = self.folder.read(path, self.updater.device)
        with failures_of_file(
            str(path), "not a state of this training; remove it to start over"
        ):
            self.state = TypeAdapter(TrainerState).validate_python(fields)
            self.is_without_tensors = not tensors
            if self.state.schedule.stop_reason is not None:
                self.is_complete = self.state.validation is not None
                # Only the weights of the model are needed to export it again.
                if self.is_complete or not tensors:
                    return
            optimizer = self.updater.optimizer
            parameters = dict(self.network.named_parameters())
            network_state = {}
            for name, tensor in tensors.items():
                # network.PARAMETER or optimizer.KEY.PARAMETER, as in ``_save``
                part, rest = name.split(".", 1)
                if part == "network":
                    network_state[rest] = tensor
                else:
                    key, parameter = rest.split(".", 1)
                    # On a CPU the tensor is a view of the state file. Without a copy, the view
                    # would keep the file on the disk even after a new state has replaced it.
                    optimizer.state[parameters[parameter]][key] = tensor.clone()
            self.network.load_state_dict(network_state)
            # ``set_learning_rate`` rescales the velocity from the rate of the last update.
            (group,) = optimizer.param_groups
            group["lr"] = self.state.learning_rate
        self._keep_best()
        self._restore_limit()

    def _restore_limit(self) -> None:
        """Limit micro-batches as the state says, unless this machine has another GPU."""
        before = self.state.machine or {}
        if before.get("gpu") != self.machine.get("gpu"):
            self.state.micro_batch_tokens = None
        if self.state.micro_batch_tokens is not None:
            self.updater.fitting = self.state.micro_batch_tokens
            self.updater.limit = self.state.micro_batch_tokens

    def _weights(self, path: Path, epoch: int) -> dict[str, Tensor]:
        """Return the parameters that were written after an epoch.

        Raises:
            UserError: The file is of another epoch or training, or does not fit the network.
        """
        weights, _ = self.folder.read(path, "cpu", epoch)
        check_weights(weights, self.network, str(path))
        return weights
