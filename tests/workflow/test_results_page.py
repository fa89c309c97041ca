"""docs/results.md in a browser: its figures are in the page, and it fits on five printed pages."""

import re
from pathlib import Path

import pytest

from tests.support.chromium import Page

MOST_PAGES = 5
STYLE = """@page { size: A4; margin: 18mm } body { font: 11pt/1.45 sans-serif }
table { border-collapse: collapse; font-size: 10pt } td, th { border: 1px solid; padding: 3pt 6pt }
tr, img { break-inside: avoid } img { max-width: 100% }"""


def test_the_page_of_results_fits_on_five_printed_pages(
    root: Path, tmp_path: Path
) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    text = (root / "docs/results.md").read_text("utf-8")
    assert "STAND-IN DATA" in text
    body = markdown_it.MarkdownIt().enable("table").render(text)
    head = f'<meta charset="utf-8"><base href="{(root / "docs").as_uri()}/">'
    page, printed = tmp_path / "results.html", tmp_path / "results.pdf"
    start = (
        f"<!DOCTYPE html><html data-ready=yes><head>{head}<style>{STYLE}</style></head>"
    )
    page.write_text(f"{start}<body>{body}</body></html>", encoding="utf-8")
    with Page(tmp_path / "profile") as opened:
        opened.open(page, width=700, scheme="light")
        assert opened.run("document.images.length") == 2
        opened.wait(
            "[...document.images].every(one => one.complete && one.naturalWidth)"
        )
        opened.printed(printed)
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= MOST_PAGES
