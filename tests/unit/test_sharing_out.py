"""Which tests run in one process: those that share what takes long to make."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.support.sharing_out import (
    OF_FIRST_RUN,
    group_of,
    processes,
    sorted_for_sharing,
)


@dataclass
class Item:
    nodeid: str


def test_a_file_is_one_group() -> None:
    assert group_of("tests/unit/a.py::test_b[x::y]") == "tests/unit/a.py"


def test_the_first_run_is_made_once(root: Path) -> None:
    asking = {
        path.name
        for path in (root / "tests/workflow").glob("test_*.py")
        if re.search(r"\b(first_run|finished): ", path.read_text("utf-8"))
    }
    assert asking == set(OF_FIRST_RUN)
    assert len({group_of(f"tests/workflow/{name}::test_a") for name in asking}) == 1


def test_processes_take_whole_groups(tmp_path: Path, root: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "conftest.py").write_text(
        "from tests.support.sharing_out import scheduler\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return scheduler(config, log)\n"
    )
    tests = "".join(f"def test_{n}():\n    time.sleep(0.05)\n" for n in range(8))
    for name in ("test_one", "test_two"):
        (tmp_path / f"{name}.py").write_text(f"import time\n{tests}")
    places = os.pathsep.join([str(root), *sys.path])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "no:hypothesispytest", "-p", "no:anyio"]
    environment = os.environ | {"PYTHONPATH": places}
    said = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    ).stdout
    found = re.findall(r"\[(gw\d)\].* PASSED (test_\w+)\.py", said)
    assert (len(found), len(set(found))) == (16, 2), said


def test_a_test_that_hangs_ends_and_is_named(tmp_path: Path, root: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_hang.py").write_text(
        "import time\ndef test_a():\n    time.sleep(600)\n"
    )
    (tmp_path / "test_other.py").write_text("def test_b():\n    pass\n")
    (stated,) = re.findall(
        r"^IN_PROCESSES := (.*)", (root / "Makefile").read_text(), re.MULTILINE
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(root / "pyproject.toml"),
        *stated.split(),
    ]
    command += ["-p", "no:cacheprovider", "-o", "faulthandler_timeout=2", str(tmp_path)]
    environment = os.environ | {"PYTEST_XDIST_AUTO_NUM_WORKERS": "2"}
    run = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=120
    )
    assert re.search(r"crashed while running '\S*test_hang.py::test_a'", run.stdout), (
        run.stdout
    )
    assert "1 failed, 1 passed" in run.stdout
    assert "in test_a\n" in run.stderr


def test_what_takes_minutes_comes_first() -> None:
    files = ("unit/a", "cluster/b", "workflow/c", "unit/d", "cluster/test_profiles")
    items = [cast(pytest.Item, Item(f"tests/{file}.py::test_e")) for file in files]
    assert sorted_for_sharing(items) == [items[n] for n in (4, 2, 1, 0, 3)]


def test_there_is_a_process_at_least() -> None:
    assert 1 <= processes() <= 8
