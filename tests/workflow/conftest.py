"""The runs that the tests of this folder share."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import own_pair
from tests.support.checkout import Checkout, Done, check_out


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Checkout:
    """The workflow as it stands, with nothing run."""
    return check_out(root, tmp_path)


@pytest.fixture(scope="session")
def planned_checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The same for dry runs, which leave it as it is; no test changes it."""
    return check_out(root, tmp_path_factory.mktemp("planned"))


@pytest.fixture(scope="session")
def first_run(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkout, Done]:
    """The first command of the page on one's own language pair, as typed there, and its folder.

    Processes that share out the tests share it: the first that asks for it makes it.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "own.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = shared / "own.json"
        if not said.exists():
            checkout = check_out(root, shared / "own")
            done = _run_the_first_command(root, checkout)
            said.write_text(json.dumps([done.code, done.said]))
    code, text = json.loads(said.read_text())
    return Checkout(shared / "own/convs2s"), Done(code, text)


def _run_the_first_command(root: Path, checkout: Checkout) -> Done:
    own_pair.write_text(checkout)
    own_pair.write_tasks(root, checkout)
    # Types that nearly every sentence has: all others are unknown to the word model.
    few = {"vocabulary": {"source_size": 3, "target_size": 3}}
    overrides = {
        "models": {"small": own_pair.TINY},
        "tasks": {"mine_en_nl_word": few},
        "decodings": {"beam5_en_de": {"length_penalty": {"tuned_on": "valid"}}},
    }
    machine = {"cores": 1, "device": "cpu", "plots": {"sentences": [1]}}
    checkout.configure({**machine, "overrides": overrides})
    return checkout.shell(own_pair.commands(root)[0])


@pytest.fixture
def finished(first_run: tuple[Checkout, Done], tmp_path: Path) -> Checkout:
    """A copy of that folder, which the test may change."""
    original, done = first_run
    done.succeeded()
    return original.copy(tmp_path)


@pytest.fixture(scope="session")
def closed_port() -> Iterator[int]:
    """A port of the loopback interface where nobody listens."""
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        yield unheard.getsockname()[1]
