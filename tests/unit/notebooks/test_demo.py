"""The notebook runs from top to bottom."""

import tempfile
from pathlib import Path

import pytest

from tests.support.notebook import cells, run_notebook

SHORTENED = {
    "PAIRS = 3000": "PAIRS = 300",
    r"\"maximum_epochs\": 6": r"\"maximum_epochs\": 1",
}
"""How well it learns is not looked at."""


def test_the_notebook_runs(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (root / "notebooks/demo.ipynb").read_text("utf-8")
    for long, short in SHORTENED.items():
        assert text.count(long) == 1
        text = text.replace(long, short)
    (tmp_path / "demo.ipynb").write_text(text, "utf-8")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run_notebook(tmp_path / "demo.ipynb")
    shown = capsys.readouterr().out
    assert "<Translator notebook en-fr, 1 x, cpu>" in shown
    assert shown.count("alt.Chart(") == 2
    assert "<th>BLEU</th>" in shown
    assert shown.count("PairScore(") == 2


def test_its_words_name_what_is_there(root: Path) -> None:
    found = cells(root / "notebooks/demo.ipynb")
    assert all(source.strip() for _, source in found)
    assert "docs/python.md" in found[0][1]
