"""Start the workers of a training: hold GPUs, and run torchrun, on several nodes through srun.

The same command runs in several roles:

- On one machine, it holds GPUs. A single worker trains in the same process. For several workers it
  runs torchrun.
- In a Slurm job of several nodes, the first process opens a TCP store, for which the system chooses
  the port, and starts the command on each node with srun. CONVS2S_MEETING has the address of the
  store. On each node, the command runs torchrun, whose agents find each other through the store.
- A worker that torchrun started trains.
"""

import logging
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import FrameType

from torch._C._distributed_c10d import TCPStore
from torch.distributed import run
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousError

from convs2s.devices import (
    check_recipe,
    gpu_names,
    gpus_granted,
    has_cpus_nearby,
    held_device,
)
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.interrupts import handling
from convs2s.training.heartbeat import HEARTBEATS, ending_stuck_workers, last_words
from convs2s.training.identity import TrainingJob
from convs2s.training.interruption import Interruption, signals_to_handle
from convs2s.training.run import train
from convs2s.training.scheduler import end_of_job, is_in_a_job, queueing_again
from convs2s.training.workers import RENDEZVOUS, is_worker

MEETING = "CONVS2S_MEETING"
"""Environment variable: HOST:PORT of the TCP store through which a job's nodes find each other."""

JOIN_SECONDS = 600.0
"""How long nodes wait for each other at the start, or less if the job has less time left."""

LEAST_JOIN_SECONDS = 60.0
"""Nodes wait for each other at least this long, even if the job has less time left."""

SHUTDOWN_SECONDS = 120
"""How long workers may take to write a state after a signal; then they are killed."""


def launch(
    job: TrainingJob,
    nodes: int,
    workers: int,
    command: Sequence[str],
) -> None:
    """Train with ``workers`` workers on each of ``nodes`` nodes, or do this process's part of it.

    Each worker has a GPU of its own, unless the device is the CPU. A single worker trains in this
    process. More workers, and other nodes of this Slurm job, are started with ``command``: the
    arguments of ``convs2s`` that started this process.

    Raises:
        UnfinishedError: Training stopped early.
        UserError: Training failed.
    """
    if is_worker():
        train(job)
        return
    if MEETING in os.environ:
        run_node(job, nodes, workers, command)
        return
    with queueing_again() if job.requeues else nullcontext():
        if nodes > 1:
            run_nodes(nodes, command)
        else:
            run_node(job, nodes, workers, command)


def is_started_by_another() -> bool:
    """Return whether a process of the same training started this one, on a node or as a worker."""
    return MEETING in os.environ or is_worker()


def run_node(
    job: TrainingJob,
    nodes: int,
    workers: int,
    command: Sequence[str],
) -> None:
    """Train with the workers of this node, on GPUs that no other job on this machine uses.

    Raises:
        UnfinishedError: Training stopped early.
        UserError: Training failed. With several nodes, the message begins with the node's name.
    """
    store = os.environ.get(MEETING)  # None: all workers are on this machine
    seconds_left = Interruption(job.time_limit, end=end_of_job()).seconds_left()
    if job.device != "cpu":
        check_grant(workers)
    with ExitStack() as resources:
        held = held_device(job.device, gpus=workers, workers=nodes * workers)
        device = resources.enter_context(held)
        check_recipe(job.recipe, device)
        if store is None and workers == 1:
            train(job)
            return
        temporary = tempfile.TemporaryDirectory(prefix="convs2s-")
        folder = Path(resources.enter_context(temporary))
        heartbeats = folder / "heartbeats"
        heartbeats.mkdir()
        os.environ[HEARTBEATS] = str(heartbeats)
        resources.enter_context(ending_stuck_workers(heartbeats))
        os.environ["OMP_NUM_THREADS"] = str(job.threads)
        if store is None:
            os.environ.update(worker_environment(folder))
        options = torchrun_options(nodes, workers, store or folder, seconds_left)
        if device == "cuda":
            options += numa_options(workers)
        try:
            torchrun(options, command, heartbeats)
        except UserError as error:
            if store is None:
                raise
            node = os.environ.get("SLURMD_NODENAME", socket.gethostname())
            raise type(error)(f"{node}: {error}") from None


