"""What is kept of a training: a row for each epoch, and its summary."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class EpochRecord:
    """A finished epoch.

    Attributes:
        epoch: its number, from 1.
        updates: made since the training began.
        learning_rate: of its last update.
        train_loss: mean loss over it, in nats per target token, smoothed where the recipe says so.
        valid_loss: validation loss after it, in nats per target token.
        valid_perplexity: e to the power of that.
        tokens: its target tokens, ``</s>`` counted.
        tokens_per_second: of them.
        valid_perplexity_full: over all types, where the model has a shortlist; else None.
    """

    epoch: int
    updates: int
    learning_rate: float
    train_loss: float
    valid_loss: float
    valid_perplexity: float
    tokens: int
    tokens_per_second: int
    valid_perplexity_full: float | None = None


@dataclass(frozen=True)
class ShortlistFigures:
    """What validation perplexity over a shortlist rests on.

    Attributes:
        types: target types of a validation batch on average.
        outside: share of the reference tokens that are outside and therefore count as unknown.
    """

    types: float
    outside: float


@dataclass(frozen=True)
class TrainingSummary:
    """What ``training.json`` and the model file say of a training.

    Attributes:
        seed: of the initialization, the data order and dropout.
        epochs: that were finished.
        updates: that were made.
        best_epoch: that with the lowest validation loss.
        validation_perplexity: of the weights that were exported.
        stop_reason: why training ended, in words.
        parameters: their number.
        shortlist: where the model has one; else None.
    """

    seed: int
    epochs: int
    updates: int
    best_epoch: int
    validation_perplexity: float
    stop_reason: str | None
    parameters: int
    shortlist: ShortlistFigures | None = None


def without_absent(record: EpochRecord | TrainingSummary) -> dict[str, object]:
    """Return a record's fields, but those that say nothing."""
    return {key: value for key, value in asdict(record).items() if value is not None}
