"""The page in a browser: translation and attention, by pointer and by keyboard, light and dark."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
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
    mean = np.mean(attention["weights"], 0)[0]
    most = mean.argmax()
    line = page.run(f"{view}.querySelector('output').textContent")
    looks = f"looks at: {attention['source'][most]} {mean[most]:.2f}"
    assert line.startswith(f"{attention['target'][0]} {looks}")
    weights = page.run(
        f"[...{view}.querySelectorAll('.source .token')]"
        ".map(one => one.style.getPropertyValue('--weight'))"
    )
    assert weights == [f"{one:.4f}" for one in mean]
    page.picture(pictures / "serve_light.png", whole=True)
    assert page.complaints == []
    assert set(page.fetched) == {server.address, f"{server.address}translate"}


def test_a_long_text_is_sent_in_portions(page: Page) -> None:
    """A hundred lines, of which one is a paragraph of more bytes than a request may have."""
    lines = ["w1 w2", "", "W1 w2 w3. " * 250, *["w3 w4"] * 97]
    ask(page, "\n".join(lines), 100)
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
