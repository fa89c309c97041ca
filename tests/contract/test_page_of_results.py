"""The page of results from a few runs, and what lies behind it."""

import re
from pathlib import Path

import pytest

from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.results import entries_of
from convs2s.paper.results_page import write_results_page
from tests.contract.documents import svg_texts
from tests.support.cells import bleu, write
from tests.support.refusals import refusal, says

TITLES = re.compile(r"^(#+ .*?)(?::| and| at| of|$)", re.MULTILINE)

pytestmark = pytest.mark.usefixtures("in_folder")


def test_the_page_shows_what_was_run_alone(demo: Settings) -> None:
    """All runs but the last row's of table 1."""
    Path("page").mkdir()
    measured = [
        cell for name in ("table1", "table7", "figure2") for cell in cells(demo, name)
    ]
    scores = [
        write(cell.paths[0], bleu(after=30.0 + number, before=20.0 + number))
        for number, cell in enumerate(measured)
        if (cell.address.table, cell.address.row) != ("table1", 14)
    ]
    entries = entries_of(demo, measured, scores)
    output = Path("page.md")
    write_results_page(
        demo, entries, ledger="a.jsonl", discussion="## Discussion\n", output=output
    )
    page = output.read_text("utf-8")
    tables = Path("page/tables.md").read_text("utf-8")
    claims = Path("page/claims.md").read_text("utf-8")
    # Nothing of table 2 was run, and no claim has a verdict.
    assert TITLES.findall(page)[1:] == ["## Table 1", "## Discussion"]
    assert f"{len(demo.claims)} more claims have no verdict" in page
    assert TITLES.findall(claims) == ["# Claims", "## Comparisons"]
    title, *parts = TITLES.findall(tables)
    assert title == "# Every table"
    assert {f"## Table {number}" for number in range(1, 9)} <= set(parts)
    links = re.findall(r"\]\((page/[^)]*)\)", page)
    assert sorted(set(links)) == sorted(map(str, Path("page").iterdir()))
    assert "| not run [" in claims
    assert "| not run" not in page
    trends = svg_texts(Path("page/trends.svg"))
    assert {"Table 1", "Table 7", "paper: BLEU", "ours: BLEU"} <= trends


def test_what_makes_no_page_is_refused(demo: Settings) -> None:
    Path("file").touch()
    for output, *words in (
        ("page", "page: ", "ends in .md"),
        ("page.md", "a: has no run of scale demo", "--scale"),
        ("file.md", "file.md: ", "no file named file"),
    ):
        stated = {"ledger": "a", "discussion": "", "output": Path(output)}
        says(refusal(write_results_page, demo, [], **stated), *words)
    assert not Path("page").exists()
