"""A training's own folder: one writer, states that a killed training goes on from.

The workflow's outputs are deleted when a job fails (snakemake#509), so the state lies beside them
in a folder that no rule declares, named by a fingerprint of everything that the result depends on.
A state of another fingerprint is never loaded.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from convs2s.errors import UnfinishedError, UserError, failures_of_file
from convs2s.files.text import atomic_text
from convs2s.training.log import keep, kept_in, log
from convs2s.training.progress_file import ProgressFile

STATE = "state"
"""Name of the folder, beside a model, of its training's states."""

LOCK = "lock"
"""Name of the file, in the folder of the states, that one training at a time holds."""

REFUSED = "refused.json"
"""Name of the file beside it that says which process was refused last, and who held the lock."""

LOCK_TRIES, LOCK_SECONDS = 4, 0.1
"""How often the lock is tried, as whoever asks about it holds it for a moment; seconds between."""


class StateFolder:
    """The folder of one training: its states, its identity, and the kernels that it began with."""

    def __init__(self, parent: Path, identity: Mapping[str, Any]) -> None:
        """Name the folder in ``parent`` for the identity: what the training's result depends on."""
        self.parent, self.identity = parent, dict(identity)
        self.path = parent / digest_of(self.identity)
        self.last, self.best = self.path / "last.safetensors", self.path / "best.safetensors"
        self.kernels = self.path / "kernels.json"
        self.progress = ProgressFile(parent)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the parent folder's lock while the block runs; the kernel frees it at any death.

        Its file names the owner for as long as it lives, then what it ended with, if not the end of
        training: the next owner's log begins with it. What is logged meanwhile is kept here too.

        Raises:
            UserError: another process trains here, or the file system has no locks.
        """
        self.parent.mkdir(parents=True, exist_ok=True)
        owner = f"process {os.getpid()} on {os.uname().nodename}"
        with (self.parent / LOCK).open("a+") as lock:
            self._take(lock, owner)
            with kept_in(self.parent):
                _say_how_it_ended(lock)
                lock.write(f"{owner}\n")
                lock.flush()
                (self.parent / REFUSED).unlink(missing_ok=True)
                self.path.mkdir(exist_ok=True)
                with atomic_text(self.path / "identity.json") as stream:
                    json.dump(self.identity, stream, indent=2, sort_keys=True)
                self.progress.start(owner, self.path.name)
                try:
                    yield
                except (Exception, KeyboardInterrupt) as error:
                    said = _in_words(error)
                    keep(f"error: {said}")
                    stopped = isinstance(error, UnfinishedError)
                    self.progress.update(phase="stopped" if stopped else "failed", why=said)
                    lock.truncate(0)
                    lock.write(f"{owner}: {said}\n")
                    raise
            lock.truncate(0)

    def _take(self, lock: TextIO, owner: str) -> None:
        """Take the lock, or leave word that another process has it.

        Raises:
            UserError: another process has it, or there are no locks.
        """
        for tries_left in reversed(range(LOCK_TRIES)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if tries_left:
                    time.sleep(LOCK_SECONDS)
            except OSError as error:
                raise UserError(
                    f"{self.parent}: cannot be locked ({error.strerror}), and two trainings must "
                    "not write here at once: use a file system with flock (docs/cluster.md)"
                ) from None
        lock.seek(0)
        said = lock.read().strip()
        with atomic_text(self.parent / REFUSED) as stream:
            json.dump({"owner": said, "refused": owner}, stream)
        raise UserError(
            f"{self.parent}: another training is writing here ({said}); "
            "wait for it to end or stop it, then run the same command again"
        )

    def differences(self) -> list[str]:
        """Return a line for each other state in the parent folder, with the keys that differ."""
        lines = []
        for path in sorted(self.parent.glob("*/identity.json")):
            if path.parent != self.path:
                other, mine = _flat_identity(path), flatten(self.identity)
                keys = sorted(key for key in mine | other if mine.get(key) != other.get(key))
                changes = ", ".join(f"{key}: {other.get(key)} -> {mine.get(key)}" for key in keys)
                lines.append(f"{path.parent} is a state of another training ({changes})")
        return lines


def _in_words(error: BaseException) -> str:
    """Return what an owner ended with: a user's fault as it is, one of the program by its class."""
    if isinstance(error, UserError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def _say_how_it_ended(lock: TextIO) -> None:
    """Say what the owner before ended with, and forget it."""
    lock.seek(0)
    if said := lock.read().strip():
        killed = (
            "" if ": " in said else " has ended without a word: killed, or its machine went down"
        )
        log(f"before: {said}{killed}")
    lock.truncate(0)


def _flat_identity(path: Path) -> dict[str, Any]:
    """Return another training's identity; a damaged one is told of and stops no training."""
    try:
        with failures_of_file(str(path), "no identity of a training"):
            return flatten(json.loads(path.read_bytes()))
    except UserError as error:
        return {"identity.json": str(error)}


def digest_of(identity: Mapping[str, Any]) -> str:
    """Return the fingerprint of a training's identity: the name of its folder."""
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with keys joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{prefix}{key}"
        flat |= flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat
