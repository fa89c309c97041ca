"""From one command to the workers of this machine: their GPUs, and torchrun."""

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from convs2s.devices import VISIBLE, lock_folder, own_gpus, pick_device
from convs2s.training.job import TrainingJob
from convs2s.training.nodes import MEETING, run_node, run_nodes
from convs2s.training.run import train
from convs2s.training.torchrun import torchrun
from convs2s.training.workers import RENDEZVOUS, is_worker


def launch(job: TrainingJob, nodes: int, workers: int, command: Sequence[str]) -> None:
    """Train with this many workers, each on a GPU of its own where there are GPUs.

    Args:
        job: the training.
        nodes: number of machines; more than one are those of this Slurm job.
        workers: number of processes on each machine; a single one trains in this process.
        command: the arguments of ``convs2s`` that each worker is started with.

    Raises:
        UserError: training failed.
        UnfinishedError: training stopped early.
    """
    if is_worker():
        train(job)
        return
    meeting = os.environ.get(MEETING)
    if nodes > 1 and meeting is None:
        run_nodes(nodes, command)
        return
    with ExitStack() as resources:
        # Counting does not start CUDA, which would fix the GPUs that this process sees.
        present = 0 if job.device == "cpu" else torch.cuda.device_count()
        if present:
            gpus = own_gpus(os.environ, present, workers, lock_folder())
            os.environ[VISIBLE] = ",".join(resources.enter_context(gpus))
        else:
            pick_device(job.device)
        if meeting is not None:
            run_node(meeting, nodes, workers, job.threads, command)
        elif workers == 1:
            train(job)
        else:
            run_workers(workers, job.threads, command)


def run_workers(workers: int, threads: int, command: Sequence[str]) -> None:
    """Start the workers of a training on this machine alone by torchrun and wait for them.

    Raises:
        UserError: a worker failed.
        UnfinishedError: the workers stopped early.
    """
    with tempfile.TemporaryDirectory(prefix="convs2s-") as name:
        folder = Path(name)
        os.environ.update(worker_environment(folder, threads))
        torchrun(torchrun_options(workers, folder), command)


def torchrun_options(workers: int, folder: Path) -> list[str]:
    """Return what torchrun is told of one node, which opens no port beyond it.

    The workers meet in files of the folder, as torchrun's own store would listen to the network.
    """
    return [
        "--nnodes=1",
        f"--nproc-per-node={workers}",
        "--rdzv-id=convs2s",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={folder / 'torchrun'}",
        "--rdzv-conf=store_type=file",
        "--local-addr=127.0.0.1",
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
