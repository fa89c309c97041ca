"""The records of a training: its progress, a row for each epoch, and its validation figures."""

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
"""A network hardly uses its source if ``SourceUse.ratio`` is below this number."""

LARGEST_LOSS = 700.0
"""Largest loss in nats per token whose perplexity is computed; exp(710) overflows a float."""

LOWEST_BLEU = 5.0
"""BLEU below this says little about a model: chance matches change it from epoch to epoch."""

EpochCriterion = tuple[float, float]
"""Two numbers by which epochs are compared: the second decides if the first is equal.

Lower is better.
"""


def epoch_criterion(loss: float, bleu: float | None) -> EpochCriterion:
    """Return the criterion of an epoch: minus its BLEU, then its validation loss.

    A BLEU below ``LOWEST_BLEU`` counts as 0. Without ``best_by``, ``bleu`` is None, which counts as
    0 as well. The loss then decides alone.
    """
    if bleu is None or bleu < LOWEST_BLEU:
        bleu = 0.0
    return -bleu, loss


def perplexity(loss: float) -> float:
    """Return e to the power of a loss in nats per token, or of ``LARGEST_LOSS`` if it is larger."""
    return math.exp(min(loss, LARGEST_LOSS))


Count = Annotated[int, Field(ge=0, lt=1 << 63)]
_Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]


class TrainingMachine(TypedDict, total=False):
    """The machine or machines of a training."""

    workers: _Processes  # number of workers, over all machines
    threads: _Processes  # CPU threads of each worker
    processor: object  # name of the CPU
    gpu: object  # name of the GPU; absent without one


Phase = Literal["starting", "training", "exporting", "finished", "stopped", "failed"]
"""``stopped``: ended early and can be resumed; ``failed``: ended by an error."""


@dataclass(frozen=True)
class Progress:
    """The content of ``progress.json``: a training at one moment."""

    owner: str  # the process that trains, as in the lock file: "process PID on HOST"
    phase: Phase = "starting"
    written: float = 0.0  # time of writing, in seconds since 1970
    state: str = ""  # name of the folder of states, which is beside this file
    # Why the training has stopped, failed or finished; None before.
    why: str | None = None
    epoch: int = 0  # number of the running epoch, from 1; 0 before the first
    # Epochs of the whole training; None if validation decides.
    epochs: float | None = None
    batch: int = 0  # updates made in the running epoch
    batches: int = 0  # all updates of the running epoch
    updates: int = 0  # updates made since the beginning of the training
    # Mean training loss of the epoch so far, in nats per target token.
    loss: float | None = None
    learning_rate: float | None = None  # learning rate of the last update
    gradient: float | None = None  # norm of the last update's gradient before clipping
    # Validation perplexity after the last finished epoch.
    perplexity: float | None = None
    # The best epoch so far; 0 before the first epoch has ended.
    best_epoch: int = 0
    tokens_per_second: int | None = None  # target tokens per second
    seconds_of_epoch: float | None = None  # seconds until the end of the epoch
    # Seconds until the end of the training; None if the end is unknown.
    seconds: float | None = None


@dataclass(frozen=True)
class EpochRecord:
    """The record of a finished epoch: a row of ``history.jsonl``."""

    epoch: Count  # number of the epoch, from 1
    # Updates from the beginning of the training to the end of this epoch.
    updates: Count
    learning_rate: float  # learning rate of the last update
    # Mean training loss, in nats per target token; with the recipe's label smoothing.
    train_loss: float
    valid_loss: float  # validation loss after the epoch, in nats per target token
    valid_perplexity: float  # perplexity of valid_loss
    tokens: Count  # number of target tokens, including ``</s>``
    tokens_per_second: Count  # target tokens per second
    # Validation perplexity over all types, if the model has a shortlist; else None.
    valid_perplexity_full: float | None = None
    # BLEU of validation pairs if best_by is bleu; else None.
    valid_bleu: float | None = None
    # The machine of the last update. Earlier updates may have been made on other machines.
    machine: TrainingMachine | None = None

    @property
    def criterion(self) -> EpochCriterion:
        """The criterion, which is lower for a better epoch."""
        return epoch_criterion(self.valid_loss, self.valid_bleu)

    def line(self, epochs: float | None) -> str:
        """Return the record as a line of the log.

        ``epochs`` is the number of epochs of the whole training, or None if it is unknown.
        """
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
    """Return the fields of a record that are not None."""
    return {key: value for key, value in asdict(record).items() if value is not None}


@dataclass(frozen=True)
class History:
    """The content of a training's ``history.jsonl``."""

    epochs: tuple[EpochRecord, ...]  # the finished epochs, in order
    stop: str | None  # why the training ended; None if it has not


def read_history(path: Path) -> History:
    """Read a training's ``history.jsonl``.

    Each row is an epoch. The last row may be ``{"stop": REASON}``, if the training has ended.

    Raises:
        UserError: The file is missing, or a line is not such a row.
    """
    epochs = []
    stop = None
    record = TypeAdapter(EpochRecord)
    expected = (
        "not an epoch of a training's history; run the training again, which writes its history "
        "from the state"
    )
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
    """How much the predictions of the validation targets depend on their sources.

    A network without attention can write fluent text that has nothing to do with its source. The
    loss alone does not distinguish such a network from one that translates badly.
    """

    perplexity: float  # validation perplexity over all types
    # The same, but with the source of another pair for each target.
    permuted_perplexity: float
    ratio: float  # permuted_perplexity / perplexity

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
    """Validation figures of the exported parameters.

    They are kept in the state and used again if the model is exported again. Another machine would
    compute slightly different figures, and so write other bytes into the model file. The checksum
    of that file identifies trainings that start from the model.
    """

    loss: float  # in nats per target token
    source_use: SourceUse | None  # None if there is only one validation pair
