"""What is kept of a training: a row for each epoch, and its summary."""

import json
import math
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from convs2s.errors import failures_of_file
from convs2s.files.text import read_lines

IGNORED_BELOW = 1.2
"""A source is as good as ignored where those of other pairs raise perplexity less than so often."""


LARGEST_LOSS = 700.0
"""Nats per token; e to the power of more is no number of a computer's."""


def perplexity(loss: float) -> float:
    """Return e to the power of a loss in nats per token, of ``LARGEST_LOSS`` at most."""
    return math.exp(min(loss, LARGEST_LOSS))


Count = Annotated[int, Field(ge=0, lt=1 << 63)]


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

    epoch: Count
    updates: Count
    learning_rate: float
    train_loss: float
    valid_loss: float
    valid_perplexity: float
    tokens: Count
    tokens_per_second: Count
    valid_perplexity_full: float | None = None


@dataclass(frozen=True)
class History:
    """A training's ``history.jsonl``.

    Attributes:
        epochs: those that were finished.
        stop: why it ended; None where it has not.
    """

    epochs: tuple[EpochRecord, ...]
    stop: str | None


def read_history(path: Path) -> History:
    """Read a training's ``history.jsonl``: a row for each epoch; the last may say why it stopped.

    Raises:
        UserError: the file is missing, or a line is no such row.
    """
    epochs, stop = [], None
    for number, line in enumerate(read_lines(path), start=1):
        expected = "no epoch of a training's history; train again, which goes by the state"
        with failures_of_file(f"{path}:{number}", expected):
            row = json.loads(line)
            if set(row) == {"stop"}:
                stop = None if row["stop"] is None else str(row["stop"])
            else:
                epochs.append(_record().validate_json(line))
    return History(tuple(epochs), stop)


@cache
def _record() -> TypeAdapter[EpochRecord]:
    return TypeAdapter(EpochRecord)


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
class SourceUse:
    """How much the prediction of the validation targets rests on their sources.

    A network without attention can write fluent text that has nothing to do with its source, and
    neither loss nor perplexity tells it from one that translates badly.

    Attributes:
        perplexity: with each pair's own source, over all types.
        permuted_perplexity: with the source of another pair, over all types.
        ratio: the second by the first.
    """

    perplexity: float
    permuted_perplexity: float
    ratio: float

    @classmethod
    def from_losses(cls, own: float, permuted: float) -> "SourceUse":
        """Return it for two validation losses in nats per target token."""
        # Rounded, so that a training that another machine exports again gives the same file.
        rounded = (round(perplexity(one), 4) for one in (own, permuted, permuted - own))
        return cls(*rounded)

    def __str__(self) -> str:
        found = (
            f"validation perplexity {self.perplexity:.2f}, with permuted sources "
            f"{self.permuted_perplexity:.2f}: {self.ratio:.2f} times"
        )
        if self.ratio >= IGNORED_BELOW:
            return found
        return f"warning: the model ignores its source: {found} (docs/training.md)"


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
        source_use: what permuted sources cost them; None where there is but one validation pair.
        shortlist: where the model has one; else None.
    """

    seed: int
    epochs: int
    updates: int
    best_epoch: int
    validation_perplexity: float
    stop_reason: str | None
    parameters: int
    source_use: SourceUse | None
    shortlist: ShortlistFigures | None = None


def without_absent(record: EpochRecord | TrainingSummary) -> dict[str, object]:
    """Return a record's fields, but those that say nothing."""
    return {key: value for key, value in asdict(record).items() if value is not None}
