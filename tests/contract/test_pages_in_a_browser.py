"""The report and the commands' pages in a browser: nothing complains, nothing is fetched."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.runs import members
from convs2s.files.text import write_lines
from convs2s.paper.attention import attention_page
from convs2s.paper.attention_maps import ExampleAttention, LayerCount
from convs2s.paper.cells import cells
from convs2s.paper.claims import write_claims
from convs2s.paper.ledger import read_ledger
from convs2s.paper.report.write import write_report
from convs2s.paper.results import write_ledger
from tests.conftest import Terminal
from tests.support.chromium import Page
from tests.support.paper_results import (
    HOSTILE,
    PaperResults,
    write_figures,
    write_paper_results,
    write_training,
)

HIGHEST = 15_000
"""Pixels of the report at a width of 1,400, all that folds closed."""

OPEN = "document.querySelectorAll('details').forEach(part => part.open = true)"
DRAWN = (
    "[...document.querySelectorAll('.chart')].every(one => one.querySelector('svg'))"
)
LOADED = "[...document.images].every(one => one.complete && one.naturalWidth)"
WIDTH = "document.documentElement.scrollWidth"
HEIGHT = "document.documentElement.scrollHeight"
PLACES = [
    "summary",
    "table1",
    "figure2",
    "figure3",
    "claims",
    "curves",
    "translations",
    "costs",
]


@pytest.fixture(scope="module")
def results(root: Path, tmp_path_factory: pytest.TempPathFactory) -> PaperResults:
    found = write_paper_results(tmp_path_factory.mktemp("results"), root)
    found.report()
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with Page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def report(browser: Page, results: PaperResults) -> Page:
    browser.complaints.clear()
    browser.open(results.output, width=1280, scheme="light")
    return browser


def test_all_is_drawn_and_nothing_complains(
    report: Page, results: PaperResults
) -> None:
    assert set(report.fetched) == {results.output.as_uri()}
    for name in results.tables:
        table = f"document.getElementById('{name}-caption').closest('table')"
        assert report.run(f"{table}.rows.length") > 1
        assert report.run(f"{table}.closest('.dt-container') !== null")
    assert not report.run(DRAWN)  # a plot in a closed part is drawn when that opens
    report.run(OPEN)
    report.wait(DRAWN)
    assert report.complaints == []
    assert report.run(LOADED)
    note = "document.querySelector('#table4 .note li').textContent"
    assert HOSTILE in report.run(note)


def test_tables_sort_by_pointer_and_by_keyboard(report: Page) -> None:
    column = "document.querySelector('#table4 thead th:nth-child(5)"
    shown = "[...document.querySelectorAll('#table4 .parts tbody tr td:nth-child(5)')]"
    ours = f"{shown}.map(cell => cell.dataset.order)"
    before = report.run(ours)
    report.click("#table4 thead th:nth-child(5)")
    ascending = sorted(before, key=lambda one: float(one or "-inf"))
    assert report.run(ours) == ascending != before
    assert report.run(f"{column}').ariaSort") == "ascending"
    report.run(f"{column} .dt-column-order').focus()")
    report.press_enter()
    report.wait(f"{column}').ariaSort === 'descending'")
    descending = sorted(before, key=lambda one: -float(one or "-inf"))
    assert report.run(ours) == descending


def test_tables_of_fifteen_rows_filter(report: Page) -> None:
    rows = "document.querySelectorAll('#table3 .parts tbody tr').length"
    field = "document.querySelector('#table3 .parts .dt-search input')"
    before = report.run(rows)
    assert report.run(f"{field}.ariaLabel").startswith("Filter rows of Table 3")
    report.run(f"{field}.focus()")
    report.call("Input.insertText", text="not run")
    assert 0 < report.run(rows) < before
    info = report.run("document.querySelector('#table3 .parts .dt-info').textContent")
    assert info.endswith(f"of {before}")
    assert report.run("document.querySelector('#table4 .dt-search')") is None


@pytest.mark.parametrize(
    ("place", "mark", "said"),
    [
        ("#curves", ".mark-symbol path", ("perplexity", "learning rate", "seed")),
        ("#figure2", ".mark-symbol path", ("Layers", "BLEU", "value of")),
        ("#figure3", ".mark-rect path", ("source", "target", "attention")),
    ],
)
def test_pointing_at_a_value_shows_it(
    report: Page, place: str, mark: str, said: tuple[str, ...], pictures: Path
) -> None:
    report.run(OPEN)
    report.wait(DRAWN)
    report.point(f"{place} .drawing {mark}", 3)
    shown = "document.querySelector('#vg-tooltip-element.visible')?.textContent ?? ''"
    text = report.run(f"new Promise(done => setTimeout(() => done({shown}), 500))")
    assert all(word in text for word in said), text
    report.picture(pictures / f"pointed_at_{place[1:]}.png")


WEIGHTS = [[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], [[0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]]
TAG = "</script><b>&"
EXAMPLE = ExampleAttention(
    task="tiny",
    model="model.safetensors",
    run="seed1",
    scale="",
    stand_in="a test's",
    source=f"the {TAG}",
    source_tokens=["the", TAG, "</s>"],
    translation="das",
    target_tokens=["das", "</s>"],
    layers=LayerCount(2, "a test"),
    weights=WEIGHTS,
)


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("attention") / "page.html"
    output.write_text(attention_page(EXAMPLE), "utf-8")
    return output


def test_pointing_at_a_token_shows_where_it_looks(
    browser: Page, attention: Path
) -> None:
    shown = "document.querySelector('.attention output').textContent"
    tokens = "[...document.querySelectorAll('.attention .source .token')]"
    shares = f"{tokens}.map(one => one.style.getPropertyValue('--weight'))"
    browser.open(attention, width=1000, scheme="light")
    asked = browser.run(shown)
    # The mean of both layers; of the first token before any is pointed at.
    first = f"das looks at: </s> 0.45, the 0.40, {TAG} 0.15"
    assert asked.startswith(f"{first}. Point at a token")
    assert browser.run(shares) == ["0.4000", "0.1500", "0.4500"]
    browser.point(".attention .source .token", 0)
    browser.wait(f"{shown}.startsWith('the is looked at by')")
    assert browser.run(shares) == ["", "", ""]
    browser.point(".attention .target .token", 0)
    browser.wait(f"{shown} === {first!r}")
    browser.point("h1")
    browser.wait(f"{shown} === {asked!r}")
    # A layer is chosen, and keys go from token to token.
    browser.run("document.querySelector('.attention input[value=\"1\"]').click()")
    browser.run("document.querySelector('.attention .target .token').focus()")
    browser.wait(f"{shown}.startsWith('das looks at: </s> 0.80')")
    browser.press("ArrowRight")
    browser.wait(f"{shown}.startsWith('</s> looks at: </s> 0.40')")
    browser.press("ArrowUp")
    browser.wait(f"{shown} === {TAG!r} + ' is looked at by: </s> 0.30, das 0.10'")
    browser.press("Escape")
    browser.wait(f"{shown}.includes('Point at a token')")


def test_outputs_side_by_side(browser: Page, tmp_path: Path, run: Terminal) -> None:
    files = {
        "old.fr": ["a red car .", f"no {TAG}"],
        "new.fr": ["two red cars .", f"yes {TAG}"],
        "reference.fr": ["two red cars .", f"no {TAG}"],
    }
    for name, lines in files.items():
        write_lines(tmp_path / name, lines)
    old, new, reference = (tmp_path / name for name in files)
    options = ["--reference", reference, "--source", old, "--tokenized", "--html"]
    output = tmp_path / "page.html"
    output.write_text(run("compare-outputs", old, new, *options), "utf-8")
    browser.complaints.clear()
    browser.open(output, width=400, scheme="dark")
    assert browser.run(WIDTH) <= 400
    assert browser.complaints == []
    for place, words in (
        ("article:nth-of-type(1) del", ["a", "car"]),
        ("article:nth-of-type(1) ins", ["two", "cars"]),
        ("article:nth-of-type(2) ins", ["yes"]),
        ("main b", []),
    ):
        texts = f"[...document.querySelectorAll('{place}')].map(one => one.textContent)"
        assert browser.run(texts) == words


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_look_alike_everywhere(
    browser: Page,
    results: PaperResults,
    attention: Path,
    scheme: str,
    width: int,
    pictures: Path,
) -> None:
    browser.complaints.clear()
    ground = "getComputedStyle(document.body).backgroundColor"
    for page in (attention, results.output):
        browser.open(page, width=width, scheme=scheme)
        assert browser.run(WIDTH) <= width
        assert (browser.run(ground) == "rgb(255, 255, 255)") == (scheme == "light")
        if page == attention:
            assert set(browser.fetched) == {page.as_uri()}
            assert browser.run("document.querySelectorAll('main b').length") == 0
    tables = "[...document.querySelectorAll('.dt-container')]"
    colors = browser.run(f"{tables}.map(one => getComputedStyle(one).backgroundColor)")
    assert set(colors) == {"rgba(0, 0, 0, 0)"}
    if width == 1400:
        assert browser.run(HEIGHT) <= HIGHEST
    for place in PLACES:
        top = "scrollIntoView({behavior: 'instant'})"
        browser.run(f"document.getElementById('{place}').{top}")
        browser.picture(pictures / f"{scheme}_{width}_{place}.png")
    assert browser.complaints == []


def test_the_page_of_a_whole_run_is_short_and_shows_its_tables_whole(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Page
) -> None:
    """The published scores, with a history of each training as if it had been made here."""
    settings = load(root, {"scale": "multi30k_trained"})
    of_tables = {name: cells(settings, name) for name in settings.paper}
    monkeypatch.chdir(tmp_path)
    ledger, claims, report = (
        tmp_path / "paper" / name
        for name in ("ledger.jsonl", "claims.json", "report.html")
    )
    every = [cell for table in of_tables.values() for cell in table]
    theirs = str(root / "docs/results/multi30k_trained.ledger.jsonl")
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
    browser.complaints.clear()
    browser.open(report, width=1400, scheme="light")
    assert browser.run(HEIGHT) <= HIGHEST
    assert browser.run("document.querySelectorAll('#curves .model').length") > 50
    shown = "[...document.querySelectorAll('.parts .scrolls')].filter(one => one.clientWidth)"
    assert browser.run(f"{shown}.length") > 10
    assert browser.run(f"{shown}.every(one => one.scrollWidth <= one.clientWidth)")
    browser.open(report, width=400, scheme="light")
    texts = "[...document.querySelectorAll('.charts svg text')]"
    rights = f"{texts}.map(one => one.getBoundingClientRect().right)"
    assert browser.run(f"Math.max(...{rights})") <= 400
    assert browser.complaints == []


STYLE = """@page { size: A4; margin: 18mm } body { font: 11pt/1.45 sans-serif }
table { border-collapse: collapse; font-size: 10pt } td, th { border: 1px solid; padding: 3pt 6pt }
tr, img { break-inside: avoid } img { max-width: 100% }"""


def test_the_page_of_results_fits_on_five_printed_pages(
    root: Path, tmp_path: Path, browser: Page
) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    text = (root / "docs/results.md").read_text("utf-8")
    assert "STAND-IN DATA" in text
    body = markdown_it.MarkdownIt().enable("table").render(text)
    head = f'<meta charset="utf-8"><base href="{(root / "docs").as_uri()}/">'
    head = f"<head>{head}<style>{STYLE}</style></head>"
    page, printed = tmp_path / "results.html", tmp_path / "results.pdf"
    whole = f"<!DOCTYPE html><html data-ready=yes>{head}<body>{body}</body></html>"
    page.write_text(whole, encoding="utf-8")
    browser.open(page, width=700, scheme="light")
    assert browser.run("document.images.length") == 2
    browser.wait(LOADED)
    browser.printed(printed)
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 5
