"""`make test` shares out whole files, and names a test that hangs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEST = "import time\ndef test_a():\n    time.sleep({})\ndef test_b():\n    pass\n"


def test_processes_take_whole_files_and_one_that_hangs_is_named(
    tmp_path: Path, root: Path
) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_hang.py").write_text(TEST.format(600))
    (tmp_path / "test_other.py").write_text(TEST.format(0.5))
    text = (root / "Makefile").read_text()
    (stated,) = re.findall(r"^IN_PROCESSES := (.*)", text, re.MULTILINE)
    # Should pytest itself hang, the signal has it print where.
    command = (
        f"timeout --signal=ABRT 100 {sys.executable} -m pytest -v -c pyproject.toml"
    )
    options = f"{stated} -o faulthandler_timeout=2 -pno:cacheprovider {tmp_path}"
    run = subprocess.run(
        f"{command} {options}".split(),
        cwd=root,
        env=os.environ | {"PYTEST_XDIST_AUTO_NUM_WORKERS": "2"},
        capture_output=True,
        text=True,
    )
    said = run.stdout + run.stderr
    assert re.search(r"crashed while running '\S*test_hang.py::test_a'", said), said
    assert "in test_a\n" in said, said
    passed = re.findall(r"\[(gw\d)\].* PASSED \S*test_other\.py", said)
    assert len(passed) == 2
    assert len({*passed}) == 1
