"""The schedule of the learning rate, the state of a training, and the optimizer.

A schedule has one of three kinds:

- ``plateau`` (paper, section 4.2): the rate is constant until validation stops improving. From then
  on it is divided after every epoch.
- ``step``: the rate is divided at fixed times (Sutskever et al. 2014, section 3.4: every half epoch
  after the fifth epoch).
- ``cosine``: the rate rises linearly during the warm-up, then falls to 0 at the end.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import torch
from torch import nn

from convs2s.config.model import Recipe
from convs2s.training.history import (
    EpochRecord,
    TrainingMachine,
    Validation,
    epoch_criterion,
    perplexity,
)

BLEU_PATIENCE = 3
"""Epochs in a row without progress after which the rate of a plateau falls, with ``best_by: bleu``.

An epoch makes progress if its BLEU or its loss is better than ever before. The BLEU of a few
hundred pairs varies from epoch to epoch, and may stay low for a long time while the loss falls.
Without ``best_by`` the rate falls after the first epoch without progress, as in the paper.
"""


@dataclass(frozen=True)
class Schedule:
    """The schedule after the epochs so far."""

    # Learning rate of the next epoch of a plateau; the other kinds do not use it.
    learning_rate: float
    # Whether progress has ended. From then on, the rate of a plateau is divided after every epoch.
    annealing: bool = False
    # Validation loss of the best epoch; None at the start.
    best_loss: float | None = None
    # The best epoch, from 1; 0 before the first epoch has ended.
    best_epoch: int = 0
    stop_reason: str | None = None  # why the training has ended; None if it has not
    # Validation BLEU of the best epoch with best_by; else None.
    best_bleu: float | None = None
    # Lowest validation loss of any epoch; None at the start.
    lowest_loss: float | None = None
    # Number of the last epochs, in a row, that made no progress (``BLEU_PATIENCE``).
    stale: int = 0

    def learning_rate_at(self, progress: float, recipe: Recipe) -> float:
        """Return the learning rate after ``progress`` epochs; 2.5 is the middle of the third."""
        schedule = recipe.schedule
        if schedule.kind == "step":
            # The first division is after ``hold`` epochs, the next ones after ``every`` more epochs
            # each. 1e-9 keeps a rounding error from delaying a division by one update.
            divisions = (
                math.floor((progress - schedule.hold) / schedule.every + 1e-9) + 1
            )
            divisor = schedule.divide_by ** max(0, divisions)
            return recipe.learning_rate / divisor
        if schedule.kind == "cosine":
            assert recipe.maximum_epochs is not None  # checked by `Recipe`
            if progress < schedule.warmup:
                return recipe.learning_rate * (progress / schedule.warmup)
            # The part of the time after the warm-up that has passed, from 0 to 1.
            falling = (progress - schedule.warmup) / (
                recipe.maximum_epochs - schedule.warmup
            )
            share = 0.5 * (1.0 + math.cos(math.pi * min(1.0, falling)))
            return recipe.learning_rate * share
        return self.learning_rate

    def after_epoch(
        self,
        epoch: int,
        loss: float,
        recipe: Recipe,
        bleu: float | None = None,
    ) -> "Schedule":
        """Return the schedule after epoch ``epoch``, from 1.

        ``loss`` is its validation loss, and ``bleu`` its validation BLEU with best_by.
        """
        is_best = True
        if self.best_loss is not None:
            best = epoch_criterion(self.best_loss, self.best_bleu)
            is_best = epoch_criterion(loss, bleu) < best
        lowest = self.lowest_loss  # None in the first epoch, which ``is_best`` covers
        is_lowest = lowest is not None and loss < lowest
        has_progress = is_best or is_lowest
        stale = 0 if has_progress else self.stale + 1
        after = replace(self, stale=stale)
        if lowest is None or is_lowest:
            after = replace(after, lowest_loss=loss)
        if is_best:
            after = replace(after, best_loss=loss, best_bleu=bleu, best_epoch=epoch)
        patience = 1 if recipe.best_by is None else BLEU_PATIENCE
        if self.annealing or stale >= patience:
            rate = self.learning_rate / recipe.schedule.divide_by
            after = replace(after, annealing=True, learning_rate=rate)
        return replace(after, stop_reason=after._stop_reason(epoch, recipe))

    def with_maximum_of(self, epoch: int, recipe: Recipe) -> "Schedule":
        """Return the schedule after epoch ``epoch`` by a recipe with another maximum of epochs.

        Nothing but the reason to stop depends on the maximum, unless the schedule is a cosine.
        """
        return replace(self, stop_reason=self._stop_reason(epoch, recipe))

    def last_epoch(self, epoch: int, recipe: Recipe) -> float | None:
        """Return the number of epochs of the whole training; ``epoch`` is the running one.

        As long as the rate of a plateau is constant, validation decides when it falls. Until then
        the result is the maximum of the recipe, or None if there is no maximum.
        """
        maximum = recipe.maximum_epochs
        if self._may_go_on(recipe):
            return maximum
        # From here on the rate falls whatever the losses are, so simulate epochs until the end.
        schedule = self.after_epoch(epoch, math.inf, recipe)
        while schedule.stop_reason is None:
            epoch += 1
            schedule = schedule.after_epoch(epoch, math.inf, recipe)
        return epoch if maximum is None else min(epoch, maximum)

    def _may_go_on(self, recipe: Recipe) -> bool:
        """Return whether the training goes on whatever its learning rate is.

        A cosine ends only at the maximum of epochs. The rate of a plateau ends the training only
        after it has begun to fall.
        """
        kind = recipe.schedule.kind
        return kind == "cosine" or (kind == "plateau" and not self.annealing)

    def _stop_reason(self, epoch: int, recipe: Recipe) -> str | None:
        """Return why the training ends after ``epoch``, or None if it goes on."""
        schedule = recipe.schedule
        if recipe.maximum_epochs is not None and epoch >= recipe.maximum_epochs:
            return (
                f"the recipe's maximum of {recipe.maximum_epochs:g} epochs is reached"
            )
        if self._may_go_on(recipe):
            return None
        if self.learning_rate_at(epoch, recipe) >= schedule.minimum:
            return None
        if schedule.kind == "step":
            return f"the learning rate fell below {schedule.minimum:g}"
        return (
            f"the learning rate, divided by {schedule.divide_by:g} after each epoch since "
            f"validation stopped improving, fell below {schedule.minimum:g}"
        )


class Moment(NamedTuple):
    """The place of an update in the training, and its learning rate."""

    epoch: int  # number of the epoch, from 1
    batch: int  # number of the update in the epoch, from 0
    learning_rate: float  # learning rate of the update


@dataclass
class TrainerState:
    """The counts, the schedule and the history of a training, which a state file contains.

    The trainer changes it during the training.
    """

    schedule: Schedule  # the schedule after the last finished epoch
    learning_rate: float  # learning rate of the last update
    epoch: int  # number of the running epoch, from 1
    batch: int = 0  # number of the next update in the running epoch, from 0
    updates: int = 0  # updates made since the beginning of the training
    # Training loss of the running epoch so far, in nats, summed over its tokens.
    loss: float = 0.0
    tokens: int = 0  # target tokens of the running epoch so far
    seconds: float = 0.0  # time spent on the running epoch so far; only for the records
    # The finished epochs, in order.
    history: list[EpochRecord] = field(default_factory=list)
    machine: TrainingMachine | None = None  # the machine that made the last update
    # The most padded tokens of a micro-batch that fit into the memory of that machine; None if its
    # memory has not run out.
    micro_batch_tokens: int | None = None
    # Figures of the exported model; None before the export.
    validation: Validation | None = None

    def with_maximum_of(self, recipe: Recipe) -> "TrainerState":
        """Return the state that a training by ``recipe`` has after the same updates.

        The recipe is that of this training with a larger maximum of epochs
        (``identity.is_longer``).
        """
        if self.schedule.stop_reason is None:
            return self
        schedule = self.schedule.with_maximum_of(self.epoch - 1, recipe)
        # If the training goes on, the model to export is not known yet.
        validation = None if schedule.stop_reason is None else self.validation
        return replace(self, schedule=schedule, validation=validation)

    def ended_by_maximum(self, recipe: Recipe) -> bool:
        """Return whether the training has ended only because of the recipe's maximum of epochs."""
        unlimited = recipe.model_copy(update={"maximum_epochs": None})
        goes_on = self.with_maximum_of(unlimited).schedule.stop_reason is None
        return self.schedule.stop_reason is not None and goes_on

    def begin_update(self, batches: int, recipe: Recipe) -> Moment:
        """Count the next update of the running epoch; return its place and learning rate.

        ``batches`` is the number of updates of a full epoch.
        """
        # Use the learning rate at the middle of the update. So a warm-up does not start with a rate
        # of 0, and the first update with a divided rate is the one that begins nearest to the time
        # of the division.
        progress = self.epoch - 1 + (self.batch + 0.5) / batches
        self.learning_rate = self.schedule.learning_rate_at(progress, recipe)
        moment = Moment(self.epoch, self.batch, self.learning_rate)
        self.batch += 1
        self.updates += 1
        return moment

    def finish_epoch(
        self,
        loss: float,
        full_loss: float | None,
        recipe: Recipe,
        bleu: float | None = None,
    ) -> EpochRecord:
        """Add the running epoch to the history, update the schedule, and start the next epoch.

        Args:
            loss: validation loss, in nats per target token.
            full_loss: validation loss over all types, if the model has a shortlist; else None.
            recipe: the recipe of the training.
            bleu: BLEU of validation pairs, which decides the best epoch; None: the loss decides.
        """
        record = EpochRecord(
            epoch=self.epoch,
            updates=self.updates,
            learning_rate=self.learning_rate,
            train_loss=self.loss / self.tokens,
            valid_loss=loss,
            valid_perplexity=perplexity(loss),
            tokens=self.tokens,
            tokens_per_second=round(self.tokens / max(self.seconds, 1e-9)),
            valid_perplexity_full=None if full_loss is None else perplexity(full_loss),
            valid_bleu=bleu,
            machine=self.machine,
        )
        self.history.append(record)
        self.schedule = self.schedule.after_epoch(self.epoch, loss, recipe, bleu)
        self.epoch += 1
        self.batch = 0
        self.loss = 0.0
        self.tokens = 0
        self.seconds = 0.0
        return record


