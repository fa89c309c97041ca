"""The notebooks run from top to bottom: the demo, and those on results, here of a tiny model.

Without Jupyter: nbclient with ipykernel would need 25 packages more.
"""

import ast
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from convs2s.api.translator import Translator
from convs2s.files.text import write_lines
from convs2s.training.run import train
from tests.support import tiny
from tests.support.refusals import says


def cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of code."""
    listed = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in listed if cell["cell_type"] == "code"]


def run_notebook(path: Path, shortened: dict[str, str]) -> None:
    """Run its cells in order, in one namespace, and print each result as it is displayed."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells(path):
        source = "".join(cell["source"])
        for long, short in shortened.items():
            source = source.replace(long, short)
        tree = ast.parse(source)
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], last.value)
        names["_"] = None
        exec(compile(ast.fix_missing_locations(tree), path.name, "exec"), names)
        shown = names["_"]
        html = getattr(shown, "_repr_html_", None)
        print((html() if callable(html) else None) or repr(shown))


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `make demo` leaves, of a tiny model, and with the ledger of the pages."""
    folder = tmp_path_factory.mktemp("checkout")
    results = folder / "results/demo_en_fr"
    model = results / "models/demo/seed1/model.safetensors"
    train(tiny.job(tiny.prepare(folder / "task"), model))
    sources = [" ".join(tiny.WORDS[n : n + 5]) for n in range(8)]
    raw = results / "corpus/raw"
    write_lines(raw / "test.source.zst", sources)
    write_lines(raw / "test.target.zst", [f"{line} w0x." for line in sources])
    found = Translator.load(model, device="cpu").translate(sources)
    for seed in ("seed1", "seed2"):
        lines = [f"{one.text} {seed}" for one in found]
        write_lines(results / f"models/demo/{seed}/test.beam5.txt", lines)
    (folder / "docs").symlink_to(root / "docs")
    (folder / "notebooks").mkdir()
    return folder


SHORTENED = {
    "PAIRS = 3000": "PAIRS = 300",
    '"maximum_epochs": 6': '"maximum_epochs": 1',
}
"""How well the demo learns is not looked at."""


NAMES = {
    "demo": ["<Translator notebook en-fr", "<th>BLEU</th>", "PairScore("],
    "attention": ["entropy (bits)"],
    "compare": ["difference "],
    "ledger": ["<th>std</th>"],
}
"""The notebooks, and what each shows."""


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(
    root: Path,
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(checkout / "notebooks")
    run_notebook(root / f"notebooks/{name}.ipynb", SHORTENED)
    said = capsys.readouterr().out
    says(said, "alt.Chart(", *NAMES[name])
    if name == "ledger":
        # Of a file of the repository, so that it shows the same anywhere.
        for cell in cells(root / "notebooks/ledger.ipynb"):
            for output in cell["outputs"]:
                says(said, "".join(output.get("data", {}).get("text/html", [])))


def test_outputs_are_stored_in_order(root: Path) -> None:
    """After a change: jupyter execute --inplace, beside the results of `make demo`."""
    for name in NAMES:
        run = cells(root / f"notebooks/{name}.ipynb")
        assert [cell["execution_count"] for cell in run] == [*range(1, len(run) + 1)]
        outputs = [output for cell in run for output in cell["outputs"]]
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert {"image/png", "text/html"} <= kinds
        assert all(output["output_type"] != "error" for output in outputs)
