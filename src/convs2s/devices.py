"""Where to compute, GPUs that no other job on this machine computes on, and memory.

It lies beside the rooms, as trainings, decodings, the API and commands all ask it.
"""

import ctypes
import os
import re
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import IO

import torch

from convs2s.config.model import Recipe
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

# Parameters of glibc's mallopt, of malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
OF_ITS_OWN = 1 << 30  # Bytes of an allocation that goes back to the system once it is freed


def pick_device(name: str, workers: int = 1) -> str:
    """Return the device that ``auto`` stands for on this machine, or the name itself.

    A GPU multiplies matrices of float32 in TF32 from then on: several times as fast, factors
    rounded to 10 bits.

    Raises:
        UserError: torch can use no GPU where ``cuda`` is asked for, or ``auto`` in a job that was
            granted GPUs or for several workers, which compute on a CPU only if that is stated; or
            torch has no code for the GPU.
    """
    if name == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        check_architecture()
        torch.set_float32_matmul_precision("high")
        return "cuda"
    asked = f"device {name}"
    need = gpus_granted()
    if not need and workers > 1:
        need = f"{workers} workers"
    if need:
        asked += f" for {need}"
    if need or name == "cuda":
        raise UserError(f"{asked}: torch can use no GPU: {why_no_gpu()}; or set device to cpu")
    return "cpu"


def gpus_granted() -> str:
    """Return the variable by which a scheduler grants this job GPUs, as NAME=VALUE, or nothing.

    CUDA_VISIBLE_DEVICES decides where it is set, also to nothing. Slurm's own names the job's GPUs
    (sbatch(1), output environment variables), NVIDIA's device plugin for Kubernetes their UUIDs.
    """
    for name, pattern in _GRANTS.items():
        if re.match(pattern, os.environ.get(name, "")):
            return f"{name}={os.environ[name]}"
        if name == VISIBLE and name in os.environ:
            break
    return ""


def gpu_names(stated: str) -> list[str]:
    """Return the names of GPUs between commas."""
    return [name.strip() for name in stated.split(",") if name.strip()]


def why_no_gpu() -> str:
    """Return why torch can use no GPU here, and what to do."""
    build = f"torch {torch.__version__}"
    if not torch.backends.cuda.is_built():
        return (
            f"{build} is built for CPUs alone: install its build for your GPUs, in a clone by "
            "rm -rf .venv && make install TORCH=cuda (docs/install.md)"
        )
    build += f" is built for CUDA {torch.version.cuda}"
    try:
        torch.cuda.init()
    except RuntimeError as error:  # it names the driver where that is too old, or missing
        return f"{build} and says: {str(error).partition('. ')[0]}: see docs/install.md"
    return f"{build} and sees none: see nvidia-smi"


def check_architecture() -> None:
    """Refuse a GPU, the current one of this process, that this build of torch has no code for.

    Code for a compute capability runs on later ones of the same first digit; PTX ("compute_...")
    is compiled for any later one (CUDA C++ Programming Guide, "Binary Compatibility").

    Raises:
        UserError: the GPU is older than all code, or newer where there is no PTX.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own words for it, eight lines
        own = torch.cuda.get_device_capability()
    names = torch.cuda.get_arch_list()
    is_known = False
    for name in names:
        code = re.fullmatch(r"(sm|compute)_(\d+)(\d)[af]?", name)
        if not code:  # as of ROCm, whose names are others
            continue
        is_known = True
        major = int(code[2])
        is_earlier = (major, int(code[3])) <= own
        if is_earlier and (code[1] == "compute" or major == own[0]):
            return
    if is_known:
        raise UserError(
            f"{_gpu()}: this build of torch, {torch.__version__}, has code for "
            f"{' '.join(names)} alone: install one for this GPU "
            "(docs/install.md), or set device to cpu"
        )


def check_precision(precision: str, device: str) -> None:
    """Refuse bf16 on a GPU that has none, as torch would emulate it.

    Raises:
        UserError: the current GPU of this process has a compute capability below 8.0.
    """
    is_on_gpu = torch.device(device).type == "cuda"
    if precision == "bf16" and is_on_gpu and not has_bf16():
        raise UserError(
            f"precision: bf16: {_gpu()} has no bf16: ask for another GPU (docs/cluster.md), or "
            "state precision: fp32, which trains anew"
        )


def check_recipe(recipe: Recipe, device: str) -> None:
    """Refuse what a recipe asks of a device that has it not, before anything is computed.

    Raises:
        UserError: the current GPU of this process has no bf16, or this node no compiler for what
            torch.compile writes, of C for a GPU, as Triton asks, of C++ for a CPU, or no Python.h.
    """
    check_precision(recipe.precision, device)
    if not recipe.compile:
        return
    if torch.device(device).type == "cuda":
        compilers = os.environ.get("CC", "gcc or clang")
    else:
        compilers = os.environ.get("CXX", "g++")
    if not any(map(which, compilers.split(" or "))):
        raise UserError(
            f"compile: no compiler is on this node ({compilers}): install one, or state "
            "compile: false"
        )
    headers = sysconfig.get_path("include", "posix_prefix")
    folders = [headers, *os.environ.get("CPATH", "").split(os.pathsep)]
    if not any(Path(folder, "Python.h").exists() for folder in folders):
        python = f"python{sysconfig.get_python_version()}"
        raise UserError(
            f"compile: Python's headers are not on this node (no Python.h in {headers}): install "
            f"them ({python}-dev of Debian, {python}-devel of Fedora), or state compile: false"
        )


def has_bf16() -> bool:
    """Return whether the current GPU of this process computes in bf16 by itself."""
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def _gpu() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"{torch.cuda.get_device_name()} (compute capability {major}.{minor})"


@contextmanager
def held_device(name: str, *, gpus: int = 1, workers: int = 1, waits: bool = True) -> Iterator[str]:
    """Hold so many GPUs that are free while the block runs; yield the device.

    This process sees these GPUs alone from then on, so nothing may have started CUDA before.
    Without a GPU, or on a CPU, nothing is held. ``name`` is ``auto``, ``cpu`` or ``cuda``;
    ``waits``, ``workers`` and the errors are those of ``own_gpus`` and ``pick_device``.
    """
    # Counting does not start CUDA, which would fix the GPUs that this process sees.
    present = 0 if name == "cpu" else torch.cuda.device_count()
    with ExitStack() as held:
        if present:
            names = own_gpus(os.environ, present, gpus, lock_folder(), waits=waits)
            os.environ[VISIBLE] = ",".join(held.enter_context(names))
        yield pick_device(name, workers)


def worker_device(device: str) -> str:
    """Return a worker's own device: on a GPU machine, the one of its number there."""
    if device == "cpu" or "LOCAL_RANK" not in os.environ:
        return device
    own = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(own)
    check_architecture()
    return own


