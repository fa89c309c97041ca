"""Where a training stands: its counts, its learning rate, and the optimizer's steps.

Shapes of a schedule: ``plateau`` (paper, section 4.2) is constant until validation stops improving,
then divided after every epoch; ``step`` is divided at fixed times (Sutskever et al. 2014, section
3.4: every half epoch after the fifth); ``cosine`` rises for a while and falls to 0 at the end.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from convs2s.config.model import Recipe
from convs2s.training.history import EpochRecord, TrainingMachine, Validation, perplexity


@dataclass(frozen=True)
class Schedule:
    """Where the schedule stands."""

    learning_rate: float  # of the next epoch, as far as validation decides it
    # whether an epoch has failed to improve: from then on every epoch divides
    annealing: bool = False
    # criterion of the best epoch: its validation loss, or -BLEU (best_by); None before the first
    best_loss: float | None = None
    best_epoch: int = 0  # its epoch, from 1; 0 before the first
    stop_reason: str | None = None  # why training is over, in words, or None

    def learning_rate_at(self, progress: float, recipe: Recipe) -> float:
        """Return the learning rate of an update; ``progress`` epochs are finished before it."""
        schedule = recipe.schedule
        if schedule.kind == "step":
            # The summand keeps a division that is due from coming late by a rounding error.
            divisions = math.floor((progress - schedule.hold) / schedule.every + 1e-9) + 1
            divisor = schedule.divide_by ** max(0, divisions)
            return recipe.learning_rate / divisor
        if schedule.kind == "cosine":
            assert recipe.maximum_epochs is not None  # `check_model`
            if progress < schedule.warmup:
                return recipe.learning_rate * (progress / schedule.warmup)
            falling = (progress - schedule.warmup) / (recipe.maximum_epochs - schedule.warmup)
            share = 0.5 * (1.0 + math.cos(math.pi * min(1.0, falling)))
            return recipe.learning_rate * share
        return self.learning_rate

    def after_epoch(self, epoch: int, loss: float, recipe: Recipe) -> "Schedule":
        """Return the schedule after epoch ``epoch`` (from 1) with this criterion."""
        after = self
        improved = self.best_loss is None or loss < self.best_loss
        annealing = self.annealing or not improved
        if improved:
            after = replace(after, best_loss=loss, best_epoch=epoch)
        if annealing:
            rate = self.learning_rate / recipe.schedule.divide_by
            after = replace(after, annealing=True, learning_rate=rate)
        return replace(after, stop_reason=after._stop_reason(epoch, recipe))

    def last_epoch(self, epoch: int, recipe: Recipe) -> float | None:
        """Return how many epochs there will be, as seen from the running one; None if unknown.

        While a plateau's rate is constant, validation decides: only the maximum is known.
        """
        maximum = recipe.maximum_epochs
        if self._may_go_on(recipe):
            return maximum
        schedule = self.after_epoch(epoch, math.inf, recipe)  # by now no loss changes the end
        while schedule.stop_reason is None:
            epoch += 1
            schedule = schedule.after_epoch(epoch, math.inf, recipe)
        return epoch if maximum is None else min(epoch, maximum)

    def _may_go_on(self, recipe: Recipe) -> bool:
        """Whether no learning rate ends the training, as far as is known."""
        kind = recipe.schedule.kind
        return kind == "cosine" or (kind == "plateau" and not self.annealing)

    def _stop_reason(self, epoch: int, recipe: Recipe) -> str | None:
        schedule = recipe.schedule
        if recipe.maximum_epochs is not None and epoch >= recipe.maximum_epochs:
            return f"the recipe's maximum of {recipe.maximum_epochs:g} epochs is reached"
        if self._may_go_on(recipe) or self.learning_rate_at(epoch, recipe) >= schedule.minimum:
            return None
        if schedule.kind == "step":
            return f"the learning rate fell below {schedule.minimum:g}"
        return (
            f"the learning rate, divided by {schedule.divide_by:g} after each epoch since "
            f"validation stopped improving, fell below {schedule.minimum:g}"
        )


class Moment(NamedTuple):
    """An update's place in a training, and the learning rate there."""

    epoch: int  # from 1
    batch: int  # its number in the epoch, from 0
    learning_rate: float  # of its step


