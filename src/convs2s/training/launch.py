"""From one command to the workers of a training: GPUs, torchrun on each machine, srun over them.

On several machines of one Slurm job, the process that the job runs on its first node holds the
store at which the nodes meet, so that the system can choose the port. It has srun start the same
command on each node, which runs torchrun there.
"""

import logging
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

from convs2s.devices import check_recipe, gpu_names, gpus_granted, held_device
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.interrupts import handling
from convs2s.training.heartbeat import HEARTBEATS, ending_frozen_workers
from convs2s.training.identity import TrainingJob
from convs2s.training.interruption import signals_to_handle
from convs2s.training.requeue import queueing_again
from convs2s.training.run import train
from convs2s.training.scheduler import is_in_a_job
from convs2s.training.workers import RENDEZVOUS, is_worker

MEETING = "CONVS2S_MEETING"
"""Environment variable: HOST:PORT of the store at which a job's nodes meet."""

JOIN_SECONDS = 600  # How long the first node to be ready waits for the others

SHUTDOWN_SECONDS = 120
"""How long workers may take to write a state after a signal before they are killed."""


def launch(job: TrainingJob, nodes: int, workers: int, command: Sequence[str]) -> None:
    """Train with so many workers on each node, each on a GPU of its own where there are GPUs.

    More than one node are those of this Slurm job; a single worker trains in this process. Others
    are started with ``command``, the arguments of ``convs2s``.

    Raises:
        UnfinishedError: Training stopped early.
        UserError: It failed.
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


def run_node(job: TrainingJob, nodes: int, workers: int, command: Sequence[str]) -> None:
    """Train with the workers of this node, on GPUs that no other training uses."""
    meeting = os.environ.get(MEETING)
    if job.device != "cpu":
        check_grant(workers)
    with ExitStack() as resources:
        held = held_device(job.device, gpus=workers, workers=nodes * workers)
        check_recipe(job.recipe, resources.enter_context(held))
        if meeting is None and workers == 1:
            train(job)
            return
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="convs2s-")))
        os.environ[HEARTBEATS] = str(folder / "heartbeats")
        (folder / "heartbeats").mkdir()
        resources.enter_context(ending_frozen_workers(folder / "heartbeats"))
        os.environ["OMP_NUM_THREADS"] = str(job.threads)
        if meeting is None:
            os.environ.update(worker_environment(folder))
        try:
            torchrun(torchrun_options(nodes, workers, meeting or folder), command)
        except UserError as error:
            if meeting is None:
                raise
            node = os.environ.get("SLURMD_NODENAME", socket.gethostname())
            raise type(error)(f"{node}: {error}") from None


def granted_workers() -> int:
    """Return how many GPUs a scheduler has granted on this node; 1 without any."""
    granted = gpu_names(gpus_granted())
    return max(1, len(granted)) if is_in_a_job() else 1


def check_grant(workers: int) -> None:
    """Compare the workers of this node, a GPU each, with the GPUs that it was granted by name.

    More are those of a whole node: the job has the memory and the CPUs of what it asked for.

    Raises:
        UserError: The GPUs are fewer.
    """
    grant = gpus_granted()
    granted = len(gpu_names(grant))
    if grant and granted < workers:
        raise UserError(
            f"{workers} workers are asked for, with a GPU each (gpus of config.yaml, or --workers),"
            f" but only {granted} GPUs were granted on this node ({grant}): set gpus to {granted}, "
            f"or have the scheduler grant {workers} (docs/cluster.md)"
        )
    if granted > workers and is_in_a_job():
        print(
            f"convs2s: {granted} GPUs were granted on this node ({grant}), of which {workers} are "
            "used: gpus of config.yaml, or --workers, says how many",
            file=sys.stderr,
        )


def worker_environment(folder: Path) -> dict[str, str]:
    """Return the variables that keep the talk of one machine's workers on it."""
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {
        RENDEZVOUS: str(folder / "workers"),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
    }


