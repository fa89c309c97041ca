"""Where to compute, and GPUs that no other training on this machine computes on."""

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import torch

from convs2s.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"

SECONDS_BETWEEN_TRIES = 2.0


def pick_device(name: str) -> str:
    """Return the device that ``auto`` stands for on this machine, or the name itself.

    A GPU multiplies matrices of float32 in TF32 from then on: several times as fast, factors
    rounded to 10 bits.

    Raises:
        UserError: ``cuda`` is asked for where there is none.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UserError("device cuda: this machine has no CUDA device; set device to auto or cpu")
    device = ("cuda" if available else "cpu") if name == "auto" else name
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
    return device


def worker_device(device: str, environment: Mapping[str, str]) -> str:
    """Return a worker's own device: on a GPU machine, the one of its number there."""
    if device == "cpu" or "LOCAL_RANK" not in environment:
        return device
    own = f"cuda:{environment['LOCAL_RANK']}"
    torch.cuda.set_device(own)
    return own


def lock_folder() -> Path:
    """Return where this user's locks on this machine's GPUs are; they are no one's results.

    It is the same in every session on this machine, so it is no folder of a session's.
    """
    return Path(tempfile.gettempdir()) / f"convs2s-gpus-{os.getuid()}"


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open the folder of locks, made where there is none, and hold on to that very one.

    Everybody may write to /tmp: what lies there under its name may be another user's, or a link.

    Raises:
        UserError: it is not this user's own folder.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _not_own(folder, error.strerror or str(error)) from None
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise _not_own(folder, "other users own it or may read or write it")
        yield descriptor
    finally:
        os.close(descriptor)


def _not_own(folder: Path, reason: str) -> UserError:
    return UserError(
        f"{folder}: is no safe place for the locks of GPUs: {reason}; remove it, or set TMPDIR to "
        "a folder of your own"
    )


def _lock_file(folder: int, name: str) -> IO[str]:
    """Open a lock in the folder, never through a link, and never cutting what is there."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        return os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "r+")
    except OSError as error:
        raise UserError(f"the lock {name} of a GPU cannot be opened: {error.strerror}") from None


@contextmanager
def own_gpus(
    environment: Mapping[str, str], present: int, wanted: int, folder: Path
) -> Iterator[list[str]]:
    """Hold GPUs while the block runs, after waiting until they are free; yield their names.

    The kernel frees them at any death of this process. Where the environment names exactly as many
    as are wanted, they are this job's already: a scheduler has granted them, and numbers them anew
    in each job, so that equal names mean nothing.

    Args:
        environment: of this process, in which CUDA_VISIBLE_DEVICES may name GPUs.
        present: number of GPUs that this process sees.
        wanted: number of GPUs to hold.
        folder: where the locks of this machine are.

    Raises:
        UserError: fewer are visible than are wanted.
    """
    stated = [name.strip() for name in environment.get(VISIBLE, "").split(",") if name.strip()]
    visible = stated or [str(index) for index in range(present)]
    if len(visible) < wanted:
        raise UserError(
            f"{wanted} GPUs are asked for, but this job sees {len(visible)}; ask for fewer "
            "(--resources gpu=N, or --workers N by hand)"
        )
    if len(stated) == wanted:
        yield stated
        return
    with ExitStack() as locks, _opened(folder) as opened:
        names = _free(visible, wanted, opened, locks)
        if len(names) < wanted:
            print(f"waiting for {wanted} of the GPUs {', '.join(visible)}", file=sys.stderr)
        while len(names) < wanted:
            locks.close()  # all or none: two trainings that held half each would wait for ever
            time.sleep(SECONDS_BETWEEN_TRIES)
            names = _free(visible, wanted, opened, locks)
        yield names


def _free(visible: Sequence[str], wanted: int, folder: int, locks: ExitStack) -> list[str]:
    """Lock GPUs that nobody holds, one process at a time; return their names."""
    names: list[str] = []
    with _lock_file(folder, "choosing.lock") as choosing:
        fcntl.flock(choosing, fcntl.LOCK_EX)
        for name in visible:
            lock = locks.enter_context(_lock_file(folder, f"{name.replace('/', '-')}.lock"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            names.append(name)
            if len(names) == wanted:
                break
    return names
