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
    plots = [path.name for path in (tmp_path / "results").iterdir()]
    assert plots == ["figure2.svg"]
    assert all((root / "docs/results" / name).is_file() for name in plots)