def build_optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimizer over the network's parameters.

    ``nesterov`` is the optimizer of the paper (section 4.2). ``sgd`` has no momentum; it is the
    optimizer of the LSTM (Sutskever et al. 2014, section 3.4). ``adam`` is for small corpora, with
    the decay rates that are usual in translation.
    """
    parameters = network.parameters()
    if recipe.optimizer == "adam":
        return torch.optim.Adam(
            parameters, recipe.learning_rate, betas=(0.9, 0.98), fused=True
        )
    momentum = recipe.momentum if recipe.optimizer == "nesterov" else 0.0
    return torch.optim.SGD(
        parameters, recipe.learning_rate, momentum, nesterov=momentum > 0.0, fused=True
    )


def set_learning_rate(
    optimizer: torch.optim.Optimizer,
    learning_rate: float,
    velocity: Literal["keep", "rescale"],
) -> None:
    """Set the learning rate of the next step.

    torch makes a step of learning rate x velocity, so its velocity is in units of the gradient.

    - ``rescale`` leaves the velocity as it is. A change of the rate then also changes the part of
      the step that comes from earlier gradients (as in fairseq).
    - ``keep`` multiplies the velocity by old rate / new rate, so that this part of the step stays
      the same (as in fairseq-lua).
    """
    (group,) = optimizer.param_groups
    # A cosine ends with a rate of 0, by which the velocity cannot be divided.
    is_changed = learning_rate not in (0.0, group["lr"])
    if is_changed and velocity == "keep":
        states = optimizer.state.values()
        velocities = [
            state["momentum_buffer"] for state in states if "momentum_buffer" in state
        ]
        if velocities:
            torch._foreach_mul_(velocities, group["lr"] / learning_rate)
    group["lr"] = learning_rate
