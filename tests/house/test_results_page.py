"""docs/results.md and docs/short_run.md say what their ledgers say."""

from cProfile import Profile
from pathlib import Path
from types import CodeType

import pytest

import convs2s
from convs2s.cli.main import main
from convs2s.config.load import load
from convs2s.paper.cells import cells
from convs2s.paper.ledger import read_ledger
from convs2s.paper.tables import write_table
from convs2s.scoring.bleu import decode_statistics
from convs2s.scoring.significance import measured


@pytest.mark.parametrize(
    ("page", "scale"),
    [
        pytest.param("results", "multi30k_trained", marks=pytest.mark.slow),
        ("short_run", "multi30k"),
    ],
)
def test_a_page_is_made_from_its_ledger(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, scale: str
) -> None:
    """After a change: make results-page."""
    monkeypatch.chdir(root)
    ledger = f"docs/results/{scale}.ledger.jsonl"
    options = ["--discussion", f"docs/results/{scale}.discussion.md", "--scale", scale]
    main(["results", ledger, *options, "--output", str(tmp_path / f"{page}.md")])
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= 5
    for path in written:
        shown = (root / "docs" / path.relative_to(tmp_path)).read_text("utf-8")
        assert path.suffix == ".svg" or shown == path.read_text("utf-8"), path.name


@pytest.mark.parametrize("scale", ["multi30k_trained", "multi30k"])
def test_published_runs_are_those_of_the_configuration(root: Path, scale: str) -> None:
    settings = load(root, {"scale": scale})
    shown = [cell for name in settings.paper for cell in cells(settings, name)]
    wanted = {record.fingerprint for cell in shown for record in cell.records}
    entries = read_ledger(root / f"docs/results/{scale}.ledger.jsonl")
    assert {entry.fingerprint for entry in entries} <= wanted
    speeds = [one.scores.get("training_speed") for one in entries]
    # One with another number of epochs in it would be no further run of the same row.
    signatures = [str(one.signature) for one in speeds if one]
    assert signatures
    assert all(one.startswith("median over epochs, ") for one in signatures)


def test_published_length_ratios_are_those_of_the_sentences(root: Path) -> None:
    stated = 0
    for entry in read_ledger(root / "docs/results/multi30k.ledger.jsonl"):
        for sentences in entry.sentences.values():
            lengths = measured(decode_statistics(sentences, entry.file)).length_ratio
            assert entry.scores["length_ratio"].score == lengths[0], entry.file
            stated += 1
    assert stated > 200


def test_a_table_is_made_of_a_ledger_in_few_steps(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who wants to know where a cell comes from reads no more functions than these."""
    monkeypatch.chdir(root)
    settings = load(root, {"scale": "multi30k_trained"})
    measured = cells(settings, "table1")
    profile = Profile()
    profile.runcall(
        write_table,
        settings,
        "table1",
        cells=measured,
        scores=[],
        published="docs/results/multi30k_trained.ledger.jsonl",
        failures={},
        outputs=[tmp_path / "table1.md"],
    )
    package = str(Path(convs2s.__file__).parent)
    called = [entry.code for entry in profile.getstats()]
    files = [code.co_filename for code in called if isinstance(code, CodeType)]
    own = [file for file in files if file.startswith(package)]
    assert "59.51 ± 0.24 †" in (tmp_path / "table1.md").read_text("utf-8")
    assert 0 < len(own) <= 50
    assert len({*own}) <= 8
