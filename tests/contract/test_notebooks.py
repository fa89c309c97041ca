"""The notebooks run from top to bottom: the demo, and those on results, here of a tiny model.

Without Jupyter: nbclient with ipykernel would need 25 packages more.
"""

import ast
import json
import tempfile
from pathlib import Path

import pytest

from convs2s.api.translator import Translator
from convs2s.files.text import write_lines
from tests.support import tiny


def run_notebook(path: Path, shortened: dict[str, str]) -> None:
    """Run its cells in order, in one namespace, and print each result as it is displayed."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        for long, short in shortened.items():
            source = source.replace(long, short)
        assert source.strip()
        if cell["cell_type"] != "code":
            continue
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
    seeds = [results / f"models/demo/seed{seed}" for seed in (1, 2)]
    model = tiny.trained_model(seeds[0])
    sources = [" ".join(tiny.WORDS[n : n + 5]) for n in range(8)]
    raw = results / "corpus/raw"
    write_lines(raw / "test.source.zst", sources)
    write_lines(raw / "test.target.zst", [f"{line} w0x." for line in sources])
    found = Translator.load(model, device="cpu").translate(sources)
    for seed in seeds:
        lines = [f"{one.text} {seed.name}" for one in found]
        write_lines(seed / "test.beam5.txt", lines)
    (folder / "docs").symlink_to(root / "docs")
    (folder / "notebooks").mkdir()
    return folder


SHORTENED = {
    "PAIRS = 3000": "PAIRS = 300",
    '"maximum_epochs": 6': '"maximum_epochs": 1',
}
"""How well the demo learns is not looked at."""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("demo", ["<Translator notebook en-fr", "<th>BLEU</th>", "PairScore("]),
        ("attention", ["entropy (bits)"]),
        ("compare", ["difference "]),
        ("ledger", ["<th>std</th>"]),
    ],
)
def test_a_notebook_runs(
    root: Path,
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    shown: list[str],
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(checkout / "notebooks")
    run_notebook(root / f"notebooks/{name}.ipynb", SHORTENED)
    said = capsys.readouterr().out
    for text in ("alt.Chart(", *shown):
        assert text in said
