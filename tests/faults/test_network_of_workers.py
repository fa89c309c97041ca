"""Workers on two machines, each of which knows itself only by an address of its own: 127.0.1.1."""

import os
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from torch._C._distributed_c10d import HashStore

from convs2s.training import network, workers
from convs2s.training.network import (
    NAMES,
    choose_interface,
    interface_of,
    local_address,
)
from convs2s.training.workers import joined
from tests.support.refusals import refuses, rows, says

UNSHARE = ("unshare", "--net", "--mount", "--uts")
SECOND_MACHINE = """\
mount --bind {folder}/second.hosts /etc/hosts
hostname second
ip link set lo up
echo $$ > {folder}/second.pid
until ip addr add 10.23.0.2/24 dev cable; do sleep 0.1; done 2> {folder}/waiting
ip link set cable up
RANK=1 exec {worker} > {folder}/second 2>&1
"""
"""The second machine, which is at the other end of the first one's cable."""

FIRST_MACHINE = """\
mount --bind {folder}/first.hosts /etc/hosts
hostname first
ip link set lo up
unshare --net --mount --uts sh -e {folder}/second.sh &
until test -s {folder}/second.pid; do sleep 0.1; done
ip link add cable type veth peer name cable netns $(cat {folder}/second.pid)
ip addr add 10.23.0.1/24 dev cable
ip link set cable up
code=0
RANK=0 {worker} > {folder}/first 2>&1 || code=$?
wait $! || code=$?
exit $code
"""

COMMON = {
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "first",
    "MASTER_PORT": "29517",
}

WORKER = """\
import os
from datetime import timedelta
from convs2s.errors import UserError
from convs2s.training import workers as module
module.LEAST_TIMEOUT = timedelta(seconds=1)
try:
    with module.joined("cpu", float(os.environ["SECONDS"])) as workers:
        print(workers.totals([1.0]), os.environ["GLOO_SOCKET_IFNAME"])
except UserError as error:
    print(error)
"""


def ends_of_two_machines(folder: Path, **variables: str) -> list[str]:
    """Run a worker on each of two machines; return the last line that each prints."""
    own = "127.0.0.1 localhost\n127.0.1.1 {}\n"
    (folder / "first.hosts").write_text(own.format("first"))
    (folder / "second.hosts").write_text(own.format("second") + "10.23.0.1 first\n")
    (folder / "worker.py").write_text(WORKER)
    worker = f"{sys.executable} {folder}/worker.py"
    for name, text in (("first", FIRST_MACHINE), ("second", SECOND_MACHINE)):
        script = text.format(folder=folder, worker=worker)
        (folder / f"{name}.sh").write_text(script)
    environment = os.environ | COMMON | {"SECONDS": "30"}
    for name in NAMES:
        environment.pop(name, None)
    command = [*UNSHARE, "sh", "-e", str(folder / "first.sh")]
    done = subprocess.run(
        command,
        env=environment | variables,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ends = [(folder / name).read_text() for name in ("first", "second")]
    return [end.splitlines()[-1] for end in ends]


def test_two_machines_that_know_themselves_by_127_0_1_1_find_each_other(
    tmp_path: Path,
) -> None:
    """A stated interface is used, and if it is a wrong one, both end in time."""
    command = [*UNSHARE, "sh", "-c", "ip link add cable type veth peer name end"]
    can_try = sys.platform == "linux" and shutil.which("unshare")
    if not can_try or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("network namespaces cannot be made here: they need Linux and root")
    assert ends_of_two_machines(tmp_path) == ["[2.0] cable"] * 2
    (tmp_path / "second.pid").unlink()
    for end in ends_of_two_machines(tmp_path, GLOO_SOCKET_IFNAME="lo", SECONDS="5"):
        says(end, "the workers did not connect in time", "docs/cluster.md")


def meet_at(monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    for name, value in (COMMON | {"MASTER_ADDR": first, "RANK": "0"}).items():
        monkeypatch.setenv(name, value)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_a_worker_without_others_ends_at_its_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meet_at(monkeypatch, "localhost")
    monkeypatch.setattr(workers, "LEAST_TIMEOUT", timedelta(seconds=1))
    begun = time.monotonic()

    def join() -> None:
        with joined("cpu", 1.0):
            pass

    refuses("worker 0: the workers did not connect in time (Timed out ", join)
    assert time.monotonic() - begun < 30.0


# By what the first machine knows itself => by what the other worker knows it => what is chosen. In
# turn: the other worker is on the same machine; it knows the first one by no IPv4 address; by one
# of this machine; each knows the first one by an address of its own; this one by none.
ADDRESSES = """
localhost => 127.0.1.1 =>
localhost => =>
localhost => 10.23.0.1 => cable
10.23.0.1 => 192.0.2.1 => cable
no.such.machine.invalid => 127.0.1.1 =>
"""


def test_the_interface_of_the_first_machine_is_that_by_which_the_others_know_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "local_address", lambda address: address)
    monkeypatch.setattr(network, "interface_of", {"10.23.0.1": "cable"}.get)
    for first, told, chosen in rows(ADDRESSES):
        meet_at(monkeypatch, first)
        store = HashStore()
        store.set("convs2s/address of the first machine/1", told)
        choose_interface(store)
        found = [os.environ.get(name, "") for name in NAMES]
        assert found == [chosen] * 2, (first, told)


@pytest.mark.skipif(sys.platform != "linux", reason="interfaces are looked up by Linux")
def test_an_interface_is_found_by_its_address() -> None:
    assert local_address("127.0.0.1") == "127.0.0.1"
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("192.0.2.1") is None
