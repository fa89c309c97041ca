"""What others see of a training while it runs; nothing here decides what the training does.

On a terminal there is a bar, in a log a line now and then. ``Watch`` writes the files: progress,
history, and TensorBoard's events. The package ``tensorboard`` is an extra: it is imported where a
training asks for it, and nowhere else.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any

from tqdm import tqdm

from convs2s.errors import UserError
from convs2s.files.atomic import writing
from convs2s.files.checksums import forget_checksums
from convs2s.files.text import write_lines
from convs2s.training.history import EpochRecord, without_absent
from convs2s.training.log import duration, label, log, on_terminal
from convs2s.training.schedule import TrainerState
from convs2s.training.state_folder import ProgressFile

QUIET_SECONDS = 60.0  # Seconds between two lines in a log
MOVING_SECONDS = 0.2  # Seconds between two moves of the bar on a terminal

EVENTS = "tensorboard"
"""Name of the folder of TensorBoard's event files, in that of a training's states."""

UNSHOWN = {"epoch", "updates", "tokens", "machine"}
"""What TensorBoard does not show of a finished epoch: its axis has it, or it is no number."""


class Watch:
    """The files that are written for watchers."""

    def __init__(
        self,
        progress: ProgressFile,
        history: Path | None = None,
        events: Path | None = None,
        *,
        silent: bool = False,
    ) -> None:
        """Write to these: ``history.jsonl`` and the folder of TensorBoard's events, if given.

        ``silent``: have the training say nothing of its epochs, as another worker does.

        Raises:
            UserError: There is to be a folder of events, and TensorBoard is not installed.
        """
        self.progress = progress
        self.silent = silent
        self._history = history
        self._events = events
        self._writer: Any = None
        if events is not None:
            try:
                import tensorboard  # noqa: F401
            except ImportError as error:
                raise UserError(
                    f"training.tensorboard: the package tensorboard is not installed ({error}): "
                    "pip install 'convs2s[tensorboard]', or set it to false"
                ) from None

    def begin(self, state: TrainerState) -> None:
        """Say where a training begins, or resumes."""
        if self._events is not None:
            from torch.utils.tensorboard import SummaryWriter

            is_within_an_epoch = state.batch > 0
            first = state.updates + int(is_within_an_epoch)
            with writing(self._events):
                # What a try that was killed wrote of later steps TensorBoard leaves out.
                self._writer = SummaryWriter(str(self._events), purge_step=first)
            # A kill may have come between the state of an epoch's end and the epoch's events.
            if state.history and not is_within_an_epoch:
                self._add_epoch(state.history[-1])
        self._write_epochs(state)

    def end_epoch(self, state: TrainerState) -> None:
        """Say what the finished epochs gave; their state is saved already."""
        self._write_epochs(state)
        self._add_epoch(state.history[-1])

    def add_events(self, updates: int, group: str, scalars: Mapping[str, object]) -> None:
        """Show a group's scalars after so many updates on TensorBoard, if there is one."""
        if self._writer is not None:
            with suppress(OSError):  # a disk that is full ends no training over this file
                for name, value in scalars.items():
                    self._writer.add_scalar(f"{group}/{name}", value, updates)
                self._writer.flush()

    def _add_epoch(self, record: EpochRecord) -> None:
        stated = without_absent(record)
        scalars = {name: stated[name] for name in stated.keys() - UNSHOWN}
        self.add_events(record.updates, "epoch", scalars)

    def _write_epochs(self, state: TrainerState) -> None:
        self.progress.update(updates=state.updates, best_epoch=state.schedule.best_epoch)
        if state.history:
            last = state.history[-1]
            self.progress.update(
                loss=last.train_loss,
                perplexity=last.valid_perplexity,
                tokens_per_second=last.tokens_per_second,
            )
        if self._history is not None:
            write_history(self._history, state.history)


def write_history(path: Path, epochs: Sequence[EpochRecord], *end: dict[str, str | None]) -> None:
    """Write ``history.jsonl`` whole: a row for each epoch, and for why training ended.

    It is renamed, not appended to, so that a kill leaves whole rows of epochs that a state has.
    """
    forget_checksums([path])
    rows = [*map(without_absent, epochs), *end]
    write_lines(path, (json.dumps(row, sort_keys=True) for row in rows))


class EpochProgress:
    """The running epoch; on a terminal a bar that moves, in a log a line now and then."""

    def __init__(
        self, state: TrainerState, epochs: float | None, batches: int, whole: int, watch: Watch
    ) -> None:
        """Begin to watch the epoch that a state is in; the bar is closed at its end.

        Args:
            state: of the training, which changes as the epoch goes on.
            epochs: how many there will be, or None where validation decides.
            batches: updates of this epoch.
            whole: those of an epoch that is trained whole.
            watch: the files to write.
        """
        self._state = state
        self._epochs = epochs
        self._batches = batches
        self._whole = whole
        self._watch = watch
        self._terminal = on_terminal()
        self._started = time.monotonic()
        self._last_line = self._started
        self._batch_before = state.batch
        self._tokens_before = state.tokens
        self._name = f"epoch {state.epoch}"
        if epochs is not None:
            self._name += f"/{ceil(epochs)}"
        self.bar = tqdm(
            total=batches,
            initial=state.batch,
            desc=f"{label()}{self._name}",
            unit="update",
            leave=False,
            disable=watch.silent or not self._terminal,
            mininterval=MOVING_SECONDS,
        )
        watch.progress.update(
            phase="training",
            epoch=state.epoch,
            epochs=epochs,
            batches=batches,
            batch=state.batch,
        )

    def is_due(self) -> bool:
        """Return whether it is time for a line, or for the files."""
        return self._is_line_due() or self._watch.progress.is_due()

    def _is_line_due(self) -> bool:
        seconds = MOVING_SECONDS if self._terminal else QUIET_SECONDS
        return time.monotonic() - self._last_line >= seconds

    def advance(self, gradient: float) -> None:
        """Say how far the state is, where that is due; ``gradient``: the last one's norm."""
        state = self._state
        loss = state.loss / state.tokens
        elapsed = time.monotonic() - self._started
        speed = (state.tokens - self._tokens_before) / max(elapsed, 1e-9)
        seconds_of_update = elapsed / (state.batch - self._batch_before)
        seconds_of_epoch = seconds_of_update * (self._batches - state.batch)
        seconds = None  # left of the training
        if self._epochs is not None:
            later_updates = max(0.0, self._epochs - state.epoch) * self._whole
            seconds = seconds_of_epoch + seconds_of_update * later_updates
        if self._is_line_due():
            self._last_line = time.monotonic()
            row = f"{speed:,.0f} tokens/s, loss {loss:.3f}, gradient {gradient:.3f}"
            later = "" if seconds is None else f", {duration(seconds)} of the training"
            if self._terminal:
                self.bar.set_postfix_str(f"{row}{later}", refresh=False)
            elif not self._watch.silent:
                left = f"left: {duration(seconds_of_epoch)} of the epoch{later}"
                log(f"{self._name}, update {state.batch}/{self._batches}, {row}, {left}")
        self.bar.update(state.batch - self.bar.n)
        if self._watch.progress.is_due():
            scalars = {
                "loss": loss,
                "learning_rate": state.learning_rate,
                "gradient": gradient,
                "tokens_per_second": round(speed),
            }
            self._watch.add_events(state.updates, "running", scalars)
            self._watch.progress.update(
                updates=state.updates,
                batch=state.batch,
                seconds_of_epoch=seconds_of_epoch,
                seconds=seconds,
                **scalars,
            )
