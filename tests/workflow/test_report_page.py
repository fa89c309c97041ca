"""The report in a browser: nothing complains, nothing is fetched, tables sort and filter."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.runs import members
from convs2s.paper.cells import cells
from convs2s.paper.claims import write_claims
from convs2s.paper.ledger import read_ledger
from convs2s.paper.report.write import write_report
from convs2s.paper.results import write_ledger
from tests.support.chromium import Page
from tests.support.paper_results import (
    HOSTILE,
    PaperResults,
    write_figures,
    write_paper_results,
    write_training,
)

ROWS = "#table4 .parts tbody tr"
OURS = f"[...document.querySelectorAll('{ROWS} td:nth-child(5)')].map(cell => cell.dataset.order)"
SHOWN = "document.querySelectorAll('#table3 .parts tbody tr').length"
OPEN = "document.querySelectorAll('details').forEach(part => part.open = true)"
DRAWN = (
    "[...document.querySelectorAll('.chart')].every(one => one.querySelector('svg'))"
)
HIGHEST = 15_000
"""Pixels of the page at a width of 1,400, all that folds closed."""

PUBLISHED = "docs/results/multi30k_trained.ledger.jsonl"

PLACES = (
    "summary",
    "table1",
    "figure2",
    "figure3",
    "claims",
    "curves",
    "translations",
    "costs",
)


@pytest.fixture(scope="module")
def results(root: Path, tmp_path_factory: pytest.TempPathFactory) -> PaperResults:
    found = write_paper_results(tmp_path_factory.mktemp("results"), root)
    found.report()
    return found


@pytest.fixture(scope="module")
def page(
    results: PaperResults, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    with Page(tmp_path_factory.mktemp("profile")) as opened:
        opened.open(results.output, width=1280, scheme="light")
        yield opened


def test_all_is_drawn_and_nothing_complains(page: Page, results: PaperResults) -> None:
    assert page.complaints == []
    assert set(page.fetched) == {results.output.as_uri()}
    for name in results.tables:
        table = f"document.getElementById('{name}-caption').closest('table')"
        assert page.run(f"{table}.rows.length") > 1
        assert page.run(f"{table}.closest('.dt-container') !== null")
    assert not page.run(DRAWN)  # a plot in a closed part is drawn when that opens
    page.run(OPEN)
    page.wait(DRAWN)
    assert page.complaints == []
    assert page.run(
        "[...document.images].every(one => one.complete && one.naturalWidth)"
    )
    assert HOSTILE in page.run("document.querySelector('#table4 .note li').textContent")


def test_tables_sort_by_pointer_and_by_keyboard(page: Page) -> None:
    before = page.run(OURS)
    page.click("#table4 thead th:nth-child(5)")
    assert (
        page.run(OURS) == sorted(before, key=lambda one: float(one or "-inf")) != before
    )
    state = "document.querySelector('#table4 thead th:nth-child(5)').ariaSort"
    assert page.run(state) == "ascending"
    page.run(
        "document.querySelector('#table4 thead th:nth-child(5) .dt-column-order').focus()"
    )
    page.press_enter()
    page.wait(f"{state} === 'descending'")
    assert page.run(OURS) == sorted(before, key=lambda one: -float(one or "-inf"))


def test_tables_filter(page: Page) -> None:
    """Where a table has fifteen rows or more."""
    field = "document.querySelector('#table3 .parts .dt-search input')"
    before = page.run(SHOWN)
    assert page.run(f"{field}.ariaLabel").startswith("Filter rows of Table 3")
    page.run(f"{field}.focus()")
    page.call("Input.insertText", text="not run")
    assert 0 < page.run(SHOWN) < before
    assert page.run("document.querySelector('#table4 .dt-search')") is None
    assert page.run(
        "document.querySelector('#table3 .parts .dt-info').textContent"
    ).endswith(f"of {before}")
    page.run(
        f"{field}.value = ''; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    )
    assert page.run(SHOWN) == before


@pytest.mark.parametrize(
    ("place", "mark", "said"),
    [
        ("#curves", ".mark-symbol path", ("perplexity", "learning rate", "seed")),
        ("#figure2", ".mark-symbol path", ("Layers", "BLEU", "value of")),
        ("#figure3", ".mark-rect path", ("source", "target", "attention")),
    ],
)
def test_pointing_at_a_value_shows_it(
    page: Page, place: str, mark: str, said: tuple[str, ...], pictures: Path
) -> None:
    page.run(OPEN)
    page.wait(DRAWN)
    page.point(f"{place} .drawing {mark}", 3)
    shown = "document.querySelector('#vg-tooltip-element.visible')?.textContent ?? ''"
    text = page.run(f"new Promise(done => setTimeout(() => done({shown}), 500))")
    assert all(word in text for word in said), text
    page.picture(pictures / f"pointed_at_{place[1:]}.png")


def test_attention_is_shown_token_by_token(page: Page) -> None:
    page.run(OPEN)
    page.point("#figure3 .attention .target .token", 0)
    shown = "document.querySelector('#figure3 .attention output').textContent"
    page.wait(f"{shown}.includes(' looks at: ')")
    page.point("h1")


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_looks_alike_everywhere(
    page: Page, results: PaperResults, scheme: str, width: int, pictures: Path
) -> None:
    page.open(results.output, width=width, scheme=scheme)
    assert page.run("document.documentElement.scrollWidth") <= width
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    tables = "[...document.querySelectorAll('.dt-container')]"
    colors = page.run(f"{tables}.map(one => getComputedStyle(one).backgroundColor)")
    assert set(colors) == {"rgba(0, 0, 0, 0)"}
    if width == 1400:
        assert page.run("document.documentElement.scrollHeight") <= HIGHEST
    for place in PLACES:
        page.run(
            f"document.getElementById('{place}').scrollIntoView({{behavior: 'instant'}})"
        )
        page.picture(pictures / f"{scheme}_{width}_{place}.png")
    assert page.complaints == []


def test_the_page_of_a_whole_run_is_short_and_shows_its_tables_whole(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Page
) -> None:
    """The published scores, with a history of each training as if it had been made here."""
    settings = load(root, {"scale": "multi30k_trained"})
    of_tables = {name: cells(settings, name) for name in settings.paper}
    monkeypatch.chdir(tmp_path)
    places = (
        Path("paper") / name for name in ("ledger.jsonl", "claims.json", "report.html")
    )
    ledger, claims, report = (tmp_path / place for place in places)
    every, theirs = (
        [cell for table in of_tables.values() for cell in table],
        str(root / PUBLISHED),
    )
    write_ledger(settings, cells=every, scores=[], published=theirs, output=ledger)
    write_claims(settings, ledger=ledger, outputs=[claims])
    runs = {
        Path(entry.file).parent.with_name(member)
        for entry in read_ledger(ledger)
        for member in members(entry.run.run)
    }
    inputs = [str(ledger), str(claims), *write_figures(tmp_path, min(runs).parent)]
    inputs += [path for run in runs for path in write_training(run, 1)]
    write_report(settings, cells=of_tables, failures={}, inputs=inputs, output=report)
    page.open(report, width=1400, scheme="light")
    assert page.run("document.documentElement.scrollHeight") <= HIGHEST
    assert page.run("document.querySelectorAll('#curves .model').length") > 50
    shown = "[...document.querySelectorAll('.parts .scrolls')].filter(one => one.clientWidth)"
    assert page.run(f"{shown}.length") > 10
    assert (
        page.run(f"{shown}.filter(one => one.scrollWidth > one.clientWidth).length")
        == 0
    )
    page.open(report, width=400, scheme="light")
    texts = "[...document.querySelectorAll('.charts svg text')]"
    texts += ".map(one => one.getBoundingClientRect())"
    assert page.run(f"Math.max(...{texts}.map(one => one.right))") <= 400
    assert page.complaints == []
