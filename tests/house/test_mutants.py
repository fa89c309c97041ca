"""The faults of ``make mutants`` still fit the code that they are to be put into."""

import ast
import re
from pathlib import Path

import pytest

from tests.mutants.faults import read_faults
from tests.mutants.machine import (
    all_mutants,
    change_of,
    edited,
    harmless_changes,
    mutants_of,
    nodes_of_results,
)
from tests.support.refusals import rows


def test_every_fault_fits_the_code(root: Path) -> None:
    for fault in read_faults():
        for edit in fault.edits:
            text = (root / edit.file).read_text("utf-8")
            assert text.count(edit.old) == 1, fault.name
            assert edit.new != edit.old, fault.name
        assert fault.tests, fault.name
        for test in fault.tests:
            file, _, name = test.partition("::")
            text = (root / file).read_text("utf-8")
            assert re.search(rf"^def {name or 'test_'}", text, re.M), fault.name


MUTANTS = r"""
a < 1 => (a <= 1) | a < (2) | a < (0)
not a == b => (a == b) | not (a != b)
x = \xe9 and f(a - b) => x = (\xe9 or f(a - b)) | x = \xe9 and f((a + b))
x: Literal[1] = True => x: Literal[1] = (False)
def f(a):\n    return [a\n    ] => def f(a):\n    return (None)
raise E(1, f'{a + 1}') =>
zip(a, b, strict=True) =>
alt.X('x', scale=1).encode(y=2) =>
"""


def test_a_machine_makes_each_fault_in_its_place() -> None:
    for code, mutants in rows(MUTANTS):
        made = [
            edited(code, old, new)
            for node in nodes_of_results(ast.parse(code))
            for old, new in mutants_of(node)
        ]
        assert sorted(made) == sorted(filter(None, mutants.split(" | ")))


@pytest.mark.slow
def test_changes_that_alter_nothing_fit_the_code() -> None:
    harmless = harmless_changes()
    places = sorted({file.removeprefix("src/convs2s/") for file, *_ in harmless})
    assert harmless <= {change_of(fault) for fault in all_mutants(places)}
