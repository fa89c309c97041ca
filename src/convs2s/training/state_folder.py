"""The folder of a training's states, its lock, its progress file, and its copies elsewhere.

Snakemake deletes the outputs of a job that fails (snakemake#509). So the states are in a folder
``state/`` beside the outputs, which no rule declares. A training that was killed resumes from them.

``state/`` contains the lock, the progress file, the kept log, and a folder for each training that
ran here. The name of this folder is a fingerprint of everything that the result depends on, so a
training never loads the states of another one. Only one training at a time may run in ``state/``.

States may also be copied to another place, for jobs on machines that share no disk. Snakemake's
storage plugins store only the outputs of successful jobs, and so not the states of a job that was
killed (docs/cloud.md).
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import fsspec

from convs2s.errors import UnfinishedError, UserError, failures_of_file
from convs2s.files.atomic import atomic_path, writing
from convs2s.files.locks import PATIENT, try_lock
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.files.text import write_json
from convs2s.training.history import Progress
from convs2s.training.identity import changes, digest_of, is_longer
from convs2s.training.log import keep, kept_in, log
from convs2s.training.tries import WITHOUT_A_WORD, counted, line_of

if TYPE_CHECKING:
    from torch import Tensor

LOCK = "lock"  # Name of the lock file in ``state/``, which the running training holds

REFUSED = "refused.json"
"""Name of a file in ``state/`` about the last process that did not get the lock.

