"""A real Slurm on this machine alone, for as long as a test needs it.

A controller and some nodes, all children of the tests, all listening on the loopback interface
only, with all they write below one folder. No root, systemd, munge, cgroups or accounting are
needed, and the machine's own Slurm set-up is neither read nor touched. As nobody is asked who they
are (`auth/none`), another user of the same machine could submit jobs while the tests run.
"""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NEEDED = ("slurmctld", "slurmd", "srun", "sbatch", "scancel", "squeue", "sinfo")
NODES = ("node1", "node2")
CLIENTS = ("srun", "sbatch", "scancel", "squeue", "scontrol", "sinfo", "sacct", "sacctmgr")
# Debian keeps daemons where the PATH of a plain user does not look.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
START_SECONDS = 30
STOP_SECONDS = 20
# When daemons end whose tests were killed and could not end them.
LIFETIME = ("timeout", "3600")

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
SlurmdParameters=config_overrides
MinJobAge=600
KillWait=2
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
GresTypes=gpu
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
"""
NODE = """\
NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} \
RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN"""


@dataclass(frozen=True)
class Slurm:
    """A running cluster; `folder` holds its configuration, state and logs."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Slurm's commands reach this cluster and no other."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))}
        path = os.pathsep.join([str(self.folder / "bin"), inherited.get("PATH", "")])
        return inherited | {"PATH": path}

    def ask(self, *command: str) -> str:
        """What one of Slurm's commands prints; empty where it fails."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def logs(self) -> str:
        """The ends of the daemons' logs, for a message."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)


@contextmanager
def running_slurm(cpus: int, gpus: tuple[int, int] = (2, 2)) -> Iterator[Slurm]:
    """Starts a cluster of two nodes and ends it, with its jobs, on leaving.

    Where a program of Slurm's is missing, the test is skipped.

    Args:
        cpus: CPUs that each node claims to have, whatever the machine has.
        gpus: GPUs that each of the nodes claims to have; each is a link to /dev/null.

    Raises:
        TimeoutError: the nodes were not ready in time; the message holds the logs' ends.
    """
    missing = [name for name in NEEDED if shutil.which(name, path=SEARCH_PATH) is None]
    if missing:
        pytest.skip(f"Slurm is not installed here: no {', '.join(missing)}")
    with ExitStack() as daemons:
        # Near the root, as sockets' paths are short.
        folder = Path(daemons.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        slurm = Slurm(folder)
        _configure(folder, cpus, gpus)
        daemons.enter_context(_daemon(folder, "slurmctld", "-D"))
        for node in NODES:
            daemons.enter_context(_daemon(folder, "slurmd", "-D", "-N", node))
        daemons.callback(_end_jobs, slurm)
        idle = f"{len(NODES)} idle"
        if not _becomes(lambda: slurm.ask("sinfo", "-h", "-o", "%D %t") == idle, START_SECONDS):
            raise TimeoutError(f"Slurm did not start in {START_SECONDS} s\n{slurm.logs()}")
        yield slurm


def _configure(folder: Path, cpus: int, gpus: tuple[int, int]) -> None:
    for name in ("state", "dev", "bin"):
        (folder / name).mkdir()
    devices = [folder / "dev" / f"nvidia{index}" for index in range(max(gpus))]
    for device in devices:
        device.symlink_to("/dev/null")
    controller_port, *ports = _free_ports(1 + len(NODES))
    host = socket.gethostname().partition(".")[0]
    nodes = [
        NODE.format(name=name, port=port, gpus=count, host=host, cpus=cpus)
        for name, port, count in zip(NODES, ports, gpus, strict=True)
    ]
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            host=host,
            user=getpass.getuser(),
            folder=folder,
            controller_port=controller_port,
            nodes="\n".join(nodes),
        )
    )
    lines = [
        f"NodeName={node} Name=gpu File={device}\n"
        for node, count in zip(NODES, gpus, strict=True)
        for device in devices[:count]
    ]
    (folder / "gres.conf").write_text("".join(lines))
    for name in CLIENTS:
        _wrap(folder, name)


def _wrap(folder: Path, name: str) -> None:
    """Puts a command of Slurm's that knows this cluster into the folder's bin.

    A variable would not do: the executor plugin's job step drops SLURM_CONF before its own srun.
    """
    program = shutil.which(name, path=SEARCH_PATH)
    if program is None:
        return
    wrapper = folder / "bin" / name
    wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {program} "$@"\n')
    wrapper.chmod(0o755)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        taken = [sockets.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]


@contextmanager
def _daemon(folder: Path, name: str, *options: str) -> Iterator[None]:
    program = shutil.which(name, path=SEARCH_PATH) or name
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    with (folder / f"{'-'.join([name, *options[2:]])}.log").open("wb") as log:
        process = subprocess.Popen(
            [*LIFETIME, program, *options],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_jobs(slurm: Slurm) -> None:
    slurm.ask("scancel", "--user", getpass.getuser())
    _becomes(lambda: slurm.ask("squeue", "-h") == "", STOP_SECONDS)


def _becomes(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition comes true in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
