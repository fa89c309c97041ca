"""The states of trainings that have ended: what they take on the disk, and their removal.

A finished training reads its state once more where its model would only be exported again, such as
after its token stores were rebuilt to the same bytes. Without the state it would be trained again.
"""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from convs2s.errors import UserError, failures_of_file
from convs2s.model_file import describe_model
from convs2s.training.state_folder import LOCK, STATE, digest_of


@dataclass(frozen=True)
class FinishedState:
    """The states of a training that has ended.

    Attributes:
        path: their folder, named by the training's fingerprint.
        size: its bytes.
    """

    path: Path
    size: int


def finished_states(results: Path) -> list[FinishedState]:
    """Return the states of all trainings below a folder that have ended, in order of their paths.

    A state of another recipe, seed or corpus than the finished model's is none of them: it may
    belong to a training that was stopped and is to go on.

    Raises:
        UserError: there is no such folder, or the record of a training is damaged.
    """
    if not results.is_dir():
        raise UserError(f"{results}: no such folder: name one of results, or of a run")
    folders = sorted(path for path in results.rglob(STATE) if path.is_dir())
    found = [folder / digest for folder in folders if (digest := _digest_of_ended(folder.parent))]
    return [FinishedState(path, size_of(path)) for path in found if path.is_dir()]


def _digest_of_ended(run: Path) -> str | None:
    """Return the fingerprint of the training whose model lies in a folder; None without one.

    Its record alone would not do: beside it may lie the model of another training.
    """
    record = run / "training.json"
    if not record.is_file():
        return None
    with failures_of_file(str(record), "no record of a training"):
        identity = json.loads(record.read_bytes())["manifest"]["identity"]
    models = map(describe_model, sorted(run.glob("*.safetensors")))
    if all(model.training.get("identity") != identity for model in models):
        return None
    return digest_of(identity)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def remove_state(state: FinishedState) -> None:
    """Remove the states of a training that has ended.

    Raises:
        UserError: a training works there at this moment, or the folder cannot be removed.
    """
    with _alone_in(state.path.parent):
        try:
            shutil.rmtree(state.path)
        except OSError as error:
            raise UserError(f"{state.path}: cannot be removed: {error.strerror}") from None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock that each training holds while it runs."""
    with (folder / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: a training is writing here: wait for it to end, then run the same "
                "command again"
            ) from None
        except OSError as error:
            raise UserError(
                f"{folder}: cannot be locked ({error.strerror}), so a training may be writing "
                "here: use a file system with flock (docs/cluster.md)"
            ) from None
        yield


def megabytes(size: int) -> str:
    """Write bytes as MB of a million."""
    return f"{size / 1e6:,.1f} MB"
