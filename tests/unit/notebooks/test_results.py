"""The notebooks on finished results run on those of a tiny model."""

from pathlib import Path

import pytest

from convs2s.api.translator import Translator
from convs2s.files.text import write_lines
from tests.support import tiny
from tests.support.notebook import cells, run_notebook


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `make demo` leaves, of a tiny model, and with the ledger of the pages."""
    folder = tmp_path_factory.mktemp("checkout")
    results = folder / "results/demo_en_fr"
    seeds = [results / f"models/demo/seed{seed}" for seed in (1, 2)]
    model = tiny.trained_model(seeds[0])
    sources = [" ".join(tiny.WORDS[n : n + 5]) for n in range(8)]
    write_lines(results / "corpus/raw/test.source.zst", sources)
    write_lines(
        results / "corpus/raw/test.target.zst", [f"{line} w0x." for line in sources]
    )
    translations = [
        one.text for one in Translator.load(model, device="cpu").translate(sources)
    ]
    for seed, extra in zip(seeds, (" w0x", " w1x"), strict=True):
        write_lines(seed / "test.beam5.txt", [line + extra for line in translations])
    (folder / "docs").symlink_to(root / "docs")
    (folder / "notebooks").mkdir()
    return folder


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("attention", "entropy (bits)"),
        ("compare", "difference "),
        ("ledger", "<th>std</th>"),
    ],
)
def test_a_notebook_runs(
    root: Path,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    shown: str,
) -> None:
    monkeypatch.chdir(checkout / "notebooks")
    notebook = root / f"notebooks/{name}.ipynb"
    run_notebook(notebook)
    said = capsys.readouterr().out
    assert shown in said
    assert "alt.Chart(" in said
    assert "docs/" in cells(notebook)[0][1]