def granted_workers() -> int:
    """Return the number of GPUs that a scheduler has granted on this node, at least 1.

    Outside of a scheduler's job it is 1, even if CUDA_VISIBLE_DEVICES names several GPUs.
    """
    granted = gpu_names(gpus_granted())
    return max(1, len(granted)) if is_in_a_job() else 1


def check_grant(workers: int) -> None:
    """Check that a scheduler has granted enough GPUs on this node: one for each worker.

    If it has granted more, such as to a job that gets a whole node, print a message. The additional
    GPUs are not used, because the job has only the memory and the CPUs that it asked for.

    Raises:
        UserError: Fewer GPUs were granted than there are workers.
    """
    grant = (
        gpus_granted()
    )  # such as NAME=0,1; the NAME does not change the number of commas
    granted = len(gpu_names(grant))
    if grant and granted < workers:
        raise UserError(
            f"{workers} workers are asked for, with a GPU each (gpus of config.yaml, or --workers),"
            f" but only {granted} GPUs were granted on this node ({grant}): set gpus to {granted}, "
            f"or request {workers} GPUs from the scheduler (docs/cluster.md)"
        )
    if granted > workers and is_in_a_job():
        print(
            f"convs2s: {granted} GPUs were granted on this node ({grant}), but only {workers} are "
            "used; to use more, set gpus in config.yaml, or --workers",
            file=sys.stderr,
        )


def worker_environment(folder: Path) -> dict[str, str]:
    """Return environment variables that make the workers of one machine communicate only locally.

    They find each other through a file in ``folder``, and use the loopback interface.
    """
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {
        RENDEZVOUS: str(folder / "workers"),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
    }


def torchrun_options(
    nodes: int,
    workers: int,
    store: Path | str,
    seconds: float = JOIN_SECONDS,
) -> list[str]:
    """Return the options of torchrun: the number of workers, their rendezvous, and signals.

    ``store`` is a folder if all workers are on this machine: they find each other through files
    there, because torchrun's own store would listen on the network. Otherwise it is the HOST:PORT
    of the store that the job's first process has opened.

    ``seconds`` is the time that this job has left. Nodes wait no longer than that for each other.
    """
    if isinstance(store, Path):
        endpoint = str(store / "torchrun")
        configuration = "store_type=file"
        address = "127.0.0.1"
    else:
        endpoint = store
        join_seconds = math.ceil(max(LEAST_JOIN_SECONDS, min(JOIN_SECONDS, seconds)))
        configuration = f"is_host=0,join_timeout={join_seconds}"
        address = socket.gethostname()
    return [
        f"--nnodes={nodes}",
        f"--nproc-per-node={workers}",
        "--rdzv-id=convs2s",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={endpoint}",
        f"--rdzv-conf={configuration}",
        f"--local-addr={address}",
        "--max-restarts=0",
        f"--signals-to-handle={','.join(number.name for number in signals_to_handle())}",
    ]


def numa_options(workers: int) -> list[str]:
    """Return the option of torchrun that keeps each worker on the CPUs next to its GPU.

    The list is empty if torchrun has no such option (torch before 2.9). It is also empty if
    torchrun would fail, because the program numactl is missing or because this job has no CPU next
    to one of the GPUs.
    """
    option = "--numa-binding"
    if option not in run.get_args_parser().format_help():
        return []
    if shutil.which("numactl") is None:
        return []
    can_bind = all(map(has_cpus_nearby, range(workers)))
    return [f"{option}=node"] if can_bind else []


