"""From one command to the workers of this machine: their GPUs, and torchrun."""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from torch.distributed import run
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from convs2s.devices import VISIBLE, lock_folder, own_gpus, pick_device
from convs2s.errors import UnfinishedError, UserError
from convs2s.training.job import TrainingJob
from convs2s.training.run import train
from convs2s.training.workers import RENDEZVOUS, is_worker

SHUTDOWN_SECONDS = 120
"""How long workers may take to write a state after a signal before they are killed."""


def launch(job: TrainingJob, workers: int, command: Sequence[str]) -> None:
    """Train with this many workers, each on a GPU of its own where there are GPUs.

    Args:
        job: the training.
        workers: number of processes; one trains in this process.
        command: the arguments of ``convs2s`` that each worker is started with.

    Raises:
        UserError: training failed.
        UnfinishedError: training stopped early.
    """
    if is_worker():
        train(job)
        return
    with ExitStack() as resources:
        # Counting does not start CUDA, which would fix the GPUs that this process sees.
        present = 0 if job.device == "cpu" else torch.cuda.device_count()
        if present:
            gpus = own_gpus(os.environ, present, workers, lock_folder())
            os.environ[VISIBLE] = ",".join(resources.enter_context(gpus))
        else:
            pick_device(job.device)
        if workers == 1:
            train(job)
        else:
            run_workers(workers, job.threads, command)


def run_workers(workers: int, threads: int, command: Sequence[str]) -> None:
    """Start the workers by torchrun and wait for them.

    Raises:
        UserError: a worker failed.
        UnfinishedError: the workers stopped early.
    """
    # Each worker says in one line why it ends.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="convs2s-") as name:
        folder = Path(name)
        os.environ.update(worker_environment(folder, threads))
        try:
            run.run(run.parse_args([*torchrun_options(workers, folder), *command]))
        except ChildFailedError as error:
            raise _failure(error.failures.values()) from None
        except SignalException as error:
            message = f"{error.sigval.name} was received: run the same command again"
            raise UnfinishedError(message) from None


def torchrun_options(workers: int, folder: Path) -> list[str]:
    """Return what torchrun is told, up to the command: one node, which opens no port beyond it.

    The workers meet in files of the folder, as torchrun's own store would listen to the network.
    """
    return [
        "--nnodes=1",
        f"--nproc-per-node={workers}",
        "--max-restarts=0",
        "--rdzv-id=convs2s",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={folder / 'torchrun'}",
        "--rdzv-conf=store_type=file",
        "--local-addr=127.0.0.1",
        "--signals-to-handle=SIGTERM,SIGUSR1,SIGINT,SIGHUP",
        f"--shutdown-timeout={SHUTDOWN_SECONDS}",
        "--module",
        "convs2s",
    ]


def worker_environment(folder: Path, threads: int) -> dict[str, str]:
    """Return the variables that keep the workers' talk on this machine."""
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {
        RENDEZVOUS: str(folder / "workers"),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
        "OMP_NUM_THREADS": str(threads),
    }


def _failure(failures: Iterable[ProcessFailure]) -> UserError:
    """Return the error that sums up how workers ended; they have given the reason themselves."""
    codes = {failure.local_rank: failure.exitcode for failure in failures}
    if UnfinishedError.exit_code in codes.values():
        return UnfinishedError("the workers stopped before the end, as said above")
    for worker, code in codes.items():
        if code < 0:
            return UserError(
                f"worker {worker} was ended by {signal.Signals(-code).name}, and the others with "
                "it; the last state is intact: run the same command again"
            )
    return UserError("the workers ended with the error above")
