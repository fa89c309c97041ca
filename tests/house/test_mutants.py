"""The faults of ``make mutants`` still fit the code that they are to be put into."""

import re
from pathlib import Path

import pytest

from tests.mutants.faults import Fault, read_faults

FAULTS = read_faults()
LEAST = 60


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) >= LEAST
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_code(root: Path, fault: Fault) -> None:
    for edit in fault.edits:
        assert (root / edit.file).read_text("utf-8").count(edit.old) == 1, edit.file
        assert edit.new != edit.old
    assert fault.tests
    for test in fault.tests:
        file, _, name = test.partition("::")
        text = (root / file).read_text("utf-8")
        assert Path(file).name.startswith("test_")
        assert not name or re.search(rf"^def {name.partition('[')[0]}\(", text, re.MULTILINE)
