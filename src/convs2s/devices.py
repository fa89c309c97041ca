"""Where to compute, GPUs that no other training on this machine computes on, and memory.

It lies beside the rooms, as trainings, decodings, the API and commands all ask it.
"""

import ctypes
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import torch

from convs2s.errors import UserError
from convs2s.files.locks import try_lock, wait_for_lock

VISIBLE = "CUDA_VISIBLE_DEVICES"

_GRANTS = {
    VISIBLE: r"\s*(\d|GPU-|MIG-)",
    "SLURM_JOB_GPUS": r"\d",
    "NVIDIA_VISIBLE_DEVICES": "GPU-|MIG-",
}
"""Variables by which a job is granted GPUs -> how a value that names one begins."""

SECONDS_BETWEEN_TRIES = 2.0

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # Parameters of glibc's mallopt, of malloc.h
OF_ITS_OWN = 1 << 30  # Bytes of an allocation that goes back to the system once it is freed


def pick_device(name: str, workers: int = 1) -> str:
    """Return the device that ``auto`` stands for on this machine, or the name itself.

    A GPU multiplies matrices of float32 in TF32 from then on: several times as fast, factors
    rounded to 10 bits.

    Raises:
        UserError: torch can use no GPU where ``cuda`` is asked for, or ``auto`` in a job that was
            granted GPUs or for several workers, which compute on a CPU only if that is stated.
    """
    available = torch.cuda.is_available()
    if name != "cpu" and not available:
        need = gpus_granted(os.environ)
        if not need and workers > 1:
            need = f"{workers} workers"
        if need or name == "cuda":
            asked = f"device {name}{need and f' for {need}'}"
            raise UserError(
                f"{asked}: torch can use no GPU: {why_no_gpu()}; else set device to cpu"
            )
    device = ("cuda" if available else "cpu") if name == "auto" else name
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
    return device


def gpus_granted(environment: Mapping[str, str]) -> str:
    """Return the variable by which a scheduler grants this job GPUs, as NAME=VALUE, or nothing.

    CUDA_VISIBLE_DEVICES decides where it is set, also to nothing. Slurm's own names the job's GPUs
    (sbatch(1), output environment variables), NVIDIA's device plugin for Kubernetes their UUIDs.
    """
    for name, pattern in _GRANTS.items():
        if re.match(pattern, environment.get(name, "")):
            return f"{name}={environment[name]}"
        if name == VISIBLE and name in environment:
            break
    return ""


def why_no_gpu() -> str:
    """Return why torch can use no GPU here, and what to do."""
    build = f"torch {torch.__version__}"
    if not torch.backends.cuda.is_built():
        return f"{build} is built for CPUs alone: install its build for your GPUs (docs/install.md)"
    build += f" is built for CUDA {torch.version.cuda}"
    try:
        torch.cuda.init()
    except RuntimeError as error:  # it names the driver where that is too old, or missing
        return f"{build} and says: {str(error).partition('. ')[0]}: see docs/install.md"
    return f"{build} and sees none: see nvidia-smi"


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
        UserError: fewer are visible than are wanted, or the folder is not this user's own.
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
    with ExitStack() as locks, _own_folder(folder) as opened:
        names = _lock_free_gpus(visible, wanted, opened, locks)
        if len(names) < wanted:
            print(f"waiting for {wanted} of the GPUs {', '.join(visible)}", file=sys.stderr)
        while len(names) < wanted:
            locks.close()  # all or none: two trainings that held half each would wait for ever
            time.sleep(SECONDS_BETWEEN_TRIES)
            names = _lock_free_gpus(visible, wanted, opened, locks)
        yield names


@contextmanager
def _own_folder(folder: Path) -> Iterator[int]:
    """Open the folder of locks, made where there is none, and hold on to that very one.

    Everybody may write to /tmp: what lies there under its name may be another user's, or a link.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    advice = "remove it, or set TMPDIR to a folder of your own"
    unsafe = f"{folder}: is no safe place for the locks of GPUs"
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise UserError(f"{unsafe}: {error.strerror or error}; {advice}") from None
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise UserError(f"{unsafe}: other users own it or may read or write it; {advice}")
        yield descriptor
    finally:
        os.close(descriptor)


def _lock_free_gpus(
    visible: Sequence[str], wanted: int, folder: int, locks: ExitStack
) -> list[str]:
    """Lock GPUs that nobody holds, one process at a time; return their names."""
    names: list[str] = []
    with _lock_file(folder, "choosing.lock") as choosing:
        wait_for_lock(choosing)
        for name in visible:
            if try_lock(locks.enter_context(_lock_file(folder, f"{name.replace('/', '-')}.lock"))):
                names.append(name)
            if len(names) == wanted:
                break
    return names


def _lock_file(folder: int, name: str) -> IO[str]:
    """Open a lock in the folder, never through a link, and never cutting what it holds."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        return os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "r+")
    except OSError as error:
        raise UserError(f"the lock {name} of a GPU cannot be opened: {error.strerror}") from None


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for the next allocation.

    It gives large tensors back to the system at once, which hands them out again page by page,
    each cleared: a seventh of a training's processor time. Where the library is not glibc nothing
    changes.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_MMAP_THRESHOLD, OF_ITS_OWN)
        library.mallopt(M_TRIM_THRESHOLD, -1)


def return_freed_memory() -> None:
    """Give what the C library keeps back to the system.

    Asked for once in a while, so that the gaps between tensors of many sizes do not add up.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
