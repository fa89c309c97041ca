"""Whole files out: what stands under its final name is complete; no two writers share a place.

A Snakemake that was killed alone leaves jobs behind, and its rerun starts the same ones beside
them. Each writes into a folder of its own, in which it holds a lock that dies with it, so that what
a killed process leaves is known for what it is, also from another machine.
"""

import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from convs2s.errors import UserError
from convs2s.files.locks import try_lock, wait_for_lock

PREFIX = ".partial."
_LOCK = ".lock"

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What the system says where a disk is full; never of reading."""

NO_ROOM = FULL | {errno.EIO}  # what the system says where a disk is full, or fails

NO_FILE = {errno.ENAMETOOLONG, errno.ELOOP}
"""What the system says of a path that can be none of a file, whoever asks."""

_NO_PLACE = {
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
}
"""What the system says of a place where nothing can be written."""


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path; what is written there becomes ``path`` if the block succeeds.

    It lies in a folder beside ``path`` that no other process writes to; if the block raises, it is
    removed and ``path`` is left as it was. A device or a pipe is written to, never replaced. A
    UserError says that the disk is full or read-only, or such.
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
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder in ``parent`` for this process alone; it is gone when the block ends.

    ``parent`` is made where there is none; what killed processes have left in it is removed first.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for left_lock in parent.glob(f"{PREFIX}*/{_LOCK}"):
        with suppress(OSError), left_lock.open("r+") as lock:  # of another user, say
            if try_lock(lock):  # else somebody writes there
                shutil.rmtree(left_lock.parent, ignore_errors=True)
    folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
    unlocked = folder / "lock"
    with unlocked.open("w") as lock:
        with suppress(OSError):  # where a file system has no locks, nothing is found left over
            wait_for_lock(lock)
        unlocked.rename(folder / _LOCK)  # by which others find it: only now that it is locked
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()  # a network file system keeps what is open


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Hold the lock of a file's writers while the block runs; the next one waits, and says so.

    It is that of a file beside ``path``, which the owner removes at its end. A file system without
    locks has no waiting. A UserError says that nothing can be written there.
    """
    lock = path.with_name(f".{path.name}{_LOCK}")
    while True:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = lock.open("a")
        with stream:
            with suppress(OSError):
                if not try_lock(stream):
                    print(f"{path}: waiting for another process that writes it", file=sys.stderr)
                    wait_for_lock(stream)
            is_there = False
            with suppress(FileNotFoundError):  # the owner before may have removed it
                is_there = os.path.samestat(lock.stat(), os.fstat(stream.fileno()))
            if not is_there:
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of any library over an output into a UserError of one line."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM | _NO_PLACE or not _is_about(error, path):
            raise
        reason = error.strerror or str(error)
        for folder in path.parents:
            if folder.name.startswith(PREFIX):  # which nobody knows of, and which is gone by now
                path = folder.parent
        kept = "; the one before it is kept" if path.is_file() else ""
        raise UserError(
            f"{path}: cannot be written: {reason}{kept}; make room or name another place, then run "
            "the same command again"
        ) from None


def _is_about(error: OSError, output: Path) -> bool:
    """Say whether an error is about an output, and not about a file that is read meanwhile.

    Of a full disk a copy names its source. Else a file that lies neither beside the output or
    deeper, nor is a folder above it, has nothing to do with it.
    """
    if error.filename is None or error.errno in FULL:
        return True
    if not isinstance(error.filename, str):
        return False
    output = output.absolute()
    place = Path(error.filename).absolute()
    return place.is_relative_to(output.parent) or output.is_relative_to(place)


def is_written_in_place(path: Path) -> bool:
    """Say whether a path is that of a device, a pipe or an open file, which nothing may replace."""
    if str(path.absolute()).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def whole_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, in order; others may write there meanwhile.

    What is being written is none of them. Links to folders are followed, each folder once. One that
    is removed meanwhile ends no search, as it does in ``Path.rglob`` before Python 3.13.
    """
    seen = set[str]()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith(PREFIX))
        for name in sorted(names):
            yield Path(place, name)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder; another process may remove some meanwhile."""
    size = 0
    for path in whole_files(folder):
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def check_place(path: Path) -> None:
    """Raise a UserError for an output that is a folder, or whose folder is not there."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name a file to write")
    check_parent(path)


def check_not_read(output: Path, inputs: Iterable[Path]) -> None:
    """Raise a UserError for an output that is one of the inputs."""
    if not output.exists():
        return
    for path in inputs:
        if path.exists() and output.samefile(path):
            raise UserError(f"{output}: is an input as well: name another output")


def check_parent(path: Path) -> None:
    """Raise a UserError for an output whose folder is not there: a typo would make it."""
    if not path.parent.is_dir():
        raise UserError(f"{path}: cannot be written: no folder {path.parent}: make it first")
