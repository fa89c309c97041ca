"""Show the progress of a training: a bar or log lines, and files. This never affects the model.

``EpochProgress`` shows a bar on a terminal, and otherwise logs a line from time to time. ``Watch``
writes ``progress.json``, ``history.jsonl`` and TensorBoard's events. The package ``tensorboard`` is
an optional dependency, so it is imported only if a training writes events.

A training ends with an error if ``tensorboard`` is missing, if ``history.jsonl`` cannot be written,
or if the folder of events cannot be created. Errors of writing single events are ignored.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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

LINE_SECONDS = 60.0  # Seconds between two lines in a log
BAR_SECONDS = 0.2  # Seconds between two changes of the bar on a terminal

EVENTS = "tensorboard"
"""Name of the folder of TensorBoard's event files, in the folder of a training's states."""

UNSHOWN = {"epoch", "updates", "tokens", "machine"}
"""Fields of an epoch's record that TensorBoard does not show.

The updates are its horizontal axis, and a machine is not a number.
"""


@dataclass
class Watch:
    """Writes the files that show the progress of a training."""

    progress: ProgressFile  # the file ``progress.json``
    history: Path | None = None  # the file ``history.jsonl``; None: not written
    events: Path | None = None  # folder of TensorBoard's events; None: not written
    # Whether this worker shows no bar and no lines, because another worker shows them.
    silent: bool = False
    # Writer of TensorBoard's events, after ``begin``.
    _writer: Any = field(default=None, init=False)

    def begin(self, state: TrainerState) -> None:
        """Write the files for the state in which a training starts or resumes.

        Call this once, before the first epoch.

        Raises:
            UserError: Events are to be written, but TensorBoard is not installed.
        """
        if self.events is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise UserError(
                    f"training.tensorboard: the package tensorboard is not installed ({error}); "
                    "run `pip install 'convs2s[tensorboard]'`, or set training.tensorboard to false"
                ) from None
            is_within_an_epoch = state.batch > 0
            # A try that was killed may have written events of later updates. TensorBoard hides
            # events from purge_step on. Within an epoch, the events at the state's own number of
            # updates stay. At the end of an epoch they are hidden, too, and written again.
            purge_step = state.updates + int(is_within_an_epoch)
            with writing(self.events):
                self._writer = SummaryWriter(str(self.events), purge_step=purge_step)
            # The last epoch's events may be missing: a try may have been killed after it had saved
            # the state at the end of the epoch, but before it wrote the events.
            if state.history and not is_within_an_epoch:
                self._add_epoch(state.history[-1])
        self._write_epochs(state)

    def end_epoch(self, state: TrainerState) -> None:
        """Write the files at the end of an epoch.

        Call this after the state was saved, so that the saved state has all epochs of the files.
        """
        self._write_epochs(state)
        self._add_epoch(state.history[-1])

    def add_events(
        self,
        updates: int,
        group: str,
        scalars: Mapping[str, object],
    ) -> None:
        """Add scalars, named ``GROUP/NAME``, at the step ``updates`` to TensorBoard's events.

        Do nothing if no events are written.
        """
        if self._writer is not None:
            with suppress(OSError):  # a full disk must not end the training
                for name, value in scalars.items():
                    self._writer.add_scalar(f"{group}/{name}", value, updates)
                self._writer.flush()

    def _add_epoch(self, record: EpochRecord) -> None:
        """Add the figures of a finished epoch to TensorBoard's events, if there are any."""
        fields = without_absent(record)
        scalars = {name: fields[name] for name in fields.keys() - UNSHOWN}
        self.add_events(record.updates, "epoch", scalars)

    def _write_epochs(self, state: TrainerState) -> None:
        """Write the finished epochs of a state to ``progress.json`` and ``history.jsonl``."""
        self.progress.update(
            updates=state.updates, best_epoch=state.schedule.best_epoch
        )
        if state.history:
            last = state.history[-1]
            self.progress.update(
                loss=last.train_loss,
                perplexity=last.valid_perplexity,
                tokens_per_second=last.tokens_per_second,
            )
        if self.history is not None:
            write_history(self.history, state.history)


