"""The faults of ``make mutants`` still fit the code that they are to be put into."""

import ast
import re
from pathlib import Path

import pytest

from tests.mutants.faults import Fault, read_faults
from tests.mutants.machine import (
    ROOMS,
    all_mutants,
    change_of,
    drawn,
    edited,
    files_naming,
    harmless_changes,
    mutants_of,
    nodes_of_results,
)

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_code(root: Path, fault: Fault) -> None:
    for edit in fault.edits:
        assert (root / edit.file).read_text("utf-8").count(edit.old) == 1, edit.file
        assert edit.new != edit.old
    assert fault.tests
    for test in fault.tests:
        file, _, name = test.partition("::")
        assert re.search(
            rf"^def {name or 'test_'}", (root / file).read_text("utf-8"), re.M
        )


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("a < 1", {"(a <= 1)", "a < (2)", "a < (0)"}),
        ("not a == b", {"(a == b)", "not (a != b)"}),
        ("x = é and f(a - b)", {"x = (é or f(a - b))", "x = é and f((a + b))"}),
        ("x: Literal[1] = True", {"x: Literal[1] = (False)"}),
        ("def f(a):\n    return [a\n    ]", {"def f(a):\n    return (None)"}),
        ("raise E(1, f'{a + 1}')", set()),
        ("zip(a, b, strict=True)", set()),
        ("alt.X('x', scale=1).encode(y=2)", set()),
    ],
)
def test_a_machine_makes_each_fault_in_its_place(code: str, mutants: set[str]) -> None:
    made = [
        edited(code, old, new)
        for node in nodes_of_results(ast.parse(code))
        for old, new in mutants_of(node)
    ]
    assert sorted(made) == sorted(mutants)


@pytest.mark.parametrize("room", ROOMS)
def test_a_machine_finds_the_tests_of_a_room(root: Path, room: str) -> None:
    tests = files_naming(room)
    assert len(tests) > 2
    for test in tests:
        assert not test.startswith("tests/workflow")
        assert f"convs2s.{room}" in (root / test).read_text("utf-8")


def test_a_machines_faults_are_python_and_drawn_by_their_text() -> None:
    faults = list(all_mutants(["scoring/significance.py"]))
    assert len(faults) > 100
    for fault in faults:
        ast.parse(fault.edits[0].new)
    half = {fault.name for fault in drawn(faults, len(faults) // 2)}
    rest = {fault.name for fault in drawn(faults[1:], len(faults) // 2)}
    assert len(half & rest) >= len(half) - 1


def test_changes_that_alter_nothing_fit_the_code() -> None:
    harmless = harmless_changes()
    places = sorted({file.removeprefix("src/convs2s/") for file, *_ in harmless})
    assert harmless <= {change_of(fault) for fault in all_mutants(places)}