def lock_folder() -> Path:
    """Return where this user's locks on this machine's GPUs are; they are no one's results.

    All sessions on this machine share one; a job of Slurm, whose GPUs count anew, has its own.
    """
    name = f"convs2s-gpus-{os.getuid()}"
    if os.environ.get("SLURM_JOB_ID"):
        name += f"-{os.environ['SLURM_JOB_ID']}"
    return Path(tempfile.gettempdir()) / name


@contextmanager
def own_gpus(
    environment: Mapping[str, str], present: int, wanted: int, folder: Path, *, waits: bool = True
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
        waits: whether to wait for GPUs that others hold; else they are shared, and that is said.

    Raises:
        UserError: fewer are visible than are wanted, or the folder is not this user's own.
    """
    stated = gpu_names(environment.get(VISIBLE, ""))
    visible = stated or list(map(str, range(present)))
    seen = min(len(visible), present)  # CUDA sees one part of a GPU (MIG) alone
    if seen < wanted:
        raise UserError(
            f"{wanted} GPUs are asked for, but this job sees {seen}; ask for fewer "
            "(gpus: N, --resources gpu=N, or by hand --workers N)"
        )
    if len(stated) == wanted:
        yield stated
        return
    _make_own(folder)
    with ExitStack() as locks:
        names = _lock_free_gpus(visible, wanted, folder, locks)
        if len(names) < wanted:
            said = f"waiting for {wanted} of the GPUs {', '.join(visible)}"
            if not waits:
                names = visible[:wanted]
                said = f"other jobs hold all GPUs: sharing {', '.join(names)} with one"
            print(said, file=sys.stderr)
        while len(names) < wanted:
            locks.close()  # all or none: two jobs that held half each would wait for ever
            time.sleep(SECONDS_BETWEEN_TRIES)
            names = _lock_free_gpus(visible, wanted, folder, locks)
        yield names


def _make_own(folder: Path) -> None:
    """Make the folder of locks where there is none; refuse one that others may change.

    Everybody may write to /tmp: what lies there under its name may be another user's, or a link,
    whose mode is that of no folder of this user's. One's own nobody else can replace there.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UserError(
            f"{folder}: is no safe place for the locks of GPUs: other users own it or may read or "
            "write it, or it is a link; remove it, or set TMPDIR to a folder of your own"
        )


def _lock_free_gpus(
    visible: Sequence[str], count: int, folder: Path, locks: ExitStack
) -> list[str]:
    """Lock GPUs that nobody holds, one process at a time; return their names."""
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
    """Open a lock, never through a link, and never cutting what it holds."""
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")
    except OSError as error:
        raise UserError(
            f"the lock {path.name} of a GPU cannot be opened: {error.strerror}"
        ) from None


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for the next allocation.

    It gives large tensors back to the system at once, which hands them out again page by page, each
    cleared: a seventh of a training's processor time. glibc keeps those of more than 32 MB from
    version 2.35 on. Other C libraries are left as they are.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        # Before 2.35 it refuses more than 32 MB (mallopt(3)); what follows would fix the default.
        library.mallopt(M_MMAP_THRESHOLD, 1 << 25)
        library.mallopt(M_MMAP_THRESHOLD, OF_ITS_OWN)
        library.mallopt(M_TRIM_THRESHOLD, -1)


def return_freed_memory() -> None:
    """Give what the C library keeps back to the system.

    Asked for once in a while, so that the gaps between tensors of many sizes do not add up.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
