"""Choose the device, lock GPUs that no other job on this machine uses, and keep or return memory.

This module is not in a subpackage, because training, decoding, the API and the commands all use it.
"""

import ctypes
import os
import re
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import IO, Any

import torch

from convs2s.config.model import MICRO_BATCH_TOKENS, Recipe, tokens_for_memory
from convs2s.errors import UserError
from convs2s.files.locks import try_lock, wait_for_lock

VISIBLE = "CUDA_VISIBLE_DEVICES"

_GRANTS = {
    VISIBLE: r"\s*(\d|GPU-|MIG-)",
    "SLURM_JOB_GPUS": r"\d",
    "NVIDIA_VISIBLE_DEVICES": "GPU-|MIG-",
}
"""Environment variables by which a scheduler grants GPUs to a job.

Each has a regular expression that matches the beginning of a value that names a GPU.
"""

SECONDS_BETWEEN_TRIES = 2.0
"""Time between two attempts to lock enough free GPUs."""

PCI_DEVICES = Path("/sys/bus/pci/devices")

# Parameters of mallopt(3), from glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3

_MMAP_THRESHOLD = 1 << 30
"""Number of bytes from which glibc returns an allocation to the system when it is freed."""

_OLD_MMAP_THRESHOLD = 1 << 25
"""The largest value of this threshold that glibc before 2.35 accepts."""


def pick_device(name: str, workers: int = 1) -> str:
    """Return the device, ``cpu`` or ``cuda``, that ``auto``, ``cpu`` or ``cuda`` means here.

    ``auto`` means a GPU if torch can use one, and otherwise the CPU. But a job that was granted
    GPUs, or that has several workers, expects GPUs: it computes on the CPU only if ``name`` is
    ``cpu``.

    If the device is a GPU, torch multiplies float32 matrices in TF32 from now on. TF32 rounds the
    factors to a mantissa of 10 bits, and is several times as fast.

    Args:
        name: ``auto``, ``cpu`` or ``cuda``, as in the settings.
        workers: number of workers of this job on all machines together.

    Raises:
        UserError: torch has no code for the GPU of this machine, or it can use no GPU although
            ``name`` or the job asks for one.
    """
    if name == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        check_architecture()
        torch.set_float32_matmul_precision("high")
        return "cuda"
    needed_for = gpus_granted()
    if not needed_for and workers > 1:
        needed_for = f"{workers} workers"
    if name == "auto" and not needed_for:
        return "cpu"
    request = f"device {name} for {needed_for}" if needed_for else f"device {name}"
    raise UserError(
        f"{request}: torch can use no GPU: {why_no_gpu()}; or set device to cpu"
    )


def gpus_granted() -> str:
    """Return the variable by which a scheduler grants GPUs to this job, as NAME=VALUE.

    The result is empty if no GPU is granted. If CUDA_VISIBLE_DEVICES is set, even to an empty
    value, the other variables are ignored. SLURM_JOB_GPUS contains the numbers of the job's GPUs
    (sbatch(1), output environment variables). NVIDIA_VISIBLE_DEVICES contains their UUIDs; NVIDIA's
    device plugin for Kubernetes sets it.
    """
    names = [VISIBLE] if VISIBLE in os.environ else list(_GRANTS)
    for name in names:
        value = os.environ.get(name, "")
        if re.match(_GRANTS[name], value):
            return f"{name}={value}"
    return ""


def gpu_names(stated: str) -> list[str]:
    """Return the GPUs that a value such as ``0,1`` of CUDA_VISIBLE_DEVICES names."""
    return [name.strip() for name in stated.split(",") if name.strip()]


def why_no_gpu() -> str:
    """Return the reason why torch can use no GPU on this machine, with a remedy."""
    build = f"torch {torch.__version__}"
    if not torch.backends.cuda.is_built():
        return (
            f"{build} is built for CPUs only; install a build for your GPUs (docs/install.md), in "
            "a clone with `rm -rf .venv && make install TORCH=cuda`"
        )
    build += f" is built for CUDA {torch.version.cuda}"
    try:
        torch.cuda.init()
    except RuntimeError as error:
        # The first sentence of the error says that the driver is too old or missing.
        return f'{build} and reports "{str(error).partition(". ")[0]}" (see docs/install.md)'
    return f"{build} but finds no GPU (see the output of `nvidia-smi`)"


