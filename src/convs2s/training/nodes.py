"""A training on several machines of one Slurm job: torchrun on each of them, and where they meet.

The process that the job runs on its first node holds the store at which the nodes meet, so that the
system can choose the port. It has srun start the same command on each node, which runs torchrun
there.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from torch._C._distributed_c10d import TCPStore

from convs2s.errors import UnfinishedError, UserError
from convs2s.training.torchrun import SHUTDOWN_SECONDS, TOLD_TO_WORKERS, torchrun

MEETING = "CONVS2S_MEETING"
"""Environment variable: HOST:PORT of the store at which a job's nodes meet."""

JOIN_SECONDS = 600
"""How long the first node to be ready waits for the others."""


def run_nodes(nodes: int, command: Sequence[str]) -> None:
    """Start the command on each node of this Slurm job and wait for all.

    Args:
        nodes: number of nodes.
        command: the arguments of ``convs2s``.

    Raises:
        UserError: this is no Slurm job, or a node failed.
        UnfinishedError: training stopped early.
    """
    if "SLURM_JOB_ID" not in os.environ or shutil.which("srun") is None:
        raise UserError(
            f"{nodes} nodes are asked for, but this is no job of Slurm's: use a cluster profile "
            "(docs/cluster.md), or set nodes to 1"
        )
    store = TCPStore(socket.gethostname(), 0, is_master=True, wait_for_workers=False)
    environment = os.environ | {MEETING: f"{store.host}:{store.port}"}
    with _forwarding() as started:
        # In a session of its own, as srun takes a signal to the group of this process for an order
        # to kill all nodes at once.
        srun = subprocess.Popen(
            srun_command(nodes, command),
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(srun)
        code = srun.wait()
    if code == UnfinishedError.exit_code:
        raise UnfinishedError("the nodes stopped before the end, as said above")
    if code:
        raise UserError(
            f"the nodes ended with code {code}, as said above; the last state is intact: run the "
            "same command again"
        )


def srun_command(nodes: int, command: Sequence[str]) -> list[str]:
    """Return the command that runs ``convs2s`` once on each node, with all that the job has there.

    Where one node has ended the others do so too, or are ended after the time that a state takes.
    """
    return [
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        f"--wait={SHUTDOWN_SECONDS}",
        sys.executable,
        "-m",
        "convs2s",
        *command,
    ]


@contextmanager
def _forwarding() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Hand signals on to all nodes: srun forwards SIGUSR1, while SIGTERM has it kill them.

    Yields:
        where the block puts srun; a signal that comes before that ends the block.
    """
    started: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        if not started:
            raise UnfinishedError(f"{signal.Signals(number).name} was received before the start")
        started[0].send_signal(signal.SIGUSR1)

    before = {number: signal.signal(number, forward) for number in TOLD_TO_WORKERS}
    try:
        yield started
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_node(meeting: str, nodes: int, workers: int, threads: int, command: Sequence[str]) -> None:
    """Train with the workers of this node and those of the others.

    Args:
        meeting: HOST:PORT of the store at which the nodes meet.
        nodes: number of nodes.
        workers: number of workers on each node.
        threads: CPU threads of each worker.
        command: the arguments of ``convs2s`` that each worker is started with.

    Raises:
        UserError: a worker failed; the message names the node.
        UnfinishedError: the workers stopped early.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        torchrun(node_options(meeting, nodes, workers), command)
    except UserError as error:
        raise type(error)(f"{node_name(os.environ)}: {error}") from None


def node_options(meeting: str, nodes: int, workers: int) -> list[str]:
    """Return what torchrun is told of one of several nodes."""
    return [
        f"--nnodes={nodes}",
        f"--nproc-per-node={workers}",
        "--rdzv-id=convs2s",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={meeting}",
        f"--rdzv-conf=is_host=0,join_timeout={JOIN_SECONDS}",
        f"--local-addr={socket.gethostname()}",
    ]


def node_name(environment: Mapping[str, str]) -> str:
    """Return what the scheduler calls this node, or the system."""
    return environment.get("SLURMD_NODENAME", socket.gethostname())
