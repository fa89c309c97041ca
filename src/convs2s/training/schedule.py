"""The learning rate, and when training ends.

Shapes of a schedule: ``plateau`` (paper, section 4.2) is constant until validation stops improving,
then divided after every epoch; ``step`` is divided at fixed times (Sutskever et al. 2014, section
3.4: every half epoch after the fifth); ``cosine`` rises for a while and falls to 0 at the end.
"""

import math
from dataclasses import dataclass, replace

from convs2s.config.model import Recipe


@dataclass(frozen=True)
class Schedule:
    """Where the schedule stands.

    Attributes:
        learning_rate: of the next epoch, as far as validation decides it.
        annealing: whether an epoch has failed to improve: from then on every epoch divides.
        previous_loss: validation loss of the last epoch, or None before the first.
        best_loss: the lowest validation loss so far, or None.
        best_epoch: its epoch, from 1; 0 before the first.
        stop_reason: why training is over, in words, or None.
    """

    learning_rate: float
    annealing: bool = False
    previous_loss: float | None = None
    best_loss: float | None = None
    best_epoch: int = 0
    stop_reason: str | None = None

    def learning_rate_at(self, progress: float, recipe: Recipe) -> float:
        """Return the learning rate of an update; ``progress`` epochs are finished before it."""
        if recipe.schedule.kind == "step":
            divisions = (
                math.floor((progress - recipe.schedule.hold) / recipe.schedule.every + 1e-9) + 1
            )
            return recipe.learning_rate / recipe.schedule.divide_by ** max(0, divisions)
        if recipe.schedule.kind == "cosine":
            return recipe.learning_rate * _cosine(progress, recipe)
        return self.learning_rate

    def after_epoch(self, epoch: int, loss: float, recipe: Recipe) -> "Schedule":
        """Return the schedule after epoch ``epoch`` (from 1) with this validation loss."""
        # Until the first loss that is no better, the previous one is the best as well.
        previous = self.previous_loss
        annealing = self.annealing or (previous is not None and loss >= previous)
        learning_rate = (
            self.learning_rate / recipe.schedule.divide_by if annealing else self.learning_rate
        )
        improved = self.best_loss is None or loss < self.best_loss
        after = replace(
            self,
            learning_rate=learning_rate,
            annealing=annealing,
            previous_loss=loss,
            best_loss=loss if improved else self.best_loss,
            best_epoch=epoch if improved else self.best_epoch,
        )
        return replace(after, stop_reason=after._stop_reason(epoch, recipe))

    def last_epoch(self, epoch: int, recipe: Recipe) -> float | None:
        """Return how many epochs there will be, as seen from the running one; None if unknown.

        While a plateau's rate is constant, validation decides: then the recipe's maximum is all
        that is known.
        """
        decided, at = None, self
        if recipe.schedule.kind == "step" or (recipe.schedule.kind == "plateau" and self.annealing):
            decided = epoch
            loss = math.inf if self.previous_loss is None else self.previous_loss
            while (at := at.after_epoch(decided, loss, recipe)).stop_reason is None:
                decided += 1
        maximum = recipe.maximum_epochs
        return min((one for one in (decided, maximum) if one is not None), default=None)

    def _stop_reason(self, epoch: int, recipe: Recipe) -> str | None:
        if recipe.maximum_epochs is not None and epoch >= recipe.maximum_epochs:
            return f"the recipe's maximum of {recipe.maximum_epochs:g} epochs is reached"
        if (
            recipe.schedule.kind == "cosine"
            or self.learning_rate_at(epoch, recipe) >= recipe.schedule.minimum
        ):
            return None
        if recipe.schedule.kind == "step":
            return f"the learning rate fell below {recipe.schedule.minimum:g}"
        return (
            f"the learning rate, divided by {recipe.schedule.divide_by:g} after each epoch since "
            f"validation stopped improving, fell below {recipe.schedule.minimum:g}"
        )


def _cosine(progress: float, recipe: Recipe) -> float:
    """Return the share of the learning rate: linear in the warm-up, then half a cosine to 0."""
    if recipe.maximum_epochs is None:
        raise ValueError("a cosine schedule needs maximum_epochs")
    if progress < recipe.schedule.warmup:
        return progress / recipe.schedule.warmup
    falling = (progress - recipe.schedule.warmup) / (recipe.maximum_epochs - recipe.schedule.warmup)
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, falling)))
