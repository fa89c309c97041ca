"""Which tests run in one process: those that share what takes long to make."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from tests.support.sharing_out import group_of, processes, sorted_for_sharing

OWN, RERUN = "tests/workflow/test_own_pair.py", "tests/workflow/test_rerun.py"


@dataclass
class Item:
    nodeid: str
    fixturenames: list[str] = field(default_factory=list)


def group(nodeid: str, *fixtures: str) -> str | None:
    return group_of(cast(Any, Item(nodeid, list(fixtures))))


def test_a_file_is_one_group() -> None:
    assert group("tests/unit/a.py::test_b[x::y]", "root") == "tests/unit/a.py"


def test_the_first_run_is_made_once() -> None:
    assert group(f"{OWN}::test_a", "first_run", "root") == "first_run"
    assert group(f"{RERUN}::test_b", "finished", "first_run", "checkout") == "first_run"


def test_who_starts_from_a_checkout_is_alone_but_with_slurm() -> None:
    assert group(f"{RERUN}::test_b", "checkout") is None
    assert group("tests/cluster/a.py::test_b", "checkout", "slurm") == "tests/cluster/a.py"


def test_what_takes_minutes_comes_first() -> None:
    names = ["tests/unit/a.py::b", f"{OWN}::a", "tests/unit/a.py::a", "tests/cluster/c.py::c"]
    found = sorted_for_sharing([cast(pytest.Item, Item(name)) for name in names])
    assert [item.nodeid for item in found] == [names[1], names[3], names[0], names[2]]


def test_there_is_a_process_at_least() -> None:
    assert 1 <= processes() <= 8
