"""A real Slurm on this machine alone, for as long as a test needs it.

A controller, some nodes, and the accounting that clusters have: all children of the tests, all
listening on the loopback interface only (the database on a socket in the folder), with all they
write below one folder. No root, systemd, munge or cgroups are needed, and the machine's own Slurm
and database are neither read nor touched. As nobody is asked who they are (`auth/none`), another
user of the same machine could submit jobs while the tests run.
"""

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CLIENTS = "srun sbatch scancel squeue scontrol sinfo sacct sacctmgr"
DAEMONS = "slurmctld slurmd slurmdbd mariadbd mariadb-install-db mariadb-admin"
NODES = ("node1", "node2")
ACCOUNT = "lab"
# Debian keeps daemons where the PATH of a plain user does not look.
SEARCH_PATH = os.pathsep.join(
    [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]
)
SECONDS = 30
"""In which it starts, and its jobs end."""
# When daemons end whose tests were killed and could not end them, and how soon after a signal.
LIFETIME = ("timeout", "--kill-after=10", "3600")

# A job that was requeued waits for as long as a credential may be valid, by default two minutes. A
# node that is set down stays so until it is resumed (ReturnToService). Jobs of `urgent` preempt
# those of the other partitions, after their GraceTime.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
AuthInfo=cred_expire=5
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
ReturnToService=1
SlurmdParameters=config_overrides
MinJobAge=600
KillWait=2
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[1]}
AccountingStorageTRES=gres/gpu
GresTypes=gpu
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} \
RealMemory=64000 Gres=gpu:{gpus[0]} State=UNKNOWN
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} CPUs={cpus} \
RealMemory=64000 Gres=gpu:{gpus[1]} State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=ALL State=UP Default=YES PriorityTier=1
PartitionName=graceful Nodes=ALL State=UP PriorityTier=1 GraceTime=10
PartitionName=urgent Nodes=ALL State=UP PriorityTier=2 PreemptMode=OFF
PartitionName=short Nodes=ALL State=UP PriorityTier=1 MaxTime=30
"""
ACCOUNTING = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[1]}
CommunicationParameters=NoInAddrAny
SlurmUser={user}
AuthType=auth/none
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=slurm
StorageUser={user}
"""


# In the order in which they need each other.
COMMANDS = {
    "mariadbd": "mariadbd --no-defaults --user={user} --datadir={folder}/database"
    " --tmpdir={folder} --socket={folder}/database.socket --skip-networking"
    " --pid-file={folder}/mariadbd.pid --innodb-flush-log-at-trx-commit=0",
    "slurmdbd": "slurmdbd -D",
    "slurmctld": "slurmctld -D",
    **{node: f"slurmd -D -N {node}" for node in NODES},
}