def check_architecture() -> None:
    """Check that this build of torch has code for the current GPU of this process.

    Code for a compute capability ("sm_86" for 8.6) runs on GPUs with the same major number and the
    same or a later minor number. PTX ("compute_86") is compiled for any later capability (CUDA C++
    Programming Guide, "Binary Compatibility"). Code and PTX with the suffix "a" ("sm_90a") run on
    no other capability. PTX with the suffix "f" ("compute_100f") runs only on GPUs with the same
    major number, like code.

    Raises:
        UserError: The GPU is older than all code, or it is newer and there is no PTX.
    """
    with warnings.catch_warnings():
        # torch warns about an unsupported GPU in eight lines; the UserError below takes one.
        warnings.simplefilter("ignore")
        gpu_capability = torch.cuda.get_device_capability()
    names = torch.cuda.get_arch_list()
    has_cuda_code = False
    for name in names:
        code = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", name)
        # Torch for ROCm has other names, such as gfx90a, which are not checked.
        if not code:
            continue
        has_cuda_code = True
        capability = (int(code[2]), int(code[3]))
        suffix = code[4]
        if capability == gpu_capability:
            return
        is_same_major = capability[0] == gpu_capability[0]
        is_portable_ptx = code[1] == "compute" and not suffix
        runs_on_later = suffix != "a" and (is_portable_ptx or is_same_major)
        if capability < gpu_capability and runs_on_later:
            return
    if has_cuda_code:
        raise UserError(
            f"{_gpu()}: torch {torch.__version__} has code only for {' '.join(names)}; install a "
            "build of torch for this GPU (docs/install.md), or set device to cpu"
        )


def check_precision(precision: str, device: str) -> None:
    """Refuse bf16 on a GPU without it, where torch would emulate it slowly.

    Raises:
        UserError: The current GPU of this process has a compute capability below 8.0.
    """
    is_on_gpu = torch.device(device).type == "cuda"
    if precision == "bf16" and is_on_gpu and not has_bf16():
        raise UserError(
            f"precision bf16: {_gpu()} does not support bf16; request another GPU "
            "(docs/cluster.md), or set precision to fp32, which starts a new training"
        )


def check_recipe(recipe: Recipe, device: str) -> None:
    """Check, before anything is computed, that this machine has what the recipe needs.

    If the recipe uses torch.compile, its generated code needs a C compiler for a GPU (for Triton)
    or a C++ compiler for a CPU, and Python's headers for both.

    Raises:
        UserError: The recipe needs bf16, but the current GPU of this process does not support it;
            or the recipe uses torch.compile, but there is no compiler or no Python.h.
    """
    check_precision(recipe.precision, device)
    if not recipe.compile:
        return
    if torch.device(device).type == "cuda":
        names = [os.environ["CC"]] if "CC" in os.environ else ["gcc", "clang"]
    else:
        names = [os.environ.get("CXX", "g++")]
    if not any(map(which, names)):
        raise UserError(
            f"compile: this node has no compiler ({' or '.join(names)}); install one, or set "
            "compile to false"
        )
    headers = sysconfig.get_path("include", "posix_prefix")
    folders = [headers, *os.environ.get("CPATH", "").split(os.pathsep)]
    # An unset CPATH gives an empty name, which would mean the current folder.
    if not any(Path(folder, "Python.h").exists() for folder in folders if folder):
        python = f"python{sysconfig.get_python_version()}"
        raise UserError(
            f"compile: this node does not have Python's headers (no Python.h in {headers}); "
            f"install them ({python}-dev on Debian, {python}-devel on Fedora), or set compile to "
            "false"
        )


def tokens_at_a_time(stated: int, device: str) -> int:
    """Return the maximum number of tokens, padding included, that a GPU computes at a time.

    This is the number that the recipe states. But if the recipe states the default, the number
    depends on the GPU's memory (``tokens_for_memory``).
    """
    if stated != MICRO_BATCH_TOKENS:
        return stated
    memory = torch.cuda.get_device_properties(device).total_memory
    return tokens_for_memory(memory)