def torchrun_options(nodes: int, workers: int, meeting: Path | str) -> list[str]:
    """Return how many workers torchrun starts, and where they meet.

    Those of one machine meet in files of a folder, as torchrun's own store would listen to the
    network; those of several at HOST:PORT, the store of the job's first process.
    """
    if isinstance(meeting, Path):
        meeting = str(meeting / "torchrun")
        store = "store_type=file"
        address = "127.0.0.1"
    else:
        store = f"is_host=0,join_timeout={JOIN_SECONDS}"
        address = socket.gethostname()
    return [
        f"--nnodes={nodes}",
        f"--nproc-per-node={workers}",
        "--rdzv-id=convs2s",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={meeting}",
        f"--rdzv-conf={store}",
        f"--local-addr={address}",
    ]


def torchrun(options: Sequence[str], command: Sequence[str]) -> None:
    """Start the workers of this machine within this process and wait for them.

    Raises:
        UnfinishedError: They stopped early.
        UserError: One failed and has given the reason itself.
    """
    # Each worker says in one line why it ends.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    endings = [
        "--max-restarts=0",
        f"--signals-to-handle={','.join(number.name for number in signals_to_handle())}",
    ]
    # As its option --shutdown-timeout, which torch has from 2.12 on; before, it waits for 30 s.
    os.environ["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = str(SHUTDOWN_SECONDS)
    try:
        run.run(run.parse_args([*options, *endings, "--module", "convs2s", *command]))
    except ChildFailedError as error:
        codes = {failure.local_rank: failure.exitcode for failure in error.failures.values()}
        if UnfinishedError.exit_code in codes.values():
            message = "the workers stopped before the end, as said above"
            raise UnfinishedError(message) from None
        for worker, code in codes.items():
            if code < 0:
                raise UserError(
                    f"worker {worker} was ended by {signal.Signals(-code).name}, and the others "
                    "with it; the last state is intact: run the same command again"
                ) from None
        raise UserError("the workers ended with the error above") from None
    except SignalException as error:
        message = f"{error.sigval.name} was received: run the same command again"
        raise UnfinishedError(message) from None


def run_nodes(nodes: int, command: Sequence[str]) -> None:
    """Start the command on each node of this Slurm job and wait for all.

    Raises:
        UnfinishedError: Training stopped early.
        UserError: This is no Slurm job, or a node failed.
    """
    missing = ""
    if "SLURM_JOB_ID" not in os.environ:
        missing = "this is no job of Slurm's: use a cluster profile (docs/cluster.md)"
    elif shutil.which("srun") is None:
        missing = "there is no srun here, as in a container: train without one (docs/container.md)"
    if missing:
        raise UserError(f"{nodes} nodes are asked for, but {missing}, or set nodes to 1")
    store = TCPStore(socket.gethostname(), 0, is_master=True)
    srun = [
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        # Where one node has ended the others do so too, or are ended after the time of a state.
        f"--wait={SHUTDOWN_SECONDS}",
    ]
    started: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        if not started:
            raise UnfinishedError(f"{signal.Signals(number).name} was received before the start")
        # srun forwards SIGUSR1 to all nodes, while SIGTERM has it kill them.
        started[0].send_signal(signal.SIGUSR1)

    with handling(signals_to_handle(), forward):
        # In a session of its own, as srun takes a signal to the group of this process for an order
        # to kill all nodes at once.
        process = subprocess.Popen(
            [*srun, sys.executable, "-m", "convs2s", *command],
            env=os.environ | {MEETING: f"{store.host}:{store.port}"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        code = process.wait()
    if code == UnfinishedError.exit_code:
        raise UnfinishedError("the nodes stopped before the end, as said above")
    if code:
        raise UserError(
            f"the nodes ended with code {code}, as said above; the last state is intact: run the "
            "same command again"
        )
