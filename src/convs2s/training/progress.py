"""What others see of a training while it runs; nothing here decides what the training does.

On a terminal there is a bar, in a log a line now and then. ``Watch`` writes the files: progress,
history, and TensorBoard's events. The package ``tensorboard`` is an extra: it is imported where a
training asks for it, and nowhere else.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from tqdm import tqdm

from convs2s.errors import UserError
from convs2s.files.atomic import writing
from convs2s.files.checksums import forget_checksums
from convs2s.files.text import write_lines
from convs2s.training.history import EpochRecord, RunningFigures, without_absent
from convs2s.training.log import duration, label, log, on_terminal
from convs2s.training.state_folder import ProgressFile

QUIET_SECONDS = 60.0  # Seconds between two lines in a log
MOVING_SECONDS = 0.2  # Seconds between two moves of the bar on a terminal

EVENTS = "tensorboard"
"""Name of the folder of TensorBoard's event files, in that of a training's states."""

UNSHOWN = {"epoch", "updates", "tokens", "machine"}
"""What TensorBoard does not show of a finished epoch: its axis has it, or it is no number."""


class EventFile:
    """TensorBoard's events of one training: scalars by the number of updates made."""

    def __init__(self, folder: Path) -> None:
        """Name the folder of the event files; nothing is written before ``begin``.

        Raises:
            UserError: The package is not installed.
        """
        try:
            import tensorboard.compat.proto.event_pb2
            import tensorboard.summary.writer.event_file_writer  # noqa: F401
        except ImportError as error:
            raise UserError(
                f"training.tensorboard: the package tensorboard is not installed ({error}): "
                "pip install 'convs2s[tensorboard]', or set it to false"
            ) from None
        self.folder = folder
        self._writer: Any = None

    def begin(self, updates: int) -> set[str]:
        """Go on after so many updates: later events of a try that was killed are left out.

        Return what is kept: ``TAG STEP`` of each scalar.
        """
        from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        before = sorted(self.folder.glob("events.out.tfevents.*"))
        kept: dict[bytes, Any] = {}  # once: a kill below leaves the old files beside the new one
        for path in before:
            for event in LegacyEventFileLoader(str(path)).Load():  # one that was cut short ends it
                if event.HasField("summary") and event.step <= updates:
                    kept[event.SerializeToString()] = event
        names = set()
        with writing(self.folder):
            self._writer = EventFileWriter(str(self.folder))
            for event in kept.values():
                self._writer.add_event(event)
                names |= {f"{value.tag} {event.step}" for value in event.summary.value}
            self._writer.flush()
        for path in before:
            path.unlink()
        return names

    def add(self, updates: int, group: str, scalars: Mapping[str, object]) -> None:
        """Add scalars of a group after so many updates."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=f"{group}/{name}", simple_value=value)
            for name, value in scalars.items()
        ]
        event = Event(wall_time=time.time(), step=updates, summary=Summary(value=values))
        with suppress(OSError):  # a disk that is full ends no training over this file
            self._writer.add_event(event)
            self._writer.flush()


class Watch:
    """The files that are written for watchers."""

    def __init__(
        self, progress: ProgressFile, history: Path | None = None, events: EventFile | None = None
    ) -> None:
        """Write to these; ``history``: where ``history.jsonl`` grows meanwhile, if it does."""
        self.progress = progress
        self._history = history
        self._events = events

    def begin(self, epochs: Sequence[EpochRecord], best_epoch: int, updates: int) -> None:
        """Say where a training begins, or resumes: after these epochs and updates."""
        self._write_epochs(epochs, best_epoch)
        self.progress.update(updates=updates)  # a state may be from the middle of an epoch
        if self._events is not None:
            kept = self._events.begin(updates)
            for record in epochs:  # a kill may have come between a state and its events
                if f"epoch/valid_loss {record.updates}" not in kept:
                    self._add_events(record)

    def note(self, updates: int, figures: RunningFigures, speed: int, **counts: object) -> None:
        """Note how far an epoch is: target tokens a second, and counts of ``Progress``."""
        scalars = asdict(figures) | {"tokens_per_second": speed}
        self.progress.update(updates=updates, **scalars, **counts)
        if self._events is not None:
            self._events.add(updates, "running", scalars)

    def end_epoch(self, epochs: Sequence[EpochRecord], best_epoch: int) -> None:
        """Say what the finished epochs gave; their state is saved already."""
        self._write_epochs(epochs, best_epoch)
        self._add_events(epochs[-1])

    def _add_events(self, record: EpochRecord) -> None:
        if self._events is not None:
            stated = without_absent(record)
            scalars = {name: stated[name] for name in stated.keys() - UNSHOWN}
            self._events.add(record.updates, "epoch", scalars)

    def _write_epochs(self, epochs: Sequence[EpochRecord], best_epoch: int) -> None:
        if epochs:
            last = epochs[-1]
            self.progress.update(
                updates=last.updates,
                loss=last.train_loss,
                perplexity=last.valid_perplexity,
                tokens_per_second=last.tokens_per_second,
                best_epoch=best_epoch,
            )
        if self._history is not None:
            write_history(self._history, epochs)


def write_history(path: Path, epochs: Sequence[EpochRecord], *end: dict[str, str | None]) -> None:
    """Write ``history.jsonl`` whole: a row for each epoch, and for why training ended.

    It is renamed, not appended to, so that a kill leaves whole rows of epochs that a state has.
    """
    forget_checksums([path])
    rows = [*map(without_absent, epochs), *end]
    write_lines(path, (json.dumps(row, sort_keys=True) for row in rows))


@dataclass(frozen=True)
class EpochSpan:
    """Which epoch it is, and how far it reaches."""

    epoch: int  # its number, from 1
    epochs: float | None  # how many there will be, or None where validation decides
    batches: int  # its updates
    whole: int  # those of an epoch that is trained whole
    done: int = 0  # those made before this try
    updates: int = 0  # all that the training made before

    def __str__(self) -> str:
        if self.epochs is None:
            return f"epoch {self.epoch}"
        return f"epoch {self.epoch}/{ceil(self.epochs)}"


class EpochProgress:
    """The running epoch; on a terminal a bar that moves, in a log a line now and then."""

    def __init__(self, span: EpochSpan, watch: Watch, *, silent: bool) -> None:
        """Begin to watch an epoch; ``silent``: say nothing of it, as another worker does."""
        self._span = span
        self._watch = watch
        self._silent = silent
        self._terminal = on_terminal()
        self._seconds = MOVING_SECONDS if self._terminal else QUIET_SECONDS
        self._started = time.monotonic()
        self._last_line = self._started
        self._made = 0  # updates of this try
        self._tokens = 0  # their target tokens
        self._bar = tqdm(
            total=span.batches,
            initial=span.done,
            desc=f"{label()}{span}",
            unit="update",
            leave=False,
            disable=silent or not self._terminal,
            mininterval=MOVING_SECONDS,
        )
        watch.progress.update(
            phase="training",
            epoch=span.epoch,
            epochs=span.epochs,
            batches=span.batches,
            batch=span.done,
        )

    def is_due(self) -> bool:
        """Return whether it is time for a line, or for the files."""
        return self._is_line_due() or self._watch.progress.is_due()

    def _is_line_due(self) -> bool:
        return time.monotonic() - self._last_line >= self._seconds

    def advance(self, updates: int, tokens: int, figures: RunningFigures) -> None:
        """Count updates and their target tokens, and say how far the epoch is where that is due."""
        self._made += updates
        self._tokens += tokens
        span = self._span
        done = span.done + self._made
        elapsed = time.monotonic() - self._started
        speed = self._tokens / max(elapsed, 1e-9)
        seconds_of_update = elapsed / self._made
        seconds_of_epoch = seconds_of_update * (span.batches - done)
        seconds = None  # left of the training
        if span.epochs is not None:
            later_updates = max(0.0, span.epochs - span.epoch) * span.whole
            seconds = seconds_of_epoch + seconds_of_update * later_updates
        if self._is_line_due():
            self._last_line = time.monotonic()
            row = f"{speed:,.0f} tokens/s, loss {figures.loss:.3f}, gradient {figures.gradient:.3f}"
            later = "" if seconds is None else f", {duration(seconds)} of the training"
            if self._terminal:
                self._bar.set_postfix_str(f"{row}{later}", refresh=False)
            elif not self._silent:
                left = f"left: {duration(seconds_of_epoch)} of the epoch{later}"
                log(f"{span}, update {done}/{span.batches}, {row}, {left}")
        self._bar.update(updates)
        if self._watch.progress.is_due():
            self._watch.note(
                span.updates + self._made,
                figures,
                round(speed),
                batch=done,
                seconds_of_epoch=seconds_of_epoch,
                seconds=seconds,
            )

    def __enter__(self) -> "EpochProgress":
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()