def torchrun(
    options: Sequence[str],
    command: Sequence[str],
    heartbeats: Path,
) -> None:
    """Run torchrun in this process: start the workers of this machine and wait for them.

    ``heartbeats`` is the folder of the workers' heartbeats. A worker that fails writes its error
    there.

    Raises:
        UnfinishedError: The workers stopped early, or this process received a signal.
        UserError: A worker failed. Unless it was killed by a signal, it has printed the reason.
    """
    # The workers report their error in one line, so silence torchrun's own reports. One of its
    # loggers has a level of its own.
    for part in ("", ".agent.server.api"):
        logging.getLogger(f"torch.distributed.elastic{part}").setLevel(logging.CRITICAL)
    # The same as the option --shutdown-timeout, which torch has from 2.12 on. Older versions ignore
    # it and wait for 30 s.
    os.environ["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = str(SHUTDOWN_SECONDS)
    try:
        run.run(run.parse_args([*options, "--module", "convs2s", *command]))
    except ChildFailedError as error:
        codes = {worker: failure.exitcode for worker, failure in error.failures.items()}
        if UnfinishedError.exit_code in codes.values():
            message = "the workers stopped before the end, for the reason above"
            raise UnfinishedError(message) from None
        for worker, code in codes.items():
            if code < 0:
                raise UserError(
                    f"worker {worker} was killed by {signal.Signals(-code).name}, so the others "
                    "were stopped; the last state is intact: run the same command again"
                ) from None
        words = last_words(heartbeats) or "the workers ended with the error above"
        raise UserError(words) from None
    except RendezvousError as error:
        raise UserError(
            f"the nodes did not find each other in time ({error}): see the network of several "
            "nodes in docs/cluster.md"
        ) from None
    except SignalException as error:
        message = f"{error.sigval.name} was received: run the same command again"
        raise UnfinishedError(message) from None


def run_nodes(nodes: int, command: Sequence[str]) -> None:
    """Start the command on each node of this Slurm job and wait until all have ended.

    Raises:
        UnfinishedError: Training stopped early, or a signal came before the nodes were started.
        UserError: This process is not in a Slurm job, srun is missing, or a node failed.
    """
    if "SLURM_JOB_ID" not in os.environ:
        raise UserError(
            f"{nodes} nodes are asked for, but this is not a Slurm job; use a cluster profile "
            "(docs/cluster.md), or set nodes to 1"
        )
    if shutil.which("srun") is None:
        raise UserError(
            f"{nodes} nodes are asked for, but srun is missing, as in a container; train without a "
            "container (docs/container.md), or set nodes to 1"
        )
    store = TCPStore(socket.gethostname(), 0, is_master=True)
    srun = [
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        # Otherwise srun may bind the one task of a node, and so all of its workers, to a single
        # CPU: from Slurm 22.05 on, it does not take over the --cpus-per-task of sbatch.
        "--cpu-bind=none",
        # After one node has ended, the others have this long to end, too; then srun kills them.
        f"--wait={SHUTDOWN_SECONDS}",
    ]
    started: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        """Forward a signal that stops a training to the workers on all nodes."""
        if not started:
            raise UnfinishedError(
                f"{signal.Signals(number).name} was received before the start"
            )
        # srun forwards SIGUSR1 to all nodes, but on SIGTERM it kills them.
        started[0].send_signal(signal.SIGUSR1)

    with handling(signals_to_handle(), forward):
        # Start srun in a session of its own. Otherwise it would also get the signals that are sent
        # to the process group of this process, and kill all nodes at once.
        process = subprocess.Popen(
            [*srun, sys.executable, "-m", "convs2s", *command],
            env=os.environ | {MEETING: f"{store.host}:{store.port}"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        code = process.wait()
    if code == UnfinishedError.exit_code:
        raise UnfinishedError("the nodes stopped before the end, for the reason above")
    if code:
        raise UserError(
            f"the nodes ended with exit code {code}, for the reason above; the last state is "
            "intact: run the same command again"
        )
