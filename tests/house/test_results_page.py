"""docs/results.md says what its ledger says."""

from pathlib import Path

from convs2s.config.load import load
from convs2s.paper.ledger_entry import read_ledger
from convs2s.paper.results_page import results_page

PAGE, LEDGER, SCALE = "docs/results.md", "docs/results/multi30k.ledger.jsonl", "multi30k"


def test_the_page_is_made_from_its_ledger(root: Path) -> None:
    settings = load(root, {"scale": SCALE}, given_by="--scale")
    page = results_page(settings, read_ledger(root / LEDGER), LEDGER)
    assert (root / PAGE).read_text("utf-8") == page, "make results-page"