def write_history(
    path: Path,
    epochs: Sequence[EpochRecord],
    *end: dict[str, str | None],
) -> None:
    """Write the whole ``history.jsonl``: a row for each epoch, then the rows ``end``.

    ``end`` is ``{"stop": REASON}`` if the training has ended. Rows are not appended to the file: it
    is written under another name and renamed, so that a kill never leaves a part of a row.
    """
    forget_checksums([path])
    rows = [*map(without_absent, epochs), *end]
    write_lines(path, (json.dumps(row, sort_keys=True) for row in rows))


@dataclass
class EpochProgress:
    """Shows the progress of one epoch, by a bar on a terminal or by lines in a log.

    Speeds and times are those of this try, without the updates that earlier tries made. The caller
    closes ``bar`` at the end of the epoch.
    """

    state: TrainerState  # the state of the training, which the trainer changes
    # Number of epochs of the whole training; None if it is unknown.
    epochs: float | None
    batches: int  # number of updates in this epoch, which may be cut short
    full_batches: int  # number of updates in a full epoch
    watch: Watch  # writes the files

    def __post_init__(self) -> None:
        """Start to show the running epoch of ``state``."""
        self._terminal = on_terminal()
        self._started = time.monotonic()
        # Time of the last line, or of the bar's last change.
        self._last_line = self._started
        self._batch_before = self.state.batch
        self._tokens_before = self.state.tokens
        self._name = f"epoch {self.state.epoch}"
        if self.epochs is not None:
            self._name += f"/{ceil(self.epochs)}"
        self.bar = tqdm(
            total=self.batches,
            initial=self.state.batch,
            desc=f"{label()}{self._name}",
            unit="update",
            leave=False,
            disable=self.watch.silent or not self._terminal,
            mininterval=BAR_SECONDS,
        )
        self.watch.progress.update(
            phase="training",
            epoch=self.state.epoch,
            epochs=self.epochs,
            batches=self.batches,
            batch=self.state.batch,
        )

    def is_due(self) -> bool:
        """Return whether it is time for a line, for the bar or for the files."""
        return self._is_line_due() or self.watch.progress.is_due()

    def _is_line_due(self) -> bool:
        """Return whether it is time for a line, or on a terminal for a change of the bar."""
        seconds = BAR_SECONDS if self._terminal else LINE_SECONDS
        return time.monotonic() - self._last_line >= seconds

    def advance(self, gradient: float) -> None:
        """Show the current state: move the bar, log a line if due, and write the files if due.

        Call this after at least one update of this try, when the state's loss includes all updates.
        ``gradient`` is the norm of the last update's gradient.
        """
        state = self.state
        loss = state.loss / state.tokens
        elapsed = time.monotonic() - self._started
        speed = (state.tokens - self._tokens_before) / max(elapsed, 1e-9)
        seconds_of_update = elapsed / (state.batch - self._batch_before)
        seconds_of_epoch = seconds_of_update * (self.batches - state.batch)
        left = f"left: {duration(seconds_of_epoch)} of the epoch"
        seconds = None  # seconds until the end of the training; None: unknown
        if self.epochs is not None:
            later_updates = max(0.0, self.epochs - state.epoch) * self.full_batches
            seconds = seconds_of_epoch + seconds_of_update * later_updates
            left += f", {duration(seconds)} of the training"
        if self._is_line_due():
            self._last_line = time.monotonic()
            row = f"{speed:,.0f} tokens/s, loss {loss:.3f}, gradient {gradient:.3f}, {left}"
            if self._terminal:
                self.bar.set_postfix_str(row, refresh=False)
            elif not self.watch.silent:
                log(f"{self._name}, update {state.batch}/{self.batches}, {row}")
        self.bar.update(state.batch - self.bar.n)
        if self.watch.progress.is_due():
            scalars = {
                "loss": loss,
                "learning_rate": state.learning_rate,
                "gradient": gradient,
                "tokens_per_second": round(speed),
            }
            self.watch.add_events(state.updates, "running", scalars)
            self.watch.progress.update(
                updates=state.updates,
                batch=state.batch,
                seconds_of_epoch=seconds_of_epoch,
                seconds=seconds,
                **scalars,
            )
