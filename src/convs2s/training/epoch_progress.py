"""What a person sees of a training: a bar on a terminal, else a line now and then."""

import time
from dataclasses import dataclass
from types import TracebackType

from tqdm import tqdm

from convs2s.training.history import EpochRecord
from convs2s.training.log import duration, label, log, on_terminal
from convs2s.training.watch import Watch

QUIET_SECONDS = 60.0
"""Seconds between two lines in a log."""

MOVING_SECONDS = 0.2
"""Seconds between two moves of the bar on a terminal."""


@dataclass(frozen=True)
class EpochSpan:
    """Which epoch it is, and how far it reaches.

    Attributes:
        epoch: its number, from 1.
        epochs: how many there will be, or None where validation decides.
        batches: its updates.
        whole: those of an epoch that is trained whole.
        done: those made before this try.
        updates: all that the training made before.
    """

    epoch: int
    epochs: float | None
    batches: int
    whole: int
    done: int = 0
    updates: int = 0

    def __str__(self) -> str:
        return f"epoch {self.epoch}" + ("" if self.epochs is None else f"/{self.epochs:g}")

    @property
    def batches_after(self) -> float | None:
        """Updates of all epochs after this one, where their number is known."""
        if self.epochs is None:
            return None
        return max(0.0, self.epochs - self.epoch) * self.whole


@dataclass(frozen=True)
class UpdatesRead:
    """What the last updates did.

    Attributes:
        count: how many there were.
        tokens: their target tokens.
        loss: mean loss of the epoch so far, in nats per target token.
        norm: the last gradient's norm before clipping.
        learning_rate: of the last one.
    """

    count: int
    tokens: int
    loss: float
    norm: float
    learning_rate: float


class EpochProgress:
    """The running epoch; on a terminal a bar that moves, in a log a line now and then."""

    def __init__(self, span: EpochSpan, watch: Watch, *, silent: bool) -> None:
        """Begin to watch an epoch.

        Args:
            span: the epoch.
            watch: what others see.
            silent: whether to say nothing, as another worker does.
        """
        self._span, self._watch, self._silent = span, watch, silent
        self._terminal = on_terminal()
        self._seconds = MOVING_SECONDS if self._terminal else QUIET_SECONDS
        self._started = self._said = time.monotonic()
        self._made = self._tokens = 0
        self._bar = tqdm(
            total=span.batches,
            initial=span.done,
            desc=f"{label()}{span}",
            unit="update",
            leave=False,
            disable=silent or not self._terminal,
            mininterval=MOVING_SECONDS,
        )
        watch.begin_epoch(span.epoch, span.epochs, span.batches, span.done)

    def is_due(self) -> bool:
        """Return whether it is time to say something."""
        return self._is_line_due() or self._watch.is_due()

    def _is_line_due(self) -> bool:
        return time.monotonic() - self._said >= self._seconds

    def advance(self, read: UpdatesRead) -> None:
        """Count updates, and say how far the epoch is where that is due."""
        self._made += read.count
        self._tokens += read.tokens
        if self._is_line_due():
            self._said = time.monotonic()
            if not self._silent:
                self._say(read)
        self._bar.update(read.count)
        if self._watch.is_due():
            epoch, training = self._seconds_left()
            self._watch.note(
                batch=self._done,
                updates=self._span.updates + self._made,
                loss=read.loss,
                learning_rate=read.learning_rate,
                gradient=read.norm,
                tokens_per_second=round(self._rate()),
                seconds_of_epoch=epoch,
                seconds=training,
            )

    def _say(self, read: UpdatesRead) -> None:
        """Show how far the epoch is."""
        epoch, training = self._seconds_left()
        figures = f"{self._rate():,.0f} tokens/s, loss {read.loss:.3f}, gradient {read.norm:.3f}"
        whole = "" if training is None else f", {duration(training)} of the training"
        if self._terminal:
            self._bar.set_postfix_str(f"{figures}{whole}", refresh=False)
            return
        log(
            f"{self._span}, update {self._done}/{self._span.batches}, {figures}, left: "
            f"{duration(epoch)} of the epoch{whole}"
        )

    @property
    def _done(self) -> int:
        return self._span.done + self._made

    def _rate(self) -> float:
        """Return target tokens per second of this try."""
        return self._tokens / max(time.monotonic() - self._started, 1e-9)

    def _seconds_left(self) -> tuple[float, float | None]:
        """Return the seconds that are left of the epoch, and of the training if that is known."""
        seconds = (time.monotonic() - self._started) / max(1, self._made)
        epoch, after = seconds * (self._span.batches - self._done), self._span.batches_after
        return epoch, None if after is None else epoch + seconds * after

    def __enter__(self) -> "EpochProgress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()


def say(record: EpochRecord, epochs: float | None) -> None:
    """Print a finished epoch's record; ``epochs``: how many there will be, where that is known."""
    number = f"{record.epoch:3d}" + ("" if epochs is None else f"/{epochs:g}")
    log(
        f"epoch {number}  updates {record.updates:6d}  rate {record.learning_rate:g}  "
        f"train loss {record.train_loss:.3f}  validation perplexity "
        f"{record.valid_perplexity:.3f}  {record.tokens_per_second:,} tokens/s"
    )