@dataclass(frozen=True)
class Slurm:
    """A running cluster; `folder` holds its configuration, state and logs."""

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Slurm's commands reach this cluster and no other."""
        inherited = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("SLURM_", "SBATCH_"))
        }
        return inherited | {"PATH": f"{self.folder}/bin{os.pathsep}{SEARCH_PATH}"}

    def start(self, daemon: str) -> None:
        """Start a daemon, with what it says in a log of its name."""
        command = COMMANDS[daemon].format(folder=self.folder, user=getpass.getuser())
        # The client library of the database knows its socket by a variable alone.
        variables = {
            "SLURM_CONF": f"{self.folder}/slurm.conf",
            "MYSQL_UNIX_PORT": f"{self.folder}/database.socket",
        }
        with (self.folder / f"{daemon}.log").open("ab") as log:
            self.processes[daemon] = subprocess.Popen(
                [*LIFETIME, *command.split()],
                env=self.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self, daemon: str) -> None:
        """End it and wait for its end; `timeout` kills one that does not heed it."""
        self.processes[daemon].terminate()
        self.processes[daemon].wait()

    def ask(self, command: str) -> str:
        """What one of Slurm's commands prints; empty where it fails."""
        done = subprocess.run(
            shlex.split(command), env=self.environment, capture_output=True, text=True
        )
        return done.stdout.strip()

    def logs(self) -> str:
        """The ends of the daemons' logs, for a message."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)

    def wait_for_answers(self) -> None:
        """Wait until the nodes, the controller and the accounting are there; TimeoutError."""
        ready = {"idle", "mixed", "allocated", "completing"}

        def answers() -> bool:
            lines = self.ask("sinfo -h -N -o '%N %T'").splitlines()
            states = dict(line.split() for line in lines)
            are_there = len(states) == len(NODES) and ready.issuperset(states.values())
            return are_there and self.ask("sacctmgr -n -P show user format=user") != ""

        _wait(self, answers)


@contextmanager
def running_slurm(cpus: int, gpus: tuple[int, int] = (2, 2)) -> Iterator[Slurm]:
    """Starts a cluster of two nodes and ends it, with its jobs, on leaving.

    Where a program of Slurm's or of its accounting is missing, or cannot run on this machine, the
    test is skipped and says why.

    Args:
        cpus: CPUs that each node claims to have, whatever the machine has.
        gpus: GPUs that each of the nodes claims to have; each is a link to /dev/null.

    Raises:
        TimeoutError: the cluster was not ready in time; the message holds the logs' ends.
    """
    for name in f"{CLIENTS} {DAEMONS}".split():
        if shutil.which(name, path=SEARCH_PATH) is None:
            pytest.skip(f"Slurm with accounting is not installed here: no {name}")
    # Daemons bind and find each other by the machine's name, which containers do not always know.
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        pytest.skip(f"Slurm cannot run here: no address for {socket.gethostname()}")
    with ExitStack() as leaving:
        # Near the root, as sockets' paths are short.
        folder = Path(
            leaving.enter_context(tempfile.TemporaryDirectory(prefix="slurm-"))
        )
        slurm = Slurm(folder)
        _configure(folder, cpus, gpus)
        _make_database(slurm)

        def start(daemon: str) -> None:
            slurm.start(daemon)
            leaving.callback(slurm.stop, daemon)

        start("mariadbd")
        ping = f"mariadb-admin --no-defaults --socket={folder}/database.socket ping"
        _wait(slurm, lambda: slurm.ask(ping) != "")
        start("slurmdbd")
        _wait(slurm, lambda: _knows_the_user(slurm))
        for daemon in ("slurmctld", *NODES):
            start(daemon)
        leaving.callback(_end_jobs, slurm)
        slurm.wait_for_answers()
        yield slurm


def _make_database(slurm: Slurm) -> None:
    user = getpass.getuser()
    command = (
        f"mariadb-install-db --no-defaults --datadir={slurm.folder}/database"
        f" --user={user} --skip-test-db"
        # In /tmp, a server that starts removes the temporary tables of others.
        f" --tmpdir={slurm.folder}"
        # Its default would have a plain user asked for a password.
        f" --auth-root-authentication-method=socket --auth-root-socket-user={user}"
        " --force"  # where localhost does not resolve
    )
    made = subprocess.run(
        command.split(),
        env=slurm.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if made.returncode != 0:
        said = " ".join(made.stdout.split())
        pytest.skip(f"No database for Slurm's accounting can be made here: {said}")


def _knows_the_user(slurm: Slurm) -> bool:
    """Tell the accounting of the cluster, an account and its user; whether it knows them."""
    # All again each time: one that had no answer may have been heard.
    user = getpass.getuser()
    account = f"account {ACCOUNT} cluster=test"
    for one in ("cluster test", account, f"user {user} account={ACCOUNT}"):
        slurm.ask(f"sacctmgr --immediate add {one}")
    known = slurm.ask("sacctmgr -n -P show associations format=account,user")
    return f"{ACCOUNT}|{user}" in known.splitlines()


def _configure(folder: Path, cpus: int, gpus: tuple[int, int]) -> None:
    for name in ("state", "dev", "bin"):
        (folder / name).mkdir()
    values = {
        "user": getpass.getuser(),
        "folder": folder,
        "host": socket.gethostname().partition(".")[0],
        "ports": _free_ports(2 + len(NODES)),
        "cpus": cpus,
        "gpus": gpus,
    }
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**values))
    (folder / "slurmdbd.conf").write_text(ACCOUNTING.format(**values))
    (folder / "slurmdbd.conf").chmod(0o600)  # else slurmdbd refuses it
    for number in range(max(gpus)):
        (folder / f"dev/nvidia{number}").symlink_to("/dev/null")
    devices = [
        f"NodeName={node} Name=gpu File={folder}/dev/nvidia[0-{count - 1}]\n"
        for node, count in zip(NODES, gpus, strict=True)
    ]
    (folder / "gres.conf").write_text("".join(devices))
    # Slurm's commands, which know this cluster. A variable would not do: the executor plugin's job
    # step drops SLURM_CONF before its own srun.
    for name in CLIENTS.split():
        program = shutil.which(name, path=SEARCH_PATH)
        (folder / "bin" / name).write_text(
            f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {program} "$@"\n'
        )
        (folder / "bin" / name).chmod(0o755)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        taken = [
            sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
            for _ in range(count)
        ]
        return [one.getsockname()[1] for one in taken]


def _end_jobs(slurm: Slurm) -> None:
    slurm.ask(f"scancel --user {getpass.getuser()}")
    with suppress(TimeoutError):
        _wait(slurm, lambda: slurm.ask("squeue -h") == "")


def _wait(slurm: Slurm, condition: Callable[[], bool]) -> None:
    """Wait until daemons that were started, or their jobs, are as they should be."""
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"Slurm took more than {SECONDS} s\n{slurm.logs()}")
        time.sleep(0.1)
