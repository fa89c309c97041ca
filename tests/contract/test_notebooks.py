"""The notebooks run from top to bottom: the demo, and those on results, here of a tiny model.

Without Jupyter: nbclient with ipykernel would need 25 packages more.
"""

import ast
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from convs2s.files.text import write_lines
from tests.support.refusals import says


def cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of code."""
    listed = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in listed if cell["cell_type"] == "code"]


def show(value: object) -> None:
    """Print a result as it is displayed."""
    html = getattr(value, "_repr_html_", None)
    print((html() if callable(html) else None) or repr(value))


def run_notebook(path: Path) -> None:
    """Run its cells in order, in one namespace, and show what each ends with.

    How well the demo learns is not looked at.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells(path):
        source = "".join(cell["source"])
        source = source.replace("PAIRS = 3000", "PAIRS = 300")
        source = source.replace('"maximum_epochs": 6', '"maximum_epochs": 1')
        *before, last = ast.parse(source).body
        exec(compile(ast.Module(before, []), path.name, "exec"), names)
        exec(compile(ast.Interactive([last]), path.name, "single"), names)


NAMES = {
    "demo": ["<Translator notebook en-fr", "<th>BLEU</th>", "PairScore("],
    "attention": ["entropy (bits)"],
    "compare": ["difference "],
    "ledger": ["<th>std</th>"],
}
"""The notebooks, and what each shows."""


def test_notebooks_run(
    root: Path,
    ran: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Beside what `make demo` leaves, of a tiny model, and the ledger of the pages."""
    results = tmp_path / "results/demo_en_fr"
    shutil.copytree(ran / "results/tiny", results)
    models = (results / "models/small").rename(results / "models/demo")
    write_lines(models / "seed2/test.beam5.txt", ["w1 w2 w3", "w5 w6", "w7 w8 w9"])
    (tmp_path / "docs").symlink_to(root / "docs")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "displayhook", show)
    said = {}
    for name, words in NAMES.items():
        run_notebook(root / f"notebooks/{name}.ipynb")
        said[name] = capsys.readouterr().out
        says(said[name], "alt.Chart(", *words)
    # Of a file of the repository, so that it shows the same anywhere.
    for cell in cells(root / "notebooks/ledger.ipynb"):
        for output in cell["outputs"]:
            says(said["ledger"], "".join(output.get("data", {}).get("text/html", [])))


def test_outputs_are_stored_in_order(root: Path) -> None:
    """After a change: jupyter execute --inplace, beside the results of `make demo`."""
    for name in NAMES:
        run = cells(root / f"notebooks/{name}.ipynb")
        assert [cell["execution_count"] for cell in run] == [*range(1, len(run) + 1)]
        outputs = [output for cell in run for output in cell["outputs"]]
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert {"image/png", "text/html"} <= kinds
        assert all(output["output_type"] != "error" for output in outputs)
