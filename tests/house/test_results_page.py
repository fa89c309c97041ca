"""docs/results.md says what its ledger says."""

from pathlib import Path

import pytest

from convs2s.cli.main import main

PAGE, LEDGER = "docs/results.md", "docs/results/multi30k.ledger.jsonl"
DISCUSSION = "docs/results/discussion.md"


def test_the_page_is_made_from_its_ledger(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    output = tmp_path / "results.md"
    options = ["--scale", "multi30k", "--discussion", DISCUSSION, "--output", str(output)]
    main(["results", LEDGER, *options])
    assert (root / PAGE).read_text("utf-8") == output.read_text("utf-8"), "make results-page"
    folder = tmp_path / "results"
    written = {path.name for path in folder.iterdir()}
    assert written == {"claims.md", "figure2.svg", "tables.md", "trends.svg"}
    for name in written:
        shown = (root / "docs/results" / name).read_text("utf-8")
        assert name.endswith(".svg") or shown == (folder / name).read_text("utf-8"), name