def has_bf16() -> bool:
    """Return whether the current GPU of this process supports bf16 without emulation."""
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def _gpu() -> str:
    """Return the name and compute capability of the current GPU of this process."""
    major, minor = torch.cuda.get_device_capability()
    return f"{torch.cuda.get_device_name()} (compute capability {major}.{minor})"


@contextmanager
def held_device(
    name: str,
    *,
    gpus: int = 1,
    workers: int = 1,
    waits: bool = True,
) -> Iterator[str]:
    """Hold ``gpus`` free GPUs while the block runs, and yield what ``pick_device`` returns.

    CUDA_VISIBLE_DEVICES is set to the held GPUs, so from then on this process sees only these. This
    has no effect if CUDA was initialized before. If ``name`` is ``cpu``, or this machine has no
    GPU, no GPU is held. For ``name`` and ``workers`` see ``pick_device``, for ``waits`` see
    ``own_gpus``, and for the errors see both.
    """
    # device_count does not initialize CUDA, after which CUDA_VISIBLE_DEVICES would have no effect.
    present = 0 if name == "cpu" else torch.cuda.device_count()
    with ExitStack() as held:
        if present:
            names = held.enter_context(own_gpus(present, gpus, waits=waits))
            os.environ[VISIBLE] = ",".join(names)
        yield pick_device(name, workers)


def has_cpus_nearby(gpu: int) -> bool:
    """Return whether this process may run on a CPU core that is close to a GPU.

    ``gpu`` is the number of a GPU that CUDA sees. Linux lists the CPU cores that are close to a PCI
    device in a file, such as ``0-31,64-95``. If there is no such file, the result is False.
    """
    # torch's type stubs lack the properties of the PCI address.
    properties: Any = torch.cuda.get_device_properties(gpu)
    address = (
        f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:"
        f"{properties.pci_device_id:02x}.0"
    )
    listed = PCI_DEVICES / address / "local_cpulist"
    if not listed.is_file():
        return False
    nearby: set[int] = set()
    for part in filter(None, listed.read_text("ascii").strip().split(",")):
        first, _, last = part.partition("-")
        nearby.update(range(int(first), int(last or first) + 1))
    return not nearby.isdisjoint(os.sched_getaffinity(0))


def worker_device(device: str) -> str:
    """Return the device of this process, and make it torch's current device.

    A worker that torchrun started uses the GPU whose number is the worker's rank on this machine
    (LOCAL_RANK). A process that was started otherwise, or that computes on the CPU, uses ``device``
    itself.

    Raises:
        UserError: This build of torch has no code for the GPU.
    """
    if device == "cpu" or "LOCAL_RANK" not in os.environ:
        return device
    gpu = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(gpu)
    check_architecture()
    return gpu


def lock_folder() -> Path:
    """Return the folder that contains this user's locks on the GPUs of this machine.

    The folder is in TMPDIR, or else in /tmp. All processes of this user on this machine share it,
    except that each Slurm job has a folder of its own: Slurm numbers the GPUs of each job from 0,
    so the same number means different GPUs in different jobs.
    """
    name = f"convs2s-gpus-{os.getuid()}"
    if os.environ.get("SLURM_JOB_ID"):
        name += f"-{os.environ['SLURM_JOB_ID']}"
    return Path(tempfile.gettempdir()) / name


