"""What is recorded of a training: how far it is, a row for each epoch, its summary."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from convs2s.errors import failures_of_file
from convs2s.files.limits import MOST_PROCESSES
from convs2s.files.text import read_lines

IGNORED_BELOW = 1.2
"""A network hardly uses its source if the sources of other pairs raise perplexity by less."""

LARGEST_LOSS = 700.0  # Nats per token; e to the power of more is no number of a computer's


def perplexity(loss: float) -> float:
    """Return e to the power of a loss in nats per token, of ``LARGEST_LOSS`` at most."""
    return math.exp(min(loss, LARGEST_LOSS))


Count = Annotated[int, Field(ge=0, lt=1 << 63)]
_Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]


class TrainingMachine(TypedDict, total=False):
    """What trains: so many workers with so many CPU threads each, and their GPU, if any."""

    workers: _Processes
    threads: _Processes
    processor: object
    gpu: object


Phase = Literal["starting", "training", "exporting", "finished", "stopped", "failed"]
"""``stopped``: saved before the end, to be resumed; ``failed``: ended by an error."""


@dataclass(frozen=True)
class Progress:
    """A training at one moment: what ``progress.json`` says."""

    owner: str  # the process that trains, in the words of the lock
    phase: Phase = "starting"  # what it does
    written: float = 0.0  # when this was written, in seconds since 1970
    state: str = ""  # name of the folder of its states, beside this file
    why: str | None = None  # why it was stopped or has failed, or why training ended; else None
    epoch: int = 0  # the running epoch, from 1; 0 before the first
    epochs: float | None = None  # how many there will be, or None where validation decides
    batch: int = 0  # updates of the epoch so far
    batches: int = 0  # updates of the epoch
    updates: int = 0  # made since the training began
    loss: float | None = None  # mean training loss of the epoch so far, in nats per target token
    learning_rate: float | None = None  # of the last update
    gradient: float | None = None  # its gradient's norm before clipping
    perplexity: float | None = None  # validation perplexity after the last finished epoch
    best_epoch: int = 0  # by the recipe's best_by; 0 before the first
    tokens_per_second: int | None = None  # target tokens
    seconds_of_epoch: float | None = None  # left of the epoch
    seconds: float | None = None  # left of the training, where its end is known


@dataclass(frozen=True)
class EpochRecord:
    """A finished epoch."""

    epoch: Count  # its number, from 1
    updates: Count  # made since the training began
    learning_rate: float  # of its last update
    # mean loss over it, in nats per target token, smoothed where the recipe says so
    train_loss: float
    valid_loss: float  # validation loss after it, in nats per target token
    valid_perplexity: float  # e to the power of that
    tokens: Count  # its target tokens, ``</s>`` counted
    tokens_per_second: Count  # of them
    # over all types, where the model has a shortlist; else None
    valid_perplexity_full: float | None = None
    valid_bleu: float | None = None  # of validation pairs, where ``best_by`` asks for it
    machine: TrainingMachine | None = None  # what made its last update, maybe after others

    @property
    def criterion(self) -> float:
        """What is lower in a better epoch: minus its BLEU where it has one, else its loss."""
        return self.valid_loss if self.valid_bleu is None else -self.valid_bleu

    def line(self, epochs: float | None) -> str:
        """Return it as a line of a log; ``epochs``: how many there will be, where it is known."""
        number = f"{self.epoch:3d}"
        if epochs is not None:
            number += f"/{math.ceil(epochs)}"
        bleu = "" if self.valid_bleu is None else f"BLEU {self.valid_bleu:.2f}  "
        return (
            f"epoch {number}  updates {self.updates:6d}  rate {self.learning_rate:g}  "
            f"train loss {self.train_loss:.3f}  validation perplexity {self.valid_perplexity:.3f}  "
            f"{bleu}{self.tokens_per_second:,} tokens/s"
        )


def without_absent(record: EpochRecord) -> dict[str, object]:
    """Return a record's fields, but those that say nothing."""
    return {key: value for key, value in asdict(record).items() if value is not None}


@dataclass(frozen=True)
class History:
    """A training's ``history.jsonl``: its finished epochs, and why it ended, if it has."""

    epochs: tuple[EpochRecord, ...]
    stop: str | None


def read_history(path: Path) -> History:
    """Read a training's ``history.jsonl``: a row for each epoch; the last may say why it stopped.

    Raises:
        UserError: The file is missing, or a line is no such row.
    """
    epochs = []
    stop = None
    record = TypeAdapter(EpochRecord)
    expected = "no epoch of a training's history; train again, which goes by the state"
    for number, line in enumerate(read_lines(path), start=1):
        with failures_of_file(f"{path}:{number}", expected):
            row = json.loads(line)
            if set(row) == {"stop"}:
                stop = None if row["stop"] is None else str(row["stop"])
            else:
                epochs.append(record.validate_json(line))
    return History(tuple(epochs), stop)


@dataclass(frozen=True)
class SourceUse:
    """How much the prediction of the validation targets rests on their sources.

    A network without attention can write fluent text that has nothing to do with its source, and
    neither loss nor perplexity tells it from one that translates badly.
    """

    perplexity: float  # with each pair's own source, over all types
    permuted_perplexity: float  # with the source of another pair, over all types
    ratio: float  # the second by the first

    def __str__(self) -> str:
        figures = (
            f"validation perplexity {self.perplexity:.2f}, with permuted sources "
            f"{self.permuted_perplexity:.2f}: {self.ratio:.2f} times"
        )
        if self.ratio >= IGNORED_BELOW:
            return figures
        return f"warning: the model ignores its source: {figures} (docs/training.md)"


@dataclass(frozen=True)
class Validation:
    """What the exported parameters give on the validation data.

    The state keeps it for later exports: another machine would round differently, and a training
    that starts from the model is known by the bytes of its file.
    """

    loss: float  # in nats per target token
    source_use: SourceUse | None  # None where there is but one pair
