"""The faults of ``make mutants`` still fit the code that they are to be put into."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.faults import Fault, read_faults
from tests.mutants.machine import (
    ROOMS,
    all_mutants,
    change_of,
    drawn,
    edited,
    harmless_changes,
    mutants_of,
    nodes_of_results,
    tests_of,
)

FAULTS = read_faults()
FAULT_NAMES = Counter(fault.name for fault in FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_code(root: Path, fault: Fault) -> None:
    for edit in fault.edits:
        assert (root / edit.file).read_text("utf-8").count(edit.old) == 1, edit.file
        assert edit.new != edit.old
    assert fault.tests
    assert FAULT_NAMES[fault.name] == 1
    for test in fault.tests:
        file, _, name = test.partition("::")
        text = (root / file).read_text("utf-8")
        assert Path(file).name.startswith("test_")
        assert not name or re.search(
            rf"^def {name.partition('[')[0]}\(", text, re.MULTILINE
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


def test_a_machine_has_faults_for_each_room_and_finds_their_tests(root: Path) -> None:
    for room in ROOMS:
        tests = tests_of(room)
        assert len(tests) > 2
        assert not any(test.startswith("tests/workflow") for test in tests)
        assert all(
            f"convs2s.{room}" in (root / test).read_text("utf-8") for test in tests
        )
    faults = list(all_mutants(["scoring/significance.py"]))
    assert len(faults) > 100
    for fault in faults:
        ast.parse(fault.edits[0].new)
        assert fault.tests == tests_of("scoring")


def test_changes_that_alter_nothing_fit_the_code() -> None:
    harmless = harmless_changes()
    places = sorted({file.removeprefix("src/convs2s/") for file, *_ in harmless})
    assert harmless <= {change_of(fault) for fault in all_mutants(places)}


def test_a_draw_stays_where_other_lines_change() -> None:
    faults = list(all_mutants(["scoring/significance.py"]))
    half = {fault.name for fault in drawn(faults, len(faults) // 2)}
    rest = drawn(faults[1:], len(faults) // 2)
    assert len(half & {fault.name for fault in rest}) >= len(half) - 1