@contextmanager
def own_gpus(
    present: int,
    wanted: int,
    *,
    waits: bool = True,
) -> Iterator[list[str]]:
    """Hold GPUs while the block runs, and yield their names.

    A process holds a GPU by a lock on a file in ``lock_folder``. The kernel releases the lock when
    the process ends, even if it is killed.

    If CUDA_VISIBLE_DEVICES names exactly as many GPUs as are wanted, nothing is locked: a scheduler
    has granted these GPUs to this job alone. A lock would even be wrong, because schedulers may
    number the GPUs of each job from 0, so that the same name means different GPUs in two jobs.

    Args:
        present: number of GPUs that CUDA finds.
        wanted: number of GPUs to hold.
        waits: whether to wait for GPUs that other jobs hold. Otherwise, if too few GPUs are free,
            the first visible ones are shared with other jobs, and a message says so on the standard
            error.

    Raises:
        UserError: Fewer GPUs are visible than are wanted; or a lock cannot be opened; or the folder
            is not safe, because it belongs to another user or others may write to it.
    """
    stated = gpu_names(os.environ.get(VISIBLE, ""))
    visible = stated or list(map(str, range(present)))
    # CUDA_VISIBLE_DEVICES may name several parts of GPUs (MIG), but CUDA uses only one of them.
    usable = min(len(visible), present)
    if usable < wanted:
        raise UserError(
            f"{wanted} GPUs are requested, but this job sees {usable}; request fewer "
            "(gpus: N or --resources gpu=N in the workflow, --workers N for a single command)"
        )
    if len(stated) == wanted:
        yield stated
        return
    folder = lock_folder()
    _make_lock_folder(folder)
    with ExitStack() as locks:
        names = _lock_free_gpus(visible, wanted, folder, locks)
        if len(names) < wanted and not waits:
            # Release the GPUs that were free. They need not be among those that are shared.
            locks.close()
            names = visible[:wanted]
            print(
                f"too few GPUs are free: sharing {', '.join(names)} with other jobs",
                file=sys.stderr,
            )
        elif len(names) < wanted:
            print(
                f"waiting for {wanted} of the GPUs {', '.join(visible)}",
                file=sys.stderr,
            )
            while len(names) < wanted:
                # Hold no GPU while waiting. Otherwise two jobs could each hold one half of the GPUs
                # and wait for the other half for ever.
                locks.close()
                time.sleep(SECONDS_BETWEEN_TRIES)
                names = _lock_free_gpus(visible, wanted, folder, locks)
        yield names


def _make_lock_folder(folder: Path) -> None:
    """Make the folder of locks if it is missing, and refuse a folder that other users can change.

    Everybody may write to /tmp, so another user may have made a folder or a link of this name. Such
    a folder has another owner, and the mode of a link allows access to everybody. A safe folder
    stays safe: because of the sticky bit of /tmp, no other user can replace it.

    Raises:
        UserError: The folder is not safe.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UserError(
            f"{folder}: is not a safe folder for the locks of GPUs, because it belongs to another "
            "user, is open to other users, or is a link; remove it, or set TMPDIR to a folder of "
            "your own"
        )


def _lock_free_gpus(
    visible: Sequence[str],
    count: int,
    folder: Path,
    locks: ExitStack,
) -> list[str]:
    """Lock up to ``count`` GPUs that no other process holds, and return their names.

    The locks are held until ``locks`` is closed, even if fewer than ``count`` GPUs are free. A lock
    on the file ``choosing.lock`` lets only one process choose at a time.
    """
    names: list[str] = []
    with _lock_file(folder / "choosing.lock") as choosing:
        wait_for_lock(choosing)
        for name in visible:
            lock = _lock_file(folder / f"{name.replace('/', '-')}.lock")
            if try_lock(locks.enter_context(lock)):
                names.append(name)
            if len(names) == count:
                break
    return names


def _lock_file(path: Path) -> IO[str]:
    """Open or create a lock file, without following a link and without truncating the file.

    Raises:
        UserError: The file cannot be opened.
    """
    try:
        return os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+"
        )
    except OSError as error:
        raise UserError(
            f"{path}: the lock of a GPU cannot be opened ({error.strerror}); remove it, or set "
            "TMPDIR to a folder of your own"
        ) from None


def keep_freed_memory() -> None:
    """Make the C library keep freed memory for the next allocation.

    By default, glibc returns the memory of a large tensor to the system as soon as it is freed. For
    the next tensor, the system hands out the memory page by page and clears each page, which took a
    seventh of the processor time of a training. With glibc before 2.35, blocks of more than 32 MB
    are still returned. With other C libraries this function does nothing.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        # glibc before 2.35 refuses an M_MMAP_THRESHOLD above 32 MB (mallopt(3)), so set 32 MB
        # first. If both calls failed, setting M_TRIM_THRESHOLD would fix M_MMAP_THRESHOLD at its
        # small default.
        library.mallopt(M_MMAP_THRESHOLD, _OLD_MMAP_THRESHOLD)
        library.mallopt(M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
        # Never return memory at the end of the heap.
        library.mallopt(M_TRIM_THRESHOLD, -1)


def return_freed_memory() -> None:
    """Make the C library return the freed memory that it has kept (`keep_freed_memory`).

    A training calls this from time to time, because tensors of many sizes leave gaps in the memory,
    which would add up.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
