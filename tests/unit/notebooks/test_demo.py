"""The notebook runs from top to bottom."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.notebook import cells


def test_the_notebook_runs(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.notebook", str(root / "notebooks/demo.ipynb")]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}",
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    assert "<Translator notebook en-fr, 1 x, cpu>" in shown
    assert shown.count("alt.Chart(") == 2
    assert "<th>BLEU</th>" in shown
    assert shown.count("PairScore(") == 2


def test_its_words_name_what_is_there(root: Path) -> None:
    found = cells(root / "notebooks/demo.ipynb")
    assert all(source.strip() for _, source in found)
    assert "docs/python.md" in found[0][1]
