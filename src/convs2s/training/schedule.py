"""The learning rate: constant until validation stops improving, then divided after every epoch."""

from dataclasses import dataclass, replace

from convs2s.training.recipe import Recipe


@dataclass(frozen=True)
class Schedule:
    """Where the plateau schedule stands (paper, section 4.2).

    Attributes:
        learning_rate: of the next epoch.
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

    def after_epoch(self, epoch: int, loss: float, recipe: Recipe) -> "Schedule":
        """Return the schedule after epoch ``epoch`` (from 1) with this validation loss."""
        bound = self.previous_loss if recipe.compare == "previous" else self.best_loss
        annealing = self.annealing or (bound is not None and loss >= bound)
        rate = self.learning_rate / recipe.divide_by if annealing else self.learning_rate
        improved = self.best_loss is None or loss < self.best_loss
        stop_reason = None
        if rate < recipe.minimum:
            stop_reason = (
                f"the learning rate, divided by {recipe.divide_by:g} after each epoch since "
                f"validation stopped improving, fell below {recipe.minimum:g}"
            )
        elif epoch == recipe.maximum_epochs:
            stop_reason = f"the recipe's maximum of {epoch} epochs is reached"
        return replace(
            self,
            learning_rate=rate,
            annealing=annealing,
            previous_loss=loss,
            best_loss=loss if improved else self.best_loss,
            best_epoch=epoch if improved else self.best_epoch,
            stop_reason=stop_reason,
        )