@dataclass
class TrainerState:
    """How far a training is."""

    schedule: Schedule  # where the learning rate stands
    learning_rate: float  # that of the last update
    epoch: int  # the running epoch, from 1
    batch: int = 0  # the next batch of it, from 0
    updates: int = 0  # updates made
    loss: float = 0.0  # summed training loss of the running epoch, in nats
    tokens: int = 0  # its target tokens so far
    seconds: float = 0.0  # time spent on it so far; it decides nothing
    history: list[EpochRecord] = field(default_factory=list)  # a record of each finished epoch
    machine: TrainingMachine | None = None  # what made the last update
    validation: Validation | None = None  # of what is exported, once it is

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "TrainerState":
        """Read what ``asdict`` gave."""
        return TypeAdapter(cls).validate_python(fields)

    def begin_update(self, batches: int, recipe: Recipe) -> Moment:
        """Count the next update of an epoch of so many, and return its place."""
        # An update's middle decides: no warm-up begins at 0, and a division comes in time.
        progress = self.epoch - 1 + (self.batch + 0.5) / batches
        self.learning_rate = self.schedule.learning_rate_at(progress, recipe)
        moment = Moment(self.epoch, self.batch, self.learning_rate)
        self.batch += 1
        self.updates += 1
        return moment

    def finish_epoch(
        self, loss: float, full_loss: float | None, recipe: Recipe, bleu: float | None = None
    ) -> EpochRecord:
        """Record the running epoch with its validation losses, and go on to the next one.

        ``full_loss`` is over all types, where the model has a shortlist; ``bleu`` decides, if any.
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
        self.schedule = self.schedule.after_epoch(self.epoch, record.criterion, recipe)
        self.epoch += 1
        self.batch = 0
        self.loss = 0.0
        self.tokens = 0
        self.seconds = 0.0
        return record


def build_optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimizer over the network's parameters.

    ``nesterov`` is the paper's (section 4.2), ``sgd`` the LSTM's (Sutskever et al. 2014, section
    3.4); ``adam`` is for small corpora, with the decay rates usual in translation.
    """
    parameters = network.parameters()
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, recipe.learning_rate, betas=(0.9, 0.98), fused=True)
    momentum = recipe.momentum if recipe.optimizer == "nesterov" else 0.0
    return torch.optim.SGD(
        parameters, recipe.learning_rate, momentum, nesterov=momentum > 0.0, fused=True
    )


def set_learning_rate(
    optimizer: torch.optim.Optimizer, learning_rate: float, velocity: Literal["keep", "rescale"]
) -> None:
    """Set the learning rate; torch's velocity is in units of the gradient.

    A step is learning rate x velocity, so leaving the velocity rescales the step with the rate
    (fairseq), and dividing it by the rate's change keeps the step (fairseq-lua).
    """
    (group,) = optimizer.param_groups
    is_changed = learning_rate not in (0.0, group["lr"])  # 0: the end of a cosine
    if is_changed and velocity == "keep":
        states = optimizer.state.values()
        velocities = [state["momentum_buffer"] for state in states if "momentum_buffer" in state]
        if velocities:
            torch._foreach_mul_(velocities, group["lr"] / learning_rate)
    group["lr"] = learning_rate


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, network: nn.Module
) -> Iterator[tuple[str, Tensor]]:
    """Yield the optimizer's state, each tensor named ``KEY.PARAMETER``."""
    for name, parameter in network.named_parameters():
        for key, value in optimizer.state[parameter].items():
            yield f"{key}.{name}", value


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    network: nn.Module,
    tensors: Mapping[str, Tensor],
    state: TrainerState,
) -> None:
    """Take up what ``optimizer_tensors`` gave; the velocity is in units of the last rate."""
    parameters = dict(network.named_parameters())
    for name, tensor in tensors.items():
        key, parameter = name.split(".", 1)
        # On a CPU the tensor is a view of the state's file, which is replaced but held on the disk.
        optimizer.state[parameters[parameter]][key] = tensor.clone()
    (group,) = optimizer.param_groups
    group["lr"] = state.learning_rate
