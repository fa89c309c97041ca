"""A training's own folder: one writer, states that a killed training is resumed from.

The workflow's outputs are deleted when a job fails (snakemake#509), so the state lies beside them
in a folder that no rule declares, named by a fingerprint of everything that the result depends on.
A state of another fingerprint is never loaded.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

from convs2s.errors import UnfinishedError, UserError, failures_of_file
from convs2s.files.atomic import writing
from convs2s.files.locks import PATIENT, try_lock
from convs2s.files.text import write_json
from convs2s.training.history import Progress
from convs2s.training.identity import changes, digest_of
from convs2s.training.log import keep, kept_in, log
from convs2s.training.state_copies import StateCopies
from convs2s.training.tries import WITHOUT_A_WORD, counted, line_of

STATE = "state"  # Name of the folder, beside a model, of its training's states
LOCK = "lock"  # Name of the file, in the folder of the states, that one training at a time holds

REFUSED = "refused.json"
"""Name of the file beside it that says which process was refused last, and who held the lock."""

PROGRESS = "progress.json"  # Name of the file beside it that says how far the training is

SECONDS_BETWEEN_NOTES = 10.0  # Between two writings of a running epoch's progress


class ProgressFile:
    """How far one training is: what ``convs2s status`` reads.

    It is read on other machines, so nothing in it needs this machine's table of processes: a reader
    goes by the lock of the states, and by when the file was written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROGRESS
        self._progress: Progress | None = None
        self._written = 0.0

    def start(self, owner: str, state: str) -> None:
        """Say that a process has begun with a training."""
        self._progress = Progress(owner, state=state)
        self.update()

    def is_due(self) -> bool:
        """Return whether the last writing is so long ago that the next one is due."""
        waited = time.monotonic() - self._written > SECONDS_BETWEEN_NOTES
        return self._progress is not None and waited

    def update(self, **changes: object) -> None:
        """Change what the file says; before ``start`` there is nothing to change.

        A disk that is full ends no training over this file.
        """
        if self._progress is None:
            return
        changes["written"] = time.time()
        self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]
        self._written = time.monotonic()
        partial = self.path.with_name(f".{PROGRESS}.{os.getpid()}")
        with suppress(OSError):  # not waited for to reach the disk, as it is soon out of date
            partial.write_text(json.dumps(asdict(self._progress), sort_keys=True), "utf-8")
            partial.replace(self.path)


class StateFolder:
    """The folder of one training: its states, its identity, and the kernels that it began with."""

    def __init__(
        self, parent: Path, identity: Mapping[str, Any], copies: str | None = None
    ) -> None:
        """Name the folder in ``parent`` for the identity: what the training's result depends on.

        ``copies`` is where its states are kept as well, if they are.
        """
        self.parent = parent
        self.identity = dict(identity)
        self.path = parent / digest_of(self.identity)
        self.copies = StateCopies(copies, self.path.name) if copies else None
        self.last = self.path / "last.safetensors"
        self.best = self.path / "best.safetensors"
        self.kernels = self.path / "kernels.json"
        self.progress = ProgressFile(parent)

    def epoch_file(self, epoch: int) -> Path:
        """Return where the parameters after an epoch lie, where a recipe averages epochs."""
        return self.path / f"epoch{epoch}.safetensors"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the parent folder's lock while the block runs; the kernel frees it at any death.

        Its file names the owner for as long as it lives, then what it ended with, if not the end of
        training: the next owner's log begins with it. What is logged meanwhile is kept here too.
        The block is one try (``tries.counted``).

        Raises:
            UserError: A try would be in vain, another process trains here, nothing can be written
                here, or the file system has no locks.
        """
        owner = f"process {os.getpid()} on {os.uname().nodename}"
        with writing(self.parent):
            self.parent.mkdir(parents=True, exist_ok=True)
            lock = (self.parent / LOCK).open("a+", encoding="utf-8", errors="replace")
        with lock:
            said = take_lock(lock, self.parent, owner)  # by the owner before, of how it ended
            with kept_in(self.parent):
                if said:
                    if ": " not in said:
                        said += f" has {WITHOUT_A_WORD}"
                    log(f"before: {said}")
                with writing(self.parent):
                    _rewrite(lock, owner)
                    (self.parent / REFUSED).unlink(missing_ok=True)
                    self.path.mkdir(exist_ok=True)
                write_json(self.path / "identity.json", self.identity)
                self.progress.start(owner, self.path.name)
                try:
                    if self.copies:
                        self.copies.fetch(self.path)
                    with counted(self.last, owner):
                        yield
                except (Exception, KeyboardInterrupt) as error:
                    said = line_of(error)
                    keep(f"error: {said}")
                    stopped = isinstance(error, UnfinishedError | KeyboardInterrupt)
                    self.progress.update(phase="stopped" if stopped else "failed", why=said)
                    with suppress(OSError):  # a full disk must not hide how it ended
                        _rewrite(lock, f"{owner}: {said}")
                    raise
            lock.truncate(0)

    def differences(self) -> list[str]:
        """Return a line for each other state in the parent folder, with the keys that differ."""
        lines = []
        for path in sorted(self.parent.glob("*/identity.json")):
            if path.parent == self.path:
                continue
            try:
                with failures_of_file(str(path), "no identity of a training"):
                    differing = changes(json.loads(path.read_bytes()), self.identity)
            except UserError as error:  # a damaged one is told of and stops no training
                differing = [str(error)]
            lines.append(f"{path.parent} is a state of another training ({', '.join(differing)})")
        return lines


def take_lock(lock: TextIO, folder: Path, owner: str | None = None) -> str:
    """Take the lock of a folder of states; return what is written in it.

    A training that is refused leaves word who it is, the ``owner``.

    Raises:
        UserError: A training holds it, or the file system has no locks.
    """
    try:
        is_taken = try_lock(lock, tries=PATIENT)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be locked ({error.strerror}), and two trainings must "
            "not write here at once: use a file system with flock (docs/cluster.md)"
        ) from None
    lock.seek(0)
    said = lock.read().strip()
    if is_taken:
        return said
    if owner:
        write_json(folder / REFUSED, {"owner": said, "refused": owner})
    raise UserError(
        f"{folder}: another training is writing here ({said}); "
        "wait for it to end or stop it, then run the same command again"
    )


def _rewrite(lock: TextIO, line: str) -> None:
    os.ftruncate(lock.fileno(), 0)
    os.write(lock.fileno(), f"{line}\n".encode())  # what a buffer held would fail as it is closed
