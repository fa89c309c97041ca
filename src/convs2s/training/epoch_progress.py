"""What a person sees of a training: a bar with rate, time left and loss, and a line per epoch."""

import sys
import time
from types import TracebackType

from tqdm import tqdm

from convs2s.training.history import EpochRecord

QUIET_SECONDS = 30.0
"""Seconds between two lines of the bar in a log file."""


class EpochProgress:
    """The bar of one epoch; on a terminal it moves, in a log it is a line now and then."""

    def __init__(self, epoch: int, batches: int, done: int, *, silent: bool) -> None:
        """Start the bar of epoch ``epoch`` at batch ``done`` of ``batches``."""
        terminal = sys.stderr.isatty()
        self._seconds, self._said = 0.2 if terminal else QUIET_SECONDS, time.monotonic()
        self._bar = tqdm(
            total=batches,
            initial=done,
            desc=f"epoch {epoch}",
            unit="update",
            leave=False,
            disable=silent,
            mininterval=self._seconds,
            delay=0 if terminal else QUIET_SECONDS,
        )
        self._tokens = 0

    def is_due(self) -> bool:
        """Return whether it is time to say something, and take it that it will be."""
        if time.monotonic() - self._said < self._seconds:
            return False
        self._said = time.monotonic()
        return True

    def advance(self, updates: int, loss: float, tokens: int, norm: float) -> None:
        """Count updates: mean loss of the epoch, their target tokens, the last gradient's norm."""
        if self._bar.disable:
            return
        self._tokens += tokens
        elapsed = self._bar.format_dict["elapsed"]
        rate = self._tokens / elapsed if elapsed else 0.0
        self._bar.set_postfix_str(
            f"{rate:,.0f} tokens/s, loss {loss:.3f}, gradient {norm:.3f}", refresh=False
        )
        self._bar.update(updates)

    def __enter__(self) -> "EpochProgress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()


def say(record: EpochRecord) -> None:
    """Print a finished epoch's record."""
    log(
        f"epoch {record.epoch:3d}  updates {record.updates:6d}  rate {record.learning_rate:g}  "
        f"train loss {record.train_loss:.3f}  validation perplexity "
        f"{record.valid_perplexity:.3f}  {record.tokens_per_second:,} tokens/s"
    )


def log(message: str) -> None:
    """Print a line to the standard error."""
    print(message, file=sys.stderr, flush=True)