It has the owner of the lock (``owner``) and the refused process (``refused``).
"""

PROGRESS = "progress.json"  # Name of the progress file in ``state/``

SECONDS_BETWEEN_NOTES = 10.0  # between two updates of the progress file during an epoch


class ProgressFile:
    """Writes ``progress.json``, which ``convs2s status`` reads.

    The command may run on another machine, where it cannot look up the process of the training. It
    uses the lock of the folder and the time in the file to find out whether the training is alive.
    """

    def __init__(self, folder: Path) -> None:
        """Set the folder of the file; nothing is written before ``start``."""
        self.path = folder / PROGRESS
        self._progress: Progress | None = None
        self._written = 0.0

    def start(self, owner: str, state: str) -> None:
        """Start the file anew for a training.

        ``owner`` names this process, and ``state`` is the name of the folder of its states.
        """
        self._progress = Progress(owner, state=state)
        self.update()

    def is_due(self) -> bool:
        """Return whether the file should be updated; always False before ``start``."""
        waited = time.monotonic() - self._written > SECONDS_BETWEEN_NOTES
        return self._progress is not None and waited

    def update(self, **changes: object) -> None:
        """Change fields of ``Progress`` and write the file; do nothing before ``start``.

        Errors of writing are ignored, so that a full disk does not end the training.
        """
        if self._progress is None:
            return
        changes["written"] = time.time()
        self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]
        self._written = time.monotonic()
        # Only the owner of the folder's lock writes here. A file of a killed owner is overwritten.
        partial = self.path.with_name(f".{PROGRESS}.partial")
        try:
            # Write without fsync, because the file is soon out of date.
            partial.write_text(
                json.dumps(asdict(self._progress), sort_keys=True), "utf-8"
            )
            partial.replace(self.path)
        except OSError:
            with suppress(OSError):
                partial.unlink()


class StateFolder:
    """The folder ``state/FINGERPRINT`` of one training.

    It contains the last state (``last``), the weights of the best epoch (``best``) or of the last
    epochs (``epoch_file``), the identity, and the kernel for matrix products (``kernels``).
    """

    def __init__(
        self,
        parent: Path,
        identity: Mapping[str, Any],
        copies: str | None = None,
    ) -> None:
        """Set the paths; nothing is created before ``locked``.

        Args:
            parent: the folder ``state/``.
            identity: everything that the training's result depends on.
            copies: a folder, or a URL that fsspec knows, such as s3://BUCKET/states, where the
                states are also copied; None: they are not copied.
        """
        self.parent = parent
        self.identity = dict(identity)
        self.path = parent / digest_of(self.identity)
        self.copies = copies
        self.last = self.path / "last.safetensors"
        self.best = self.path / "best.safetensors"
        self.kernels = self.path / "kernels.json"
        self.progress = ProgressFile(parent)

    def epoch_file(self, epoch: int) -> Path:
        """Return the file of the parameters after an epoch, for a recipe that averages epochs."""
        return self.path / f"epoch{epoch}.safetensors"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the parent folder while the block runs.

        The kernel releases the lock when the process ends, however it ends. The lock file contains

        - "process PID on HOST" while the block runs, and still after the process was killed,
        - "process PID on HOST: ERROR" after the block has raised an exception,
        - nothing after the block has ended without one.

        The next owner of the lock logs what it finds there. While the block runs, the log is also
        kept in the parent folder, and the progress file is written. If states are copied to another
        place, missing ones are first fetched from there. The block counts as one try
        (``tries.counted``).

        Raises:
            UserError: Another process trains here, another try would fail again, nothing can be
                written here, or the file system has no locks.
        """
        owner = f"process {os.getpid()} on {os.uname().nodename}"
        with writing(self.parent):
            self.parent.mkdir(parents=True, exist_ok=True)
            lock = (self.parent / LOCK).open("a+", encoding="utf-8", errors="replace")
        with lock:
            previous = take_lock(lock, self.parent, owner)
            with kept_in(self.parent):
                if previous:
                    has_reported_its_end = ": " in previous
                    if not has_reported_its_end:
                        previous += f" has {WITHOUT_A_WORD}"
                    log(f"before: {previous}")
                with writing(self.parent):
                    _rewrite(lock, owner)
                    (self.parent / REFUSED).unlink(missing_ok=True)
                    self.path.mkdir(exist_ok=True)
                write_json(self.path / "identity.json", self.identity)
                self.progress.start(owner, self.path.name)
                try:
                    self._fetch()
                    with counted(self.last, owner):
                        yield
                except (Exception, KeyboardInterrupt) as error:
                    why = line_of(error)
                    keep(f"error: {why}")
                    stopped = isinstance(error, UnfinishedError | KeyboardInterrupt)
                    self.progress.update(
                        phase="stopped" if stopped else "failed", why=why
                    )
                    # An error of writing must not hide this error.
                    with suppress(OSError):
                        _rewrite(lock, f"{owner}: {why}")
                    raise
            with writing(self.parent):
                lock.truncate(0)

    def write(
        self,
        path: Path,
        tensors: Mapping[str, "Tensor"],
        description: Mapping[str, object],
    ) -> None:
        """Write tensors and a description, with the fingerprint of this training.

        If states are copied to another place, copy the file there. The copy is made under another
        name and renamed, so it is always complete. If this fails, only a warning is logged.
        """
        save_tensors(path, tensors, {**description, "training": self.path.name})
        if not self.copies:
            return
        try:
            files, root = fsspec.core.url_to_fs(f"{self.copies}/{self.path.name}")
            files.makedirs(root, exist_ok=True)
            files.put_file(str(path), f"{root}/.{path.name}.part")
            files.mv(f"{root}/.{path.name}.part", f"{root}/{path.name}")
        except (OSError, ValueError, ImportError) as error:
            log(
                f"warning: {path.name} is not copied to {self.copies} (states): {error}"
            )

    def read(
        self,
        path: Path,
        device: str,
        epoch: int | None = None,
    ) -> tuple[dict[str, "Tensor"], dict[str, Any]]:
        """Return the tensors and the description that ``write`` wrote.

        ``epoch`` is the epoch that the file must be of; None: it may be of any epoch.

        Raises:
            UserError: The file is missing or damaged, or is of another training or epoch. Files of
                older versions do not name their training, and are accepted.
        """
        tensors, fields = load_tensors(path, device)
        other = ""
        if fields.pop("training", self.path.name) != self.path.name:
            other = "training"
        elif epoch is not None and fields.get("epoch") != epoch:
            other = "epoch"
        if other:
            raise UserError(
                f"{path}: is a state of another {other}; put back the original file, or remove "
                f"{self.path} to train again with the same command"
            )
        return tensors, fields

    def _fetch(self) -> None:
        """Copy the states from the other place, if there is one and no last state is here.

        Raises:
            UserError: The other place cannot be read.
        """
        if not self.copies or self.last.is_file():
            return
        place = f"{self.copies}/{self.path.name}"
        try:
            files, root = fsspec.core.url_to_fs(place)
            found = files.find(root) if files.exists(root) else []
            # Copy the last state last. If this process is killed before that, the next try fetches
            # all files again.
            for path in sorted(found, key=lambda path: path.endswith(self.last.name)):
                with atomic_path(self.path / Path(path).name) as partial:
                    files.get_file(path, str(partial))
        except (OSError, ValueError, ImportError) as error:
            raise UserError(f"states: {self.copies}: cannot be read: {error}") from None
        if found:
            log(f"fetched {len(found)} files of states from {place}")

    def differences(self) -> dict[Path, str]:
        """Return a line for each folder of another training's states in the parent folder.

        The line has the keys in which the identities differ.
        """
        lines = {}
        for path in self._identities():
            try:
                with failures_of_file(str(path), "not an identity of a training"):
                    differing = changes(json.loads(path.read_bytes()), self.identity)
            except UserError as error:  # a damaged file is only reported
                differing = [str(error)]
            lines[path.parent] = (
                f"{path.parent} is a state of another training ({', '.join(differing)})"
            )
        return lines

    def shorter(self) -> list["StateFolder"]:
        """Return the folders of trainings from whose states this one may go on (``is_longer``)."""
        found = []
        for path in self._identities():
            # A damaged file is skipped here; `differences` reports it.
            with suppress(UserError), failures_of_file(str(path), "no identity"):
                identity = json.loads(path.read_bytes())
                if is_longer(identity, self.identity):
                    found.append(StateFolder(self.parent, identity))
        return [folder for folder in found if folder.last.is_file()]

    def _identities(self) -> list[Path]:
        """Return the files with the identities of other trainings in the parent folder."""
        paths = sorted(self.parent.glob("*/identity.json"))
        return [path for path in paths if path.parent != self.path]


def take_lock(
    lock: TextIO,
    folder: Path,
    owner: str | None = None,
) -> str:
    """Take the lock of a folder ``state/``; return the content of the lock file.

    If another process holds the lock and ``owner`` is given, write ``refused.json`` with both
    processes, so that ``convs2s status`` can report it.

    Args:
        lock: the lock file, open for reading and writing.
        folder: the folder ``state/``.
        owner: the name of this process, if it is going to train.

    Raises:
        UserError: Another process holds the lock, or the file system has no locks.
    """
    try:
        is_taken = try_lock(lock, tries=PATIENT)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be locked ({error.strerror}), and two trainings must "
            "not write here at once: use a file system with flock (docs/cluster.md)"
        ) from None
    lock.seek(0)
    content = lock.read().strip()
    if is_taken:
        return content
    if owner:
        write_json(folder / REFUSED, {"owner": content, "refused": owner})
    raise UserError(
        f"{folder}: another training is writing here ({content}); "
        "wait for it to end or stop it, then run the same command again"
    )


def _rewrite(lock: TextIO, line: str) -> None:
    """Replace the content of the lock file by a line."""
    os.ftruncate(lock.fileno(), 0)
    # Do not write through the buffer of the stream: on a full disk, closing it would fail again.
    os.write(lock.fileno(), f"{line}\n".encode())
