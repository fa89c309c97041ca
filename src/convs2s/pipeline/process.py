"""The process that runs the workflow: its environment, its locks, its GPUs, its failures."""

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from convs2s.errors import UserError
from convs2s.files.locks import try_lock, wait_for_lock

PACKAGE_FOLDER = Path(__file__).absolute().parents[1]
"""The folder of this package, a link to it unresolved (``package_alone``)."""


def package_alone(folder: Path) -> Path:
    """Return a folder in which jobs find this package and no other: of an installed one, by a link.

    Beside an installed package lie all others of its Python, which a job in a conda environment,
    with a Python of its own, must not find.
    """
    if not any(PACKAGE_FOLDER.parent.glob("*.dist-info")):
        return PACKAGE_FOLDER.parent
    link = folder / PACKAGE_FOLDER.name
    folder.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.resolve() != PACKAGE_FOLDER.resolve():
        partial = folder / f".{PACKAGE_FOLDER.name}.{os.getpid()}"
        partial.symlink_to(PACKAGE_FOLDER)
        partial.replace(link)
    return folder.absolute()


def provide_environment(source: Path = PACKAGE_FOLDER.parent) -> None:
    """Let jobs find this package and the Python that runs now, whoever started it and how.

    A conda environment's own Python still comes first. Threads that wait give up their core: where
    several jobs share a machine, busy waiting makes each of them many times slower. numpy's
    OpenBLAS always waits busily, and its products are small here: it has one thread.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name, folder in (("PYTHONPATH", source), ("PATH", Path(sys.executable).parent)):
        rest = os.environ.get(name, "").split(os.pathsep)
        os.environ[name] = os.pathsep.join([str(folder), *filter(None, rest)])


def release_stale_locks(folder: Path) -> IO[str]:
    """Remove the locks that a killed Snakemake left in its folder ``.snakemake``, and only those.

    Every process that runs the workflow here shares a lock of the kernel's, which dies with it. One
    that can have it alone is the only one: what Snakemake's own lock files say is then untrue, and
    the same command resumes without ``--unlock``. The caller keeps open what is returned. A
    UserError says that nothing can be written here, as Snakemake itself has to, also for a plan.
    """
    try:
        folder.mkdir(exist_ok=True)
        alive = (folder / "alive").open("a+")  # also to read: else NFS shares no lock
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        raise UserError(
            f"{folder.absolute()}: cannot be written: {error.strerror}: Snakemake keeps its "
            "records here, also of a plan (-n): ask its owner, or copy the folder and plan there; "
            "convs2s status needs to read alone"
        ) from None
    try:
        if try_lock(alive):  # else another one runs: its locks hold
            for lock in folder.glob("locks/*.lock"):
                lock.unlink(missing_ok=True)
        wait_for_lock(alive, shared=True)
    except OSError as error:
        # A file system without locks: Snakemake's own hold until ``--unlock``.
        if error.errno not in {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK}:
            raise
    return alive


def logged(command: str, before: str) -> str:
    """Return a rule's shell command that also goes to its log, and outlives a scheduler's signals.

    A scheduler signals the whole process group, and so does Ctrl-C. The command answers SIGTERM,
    SIGUSR1 and SIGINT itself; the shell and tee have to be there for all that it says, also where
    nobody reads the terminal's copy any more (``| head``), or no line fits on the disk. The log
    begins with the file ``before`` (quoted) of earlier tries, as Snakemake removes the last one's.
    """
    copy = "(trap '' TERM USR1 INT HUP PIPE; tee -a {log:q} || true)"
    return (
        f"if [ -f {before} ]; then cat {before} > {{log:q}}; fi; "
        f"trap : TERM USR1 INT HUP; {command} 2>&1 | {copy}"
    )


def granted_gpus(environment: Mapping[str, str]) -> int:
    """Return how many GPUs a scheduler has granted to this job; 0 where it does not say."""
    names = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return sum(name.strip() not in ("", "NoDevFiles") for name in names)


def slurm_options(gpus: int, defaults: Mapping[str, Any]) -> str:
    """Return the resource ``slurm_extra`` of a training on several nodes, with so many GPUs each.

    GPUs that are asked for in all Slurm may grant as 3 on one node and 1 on another, and its plugin
    for Snakemake has no resource for those of a node (github.com/snakemake/
    snakemake-executor-plugin-slurm, "slurm_extra"). ``defaults`` are the profile's own resources,
    expressions of Snakemake's: a rule's ``slurm_extra`` replaces theirs. Where they have a
    ``gpu_model``, the plugin asks for GPUs by it, and Slurm refuses a count without it beside that.
    """
    extra, model = (
        str(getattr(defaults.get(name), "raw", None) or "").strip("'\"")
        for name in ("slurm_extra", "gpu_model")
    )
    of_gpus = f"--gpus-per-node={model and f'{model}:'}{gpus}" if gpus else ""
    return " ".join(filter(None, [extra, "--ntasks-per-node=1", of_gpus]))


@contextmanager
def failures_in_one_line() -> Iterator[None]:
    """Exit with a fault of the input in one line, where Snakemake would also show the code."""
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")
