"""Write files atomically: a file under its final name is complete, and no two writers interfere.

If only the Snakemake process is killed, its jobs go on, and a rerun starts the same jobs beside
them. Therefore each job writes to a temporary folder of its own, and holds a lock on a file in this
folder while it runs. The lock is released when the process ends, even if it is killed. If another
process finds the folder without a lock, it removes the folder. This works between machines, too.
"""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from convs2s.errors import FULL, REMEDIES, UserError, failed_use
from convs2s.files.locks import try_lock, wait_for_lock

PREFIX = ".partial."
"""Beginning of the name of each temporary folder (`scratch_folder`)."""

_LOCK = ".lock"

NO_FILE = {errno.ENAMETOOLONG, errno.ELOOP}
"""Error numbers of a path that cannot be the path of a file, regardless of permissions."""

_NO_PLACE = {
    errno.EACCES,
    errno.EPERM,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
}
"""Error numbers of a path to which no file can be written."""


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path; after the block, the file that it wrote there is renamed to ``path``.

    The temporary path is in a folder beside ``path`` to which no other process writes. If the block
    raises, the temporary file is removed, and ``path`` is left as it was. If ``path`` is a device
    or a pipe, it is not replaced. The content of the temporary file is then written to it.

    Raises:
        UserError: the file cannot be written, for example because the disk is full or read-only.
    """
    path = Path(path)
    if is_written_in_place(path):
        with TemporaryDirectory(prefix="convs2s-") as folder_name:
            temporary = Path(folder_name, path.name)
            yield temporary
            with temporary.open("rb") as written, path.open("wb") as stream:
                shutil.copyfileobj(written, stream)
        return
    with writing(path), scratch_folder(path.parent) as folder:
        temporary = folder / path.name
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)


@contextmanager
def atomic_folder(
    path: Path, finish: Callable[[Path, Path], object] | None = None
) -> Iterator[Path]:
    """Yield an empty temporary folder; after the block, it is renamed to the new folder ``path``.

    Only one process at a time runs the block for the same ``path``. The folder gets its final name
    only after its files and subfolders are on the disk. So a power cut leaves either the whole
    folder or no folder. If the block raises, nothing is left.

    Args:
        path: the folder, which must not exist.
        finish: a function that is called with the temporary folder and ``path``, instead of
            renaming the folder. For example, it packs the folder into an archive ``path``.

    Raises:
        UserError: ``path`` exists, before or after the block, or cannot be written.
    """
    refuse_existing(path)
    with sole_writer(path), writing(path), scratch_folder(path.parent) as scratch:
        # Another writer may have made ``path`` while this one waited for its turn.
        refuse_existing(path)
        folder = scratch / path.name
        folder.mkdir()
        yield folder
        # Another program, which does not take turns, may have made ``path`` during the block.
        refuse_existing(path)
        if finish:
            finish(folder, path)
            return
        sync_folder(folder)
        folder.rename(path)
        _sync(path.parent)


def refuse_existing(path: Path) -> None:
    """Raise a UserError if an output that must be new exists already."""
    if path.exists():
        raise UserError(f"{path}: exists already: remove it, or give another name")


def sync_folder(folder: Path) -> None:
    """Wait until a folder, with all files and folders below it, is on the disk."""
    for current, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(current, name)
            if path.is_file():
                _sync(path)
        _sync(Path(current))


def _sync(path: Path) -> None:
    """Wait until the content of a file, or the list of a folder's entries, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder in ``parent`` for this process alone, and remove it after the block.

    ``parent`` is created if it does not exist. Folders that killed processes have left in it are
    removed first.

    Each folder contains a file ``.lock``. The process of the folder locks this file as long as it
    runs. If no process holds the lock, the folder is left over. On a file system without locks,
    folders that are left over cannot be recognized, so they stay.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for other_lock in parent.glob(f"{PREFIX}*/{_LOCK}"):
        # If the folder belongs to another user, its lock cannot be opened.
        with suppress(OSError), other_lock.open("r+") as lock:
            if try_lock(lock):  # its process has ended
                shutil.rmtree(other_lock.parent, ignore_errors=True)
    folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
    unlocked = folder / "lock"
    try:
        with unlocked.open("w") as lock:
            with suppress(OSError):  # the file system has no locks
                wait_for_lock(lock)
            # Other processes look for .lock, so the file gets this name only after it is locked.
            unlocked.rename(folder / _LOCK)
            yield folder
    finally:
        # The lock file is closed by now. A network file system would not remove an open file.
        # The lock file is removed last. If a kill or a failing disk interrupts the removal, the
        # next writer still finds the folder by this file.
        with suppress(OSError):
            for path in list(folder.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif path.name != _LOCK:
                    path.unlink()
            shutil.rmtree(folder)


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Let only one process at a time run the block for ``path``.

    The process holds a lock on the file ``.NAME.lock`` beside ``path`` while the block runs, and
    then removes this file. Meanwhile, any other process prints a message and waits for the lock. On
    a file system without locks, no process waits.

    Raises:
        UserError: no file can be written beside ``path``.
    """
    lock = path.with_name(f".{path.name}{_LOCK}")
    while True:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = lock.open("a")
        with stream:
            with suppress(OSError):  # the file system has no locks
                if not try_lock(stream):
                    print(
                        f"{path}: waiting for another process that writes it",
                        file=sys.stderr,
                    )
                    wait_for_lock(stream)
            # The process that held the lock before has removed the file, and a third process may
            # have created a new file of this name. A lock on the removed file would not exclude
            # that process, so try again.
            is_current = False
            with suppress(FileNotFoundError):
                is_current = os.path.samestat(lock.stat(), os.fstat(stream.fileno()))
            if not is_current:
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block that is about the output ``path`` into a UserError.

    All other exceptions are raised unchanged.
    """
    try:
        yield
    except OSError as error:
        is_known = error.errno in REMEDIES or error.errno in _NO_PLACE
        if not is_known or not _is_about(error, path):
            raise
        # If the output was to be written to a temporary folder, name the final path. The user does
        # not know the temporary folder, and it is removed by now.
        path = Path(*[part for part in path.parts if not part.startswith(PREFIX)])
        kept = "the one before it is kept" if path.is_file() else ""
        raise failed_use(error, "cannot be written", path, kept) from None


def _is_about(error: OSError, output: Path) -> bool:
    """Return whether an error is about an output, and not about a file that is read meanwhile.

    The error of a full disk is always about the output. It may name another file, because the error
    of a failed copy names the file that was read. Any other error is about the output if it names
    no file, or a file in the output's folder or below this folder, or a folder above the output.
    """
    if error.filename is None or error.errno in FULL:
        return True
    if not isinstance(error.filename, str):
        return False
    output = output.absolute()
    named = Path(error.filename).absolute()
    return named.is_relative_to(output.parent) or output.is_relative_to(named)


def is_written_in_place(path: Path) -> bool:
    """Return whether a path is that of a device, a pipe or an open file, which cannot be replaced.

    An open file has a path such as ``/dev/stdout`` or ``/dev/fd/3``.
    """
    if str(path.absolute()).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def whole_files(folder: Path) -> Iterator[Path]:
    """Yield the complete files below a folder, sorted by name within each folder.

    Temporary folders of `scratch_folder` are left out. Links to folders are followed, but each
    folder is searched only once. Other processes may write below the folder at the same time. If
    they remove a folder, the search goes on. ``Path.rglob`` is not used, because it would raise
    then before Python 3.13.

    Raises:
        OSError: a failure of the system (`REMEDIES`), such as too many open files.
    """
    seen = set[str]()
    walk = os.walk(folder, followlinks=True, onerror=_raise_failure_of_system)
    for current, subfolders, names in walk:
        real = os.path.realpath(current)
        if real in seen:
            subfolders.clear()  # os.walk then does not descend into them
            continue
        seen.add(real)
        # os.walk descends into the subfolders that are left in this list.
        subfolders[:] = sorted(
            name for name in subfolders if not name.startswith(PREFIX)
        )
        for name in sorted(names):
            yield Path(current, name)


def _raise_failure_of_system(error: OSError) -> None:
    """Raise an error that is a failure of the system, because the search would miss files.

    Any other error is ignored, such as that of a folder that was removed meanwhile.
    """
    if error.errno in REMEDIES:
        raise error


def size_of(folder: Path) -> int:
    """Return the number of bytes of all complete files below a folder.

    Files that another process removes meanwhile are not counted.
    """
    size = 0
    for path in whole_files(folder):
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def check_place(path: Path) -> None:
    """Raise a UserError if an output is a folder, or if its folder does not exist."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name a file to write")
    check_parent(path)


def check_not_read(output: Path, inputs: Iterable[Path]) -> None:
    """Raise a UserError if an output is the same file as one of the inputs."""
    if not output.exists():
        return
    for path in inputs:
        if path.exists() and output.samefile(path):
            raise UserError(f"{output}: is an input as well: name another output")


def check_parent(path: Path) -> None:
    """Raise a UserError if the folder of an output does not exist.

    The folder is not created, because its name may be a typing error.
    """
    if not path.parent.is_dir():
        raise UserError(
            f"{path}: cannot be written: no folder {path.parent}: make it first"
        )
