"""The report, the commands' pages and the server's in a browser: by pointer and by keyboard."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from convs2s.config.decoding import DecodingSettings
from convs2s.paper.attention import attention_page
from convs2s.paper.attention_maps import ExampleAttention
from tests.contract.chromium import Page
from tests.contract.paper_results import HOSTILE, PaperResults, write_paper_results
from tests.support.refusals import rows, says
from tests.support.served import ModelServer, serving

OPEN = "document.querySelectorAll('details').forEach(part => part.open = true)"
DRAWN = (
    "[...document.querySelectorAll('.chart')].every(one => one.querySelector('svg'))"
)
LOADED = "[...document.images].every(one => one.complete && one.naturalWidth)"
PLACES = "summary table1 figure2 figure3 claims curves translations costs"


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
    browser.open(results.output, width=1280, scheme="light")
    return browser


def test_all_is_drawn_and_nothing_complains(
    report: Page, results: PaperResults
) -> None:
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
    heading = "#table4 thead th:nth-child(5)"
    sort = f"document.querySelector('{heading}').ariaSort"
    shown = "[...document.querySelectorAll('#table4 .parts tbody tr td:nth-child(5)')]"
    ours = f"{shown}.map(cell => cell.dataset.order)"
    before = report.run(ours)
    report.click(heading)
    ascending = sorted(before, key=lambda one: float(one or "-inf"))
    assert report.run(ours) == ascending != before
    assert report.run(sort) == "ascending"
    report.run(f"document.querySelector('{heading} .dt-column-order').focus()")
    report.press("Enter", text="\r")
    report.wait(f"{sort} === 'descending'")
    assert report.run(ours) == sorted(before, key=lambda one: -float(one or "-inf"))


POINTED = """
curves => .mark-symbol path => perplexity ... learning rate ... seed
figure2 => .mark-symbol path => Layers ... BLEU ... value of
figure3 => .mark-rect path => source ... target ... attention
"""


def test_pointing_at_a_value_shows_it(report: Page, pictures: Path) -> None:
    report.run(OPEN)
    report.wait(DRAWN)
    shown = "document.querySelector('#vg-tooltip-element.visible')?.textContent ?? ''"
    for place, mark, words in rows(POINTED):
        report.point(f"#{place} .drawing {mark}", 3)
        text = report.run(f"new Promise(done => setTimeout(() => done({shown}), 500))")
        says(text, words)
        report.picture(pictures / f"pointed_at_{place}.png")


TAG = "</script><b>&"
EXAMPLE = """
{
  "task": "tiny", "model": "model.safetensors", "run": "seed1", "scale": "",
  "stand_in": "a test's",
  "source": "the TAG", "source_tokens": ["the", "TAG", "</s>"],
  "translation": "das", "target_tokens": ["das", "</s>"],
  "layers": {"score": 2, "signature": "a test"},
  "weights": [
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]],
    [[0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]
  ]
}
""".replace("TAG", TAG)


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("attention") / "page.html"
    output.write_text(
        attention_page(TypeAdapter(ExampleAttention).validate_json(EXAMPLE)), "utf-8"
    )
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


def test_pages_look_alike_everywhere(
    browser: Page, results: PaperResults, attention: Path, pictures: Path
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    for scheme, width in (("dark", 400), ("light", 1400)):
        for page in (attention, results.output):
            browser.open(page, width=width, scheme=scheme)
            assert set(browser.fetched) == {page.as_uri()}
            assert browser.complaints == []
            assert browser.run("document.documentElement.scrollWidth") <= width
            is_white = browser.run(ground) == "rgb(255, 255, 255)"
            assert is_white == (scheme == "light")
        for place in PLACES.split():
            top = "scrollIntoView({behavior: 'instant'})"
            browser.run(f"document.getElementById('{place}').{top}")
            browser.picture(pictures / f"{scheme}_{width}_{place}.png")
        assert browser.complaints == []
    # All that folds is closed.
    assert browser.run("document.documentElement.scrollHeight") <= 15_000


PRINTED = """<!DOCTYPE html><html data-ready=yes><head><meta charset="utf-8"><base href="%s/">
<style>@page { size: A4; margin: 18mm } body { font: 11pt/1.45 sans-serif }
table { border-collapse: collapse; font-size: 10pt } td, th { border: 1px solid; padding: 3pt 6pt }
tr, img { break-inside: avoid } img { max-width: 100%% }</style></head><body>%s</body></html>"""


def test_the_page_of_results_fits_on_five_printed_pages(
    root: Path, tmp_path: Path, browser: Page
) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    text = (root / "docs/results.md").read_text("utf-8")
    assert "STAND-IN DATA" in text
    body = markdown_it.MarkdownIt().enable("table").render(text)
    page, printed = tmp_path / "results.html", tmp_path / "results.pdf"
    page.write_text(PRINTED % ((root / "docs").as_uri(), body), encoding="utf-8")
    browser.open(page, width=700, scheme="light")
    assert browser.run("document.images.length") == 2
    browser.wait(LOADED)
    browser.printed(printed)
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 5


# ---- the server's page ----

SHOWN = "document.querySelectorAll('#translations > li').length"


@pytest.fixture(scope="module")
def server(sharp: Path) -> Iterator[ModelServer]:
    with serving(sharp, DecodingSettings(minimum_length=3)) as running:
        yield running


@pytest.fixture
def page(browser: Page, server: ModelServer) -> Page:
    browser.open(server.address, width=900, scheme="light")
    return browser


def ask(page: Page, text: str, shown: int) -> None:
    page.run("document.getElementById('text').focus()")
    page.call("Input.insertText", text=text)
    page.press("Enter", control=True)
    page.wait(f"{SHOWN} === {shown}")


def test_a_translation_and_its_attention(
    page: Page, server: ModelServer, pictures: Path
) -> None:
    ask(page, "w1 <b>w2</b>\n\nw3 w4 w5", 2)
    assert page.run("document.querySelector('.source').textContent") == "w1 <b>w2</b>"
    expected = server.translate("w3 w4 w5", attention=True).content["translations"][0]
    said = "document.querySelectorAll('.text')[1].textContent"
    assert page.run(said) == expected["text"]

    attention = expected["attention"]
    mean = np.mean(attention["weights"], axis=0)[0]
    most = mean.argmax()
    shown = "document.querySelectorAll('.attention output')[1].textContent"
    line = page.run(shown)
    first = f"{attention['target'][0]} looks at: {attention['source'][most]}"
    assert line.startswith(f"{first} {mean[most]:.2f}")
    page.picture(pictures / "serve_light.png", whole=True)
    assert page.complaints == []
    assert set(page.fetched) == {server.address, f"{server.address}translate"}


def test_a_long_text_is_sent_in_portions(page: Page) -> None:
    """A hundred lines, of which one is a paragraph of more bytes than a request may have."""
    lines = [f"w{number % 12} w1 w2" for number in range(100)]
    lines[1] = ""
    lines[2] = "W1 w2 w3. " * 250
    ask(page, "\n".join(lines), 98 + 2)
    page.wait("document.getElementById('status').textContent === '100 translations'")
    copied = page.run("translatedLines().join('\\n')").split("\n")
    assert (len(copied), copied[1]) == (100, "")
    assert all(copied[:1] + copied[2:])


def test_a_document_is_translated(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    file.write_text("<p>w1 w2</p>", "utf-8")
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    field = page.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    page.call("DOM.setFileInputFiles", files=[str(file)], nodeId=field)
    page.wait("document.querySelector('#status a') !== null")
    assert page.run("document.querySelector('#status a').download") == "a.fr.html"
    address = page.run("document.querySelector('#status a').href")
    found = page.run(f"fetch({address!r}).then(answer => answer.text())")
    assert found.startswith("<p>")


def test_tokens_are_text_until_the_model_s_are_asked_for(page: Page) -> None:
    shown = """(raw => {
        const view = document.body.appendChild(document.createElement("div"));
        const source = ["l&apos;", "a@@", "@-@"];
        showAttention(view, { source, target: ["</s>"], weights: [[[1, 0, 0]]] });
        if (raw) view.querySelector("input[type=checkbox]").click();
        return [...view.querySelectorAll(".source .token")].map(one => one.textContent);
    })"""
    assert page.run(f"{shown}(false)") == ["l'", "a", "-"]
    assert page.run(f"{shown}(true)") == ["l&apos;", "a@@", "@-@"]


def test_what_the_server_refuses_is_said(page: Page) -> None:
    page.run("document.getElementById('text').value = 'w'.repeat(3000)")
    page.click("button[type=submit]")
    page.wait("document.getElementById('status').classList.contains('error')")
    status = page.run("document.getElementById('status').textContent")
    assert "a text of 3,000 bytes" in status
    # A browser notes every answer that is none: the page itself raises nothing.
    assert all("413" in one for one in page.complaints)
