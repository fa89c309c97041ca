"""How far a training is, in a small file beside its states: what ``convs2s status`` reads.

It is read on other machines, so nothing in it needs this machine's table of processes: a reader
goes by the lock of the states, and by when the file was written.
"""

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

NAME = "progress.json"

SECONDS_BETWEEN_NOTES = 10.0
"""Between two writings of a running epoch."""

Phase = Literal["starting", "training", "exporting", "finished", "stopped", "failed"]
"""``stopped``: saved before the end, to be gone on with; ``failed``: ended by an error."""


@dataclass(frozen=True)
class Progress:
    """A training at one moment.

    Attributes:
        owner: the process that trains, in the words of the lock.
        phase: what it does.
        written: when this was written, in seconds since 1970.
        state: name of the folder of its states, beside this file.
        why: why it was stopped or has failed, or why training ended; else None.
        epoch: the running epoch, from 1; 0 before the first.
        epochs: how many there will be, or None where validation decides.
        batch: updates of the epoch so far.
        batches: updates of the epoch.
        updates: made since the training began.
        loss: mean training loss of the epoch so far, in nats per target token.
        learning_rate: of the last update that was looked at.
        gradient: its gradient's norm before clipping.
        perplexity: validation perplexity after the last finished epoch.
        best_epoch: that with the lowest one; 0 before the first.
        tokens_per_second: target tokens.
        seconds_of_epoch: left of the epoch.
        seconds: left of the training, where its end is known.
    """

    owner: str
    phase: Phase = "starting"
    written: float = 0.0
    state: str = ""
    why: str | None = None
    epoch: int = 0
    epochs: float | None = None
    batch: int = 0
    batches: int = 0
    updates: int = 0
    loss: float | None = None
    learning_rate: float | None = None
    gradient: float | None = None
    perplexity: float | None = None
    best_epoch: int = 0
    tokens_per_second: int | None = None
    seconds_of_epoch: float | None = None
    seconds: float | None = None


class ProgressFile:
    """The file of one training, written by the process that holds its lock."""

    def __init__(self, folder: Path) -> None:
        """Name the file in the folder of the states."""
        self.path = folder / NAME
        self._progress: Progress | None = None
        self._written = 0.0

    def start(self, owner: str, state: str) -> None:
        """Say that a process has begun with a training."""
        self._progress = Progress(owner, state=state)
        self.update()

    def is_due(self) -> bool:
        """Return whether the last writing is so long ago that the next one is due."""
        return (
            self._progress is not None and time.monotonic() - self._written > SECONDS_BETWEEN_NOTES
        )

    def update(self, **changes: object) -> None:
        """Change what the file says; before ``start`` there is nothing to change.

        A disk that is full ends no training over this file: the states say so when it matters.
        """
        if self._progress is None:
            return
        self._progress = replace(self._progress, written=time.time(), **changes)  # type: ignore[arg-type]
        self._written = time.monotonic()
        partial = self.path.with_name(f".{NAME}.{os.getpid()}")
        with suppress(OSError):  # not waited for to reach the disk, as it is soon out of date
            partial.write_text(json.dumps(asdict(self._progress), sort_keys=True), "utf-8")
            partial.replace(self.path)
