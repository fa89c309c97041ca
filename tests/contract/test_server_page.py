"""The page in a browser: translation and attention, by pointer and by keyboard, light and dark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.config.decoding import DecodingSettings
from tests.contract.chromium import Page
from tests.support.served import ModelServer, serving

SHOWN = "document.querySelectorAll('#translations > li').length"


@pytest.fixture(scope="module")
def server(sharp: Path) -> Iterator[ModelServer]:
    with serving(sharp, DecodingSettings(minimum_length=3)) as running:
        yield running


@pytest.fixture
def page(server: ModelServer, tmp_path: Path) -> Iterator[Page]:
    with Page(tmp_path / "profile") as opened:
        opened.open(server.address, width=900, scheme="light")
        yield opened


def ask(page: Page, text: str, shown: int) -> None:
    page.run("document.getElementById('text').focus()")
    page.run("document.getElementById('text').value = ''")
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

    page.point("#translations > li:nth-of-type(2) .target .token", 0)
    view = "document.querySelectorAll('.attention')[1]"
    page.wait(f"{view}.querySelector('[aria-pressed=true]') !== null")
    attention = expected["attention"]
    first_rows = [layer[0] for layer in attention["weights"]]
    mean = [sum(shares) / len(shares) for shares in zip(*first_rows, strict=True)]
    most = mean.index(max(mean))
    line = page.run(f"{view}.querySelector('output').textContent")
    assert line.startswith(
        f"{attention['target'][0]} looks at: {attention['source'][most]} {mean[most]:.2f}"
    )
    weights = page.run(
        f"[...{view}.querySelectorAll('.source .token')]"
        ".map(one => one.style.getPropertyValue('--weight'))"
    )
    assert weights == [f"{one:.4f}" for one in mean]
    assert weights.index(max(weights, key=float)) == most
    page.picture(pictures / "serve_light.png", whole=True)
    assert page.complaints == []
    assert set(page.fetched) == {server.address, f"{server.address}translate"}


def test_what_the_server_refuses_is_said(page: Page) -> None:
    page.run("document.getElementById('text').value = 'w'.repeat(3000)")
    page.click("button[type=submit]")
    page.wait("document.getElementById('status').classList.contains('error')")
    status = page.run("document.getElementById('status').textContent")
    assert "a text of 3,000 bytes" in status
    # A browser notes every answer that is none: the page itself raises nothing.
    assert all("413" in one for one in page.complaints)
