"""What the pages name exists."""

import re
from pathlib import Path

PATH = re.compile(
    r"\b(?:tests|src|rules|workflow|benchmarks|profiles|envs|docs|schemas)/[\w./-]+\.(?:py|smk|yaml|md|sh|json)"
)


def test_every_file_that_a_page_names_is_there(root: Path) -> None:
    pages = [*(root / "docs").glob("*.md"), root / "README.md", root / "CONTRIBUTING.md"]
    named = {(page.name, path) for page in pages for path in PATH.findall(page.read_text("utf-8"))}
    assert len(named) > 20
    assert [both for both in sorted(named) if not (root / both[1]).exists()] == []
