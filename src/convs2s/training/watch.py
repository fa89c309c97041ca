"""What others see of a training while it runs: its progress, its history, TensorBoard's events."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convs2s.files.checksums import forget_checksums
from convs2s.files.text import atomic_text
from convs2s.training.history import EpochRecord, without_absent
from convs2s.training.progress_file import ProgressFile
from convs2s.training.schedule import Schedule
from convs2s.training.tensorboard import EventFile

RUNNING_SCALARS = ("loss", "learning_rate", "gradient", "tokens_per_second")
"""What TensorBoard shows of a running epoch."""

COUNTS = {"epoch", "updates", "tokens"}
"""What it does not show of a finished one: its axis has them."""


class Watch:
    """Everything that is written for watchers; nothing of it decides what a training does."""

    def __init__(
        self,
        progress: ProgressFile,
        history: Path | None = None,
        events: EventFile | None = None,
    ) -> None:
        """Write to these.

        Args:
            progress: how far the training is.
            history: where its ``history.jsonl`` grows; None: nowhere.
            events: TensorBoard's; None: none.
        """
        self._progress, self._history, self._events = progress, history, events

    def begin(self, epochs: Sequence[EpochRecord], schedule: Schedule, updates: int) -> None:
        """Say where a training begins, or goes on.

        Args:
            epochs: those that are finished.
            schedule: where it stands after them.
            updates: made so far.
        """
        self._progress.update(updates=updates)
        self._say_epochs(epochs, schedule)
        if self._events is not None:
            there = self._events.begin(updates)
            for one in epochs:  # a kill may have come between a state and its events
                if f"epoch/valid_loss {one.updates}" not in there:
                    self._add_epoch(one)

    def begin_epoch(self, epoch: int, epochs: float | None, batches: int, done: int) -> None:
        """Say which epoch runs, of how many, its updates and those that are made."""
        self._progress.update(
            phase="training", epoch=epoch, epochs=epochs, batches=batches, batch=done
        )

    def is_due(self) -> bool:
        """Return whether it is time for ``note``."""
        return self._progress.is_due()

    def note(self, **figures: Any) -> None:
        """Note fields of ``Progress`` in the middle of an epoch."""
        self._progress.update(**figures)
        if self._events is not None:
            tags = {f"running/{name}": figures[name] for name in RUNNING_SCALARS}
            self._events.add(figures["updates"], tags)

    def end_epoch(self, epochs: Sequence[EpochRecord], schedule: Schedule) -> None:
        """Say what the finished epochs gave; their state is saved already."""
        self._say_epochs(epochs, schedule)
        self._add_epoch(epochs[-1])

    def _add_epoch(self, record: EpochRecord) -> None:
        if self._events is not None:
            stated = without_absent(record)
            tags = {f"epoch/{name}": stated[name] for name in stated.keys() - COUNTS}
            self._events.add(record.updates, tags)

    def _say_epochs(self, epochs: Sequence[EpochRecord], schedule: Schedule) -> None:
        if epochs:
            self._progress.update(
                updates=epochs[-1].updates,
                loss=epochs[-1].train_loss,
                perplexity=epochs[-1].valid_perplexity,
                tokens_per_second=epochs[-1].tokens_per_second,
                best_epoch=schedule.best_epoch,
            )
        if self._history is not None:
            write_history(self._history, epochs)


def write_history(
    path: Path, epochs: Sequence[EpochRecord], *ending: dict[str, str | None]
) -> None:
    """Write ``history.jsonl`` whole: a row for each epoch, and for why training ended.

    It is renamed, not appended to, so that a kill leaves whole rows of epochs that a state has.
    """
    forget_checksums([path])
    with atomic_text(path) as stream:
        for row in [*map(without_absent, epochs), *ending]:
            stream.write(json.dumps(row, sort_keys=True) + "\n")
