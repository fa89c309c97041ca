"""The pages that commands print, in a browser: nothing complains, nothing is fetched."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.files.text import write_lines
from convs2s.paper.attention import attention_page
from convs2s.paper.attention_maps import ExampleAttention
from convs2s.paper.ledger import RunScore
from tests.support.chromium import Page

HOSTILE = "</script><b>&"
WEIGHTS = [[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], [[0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]]
EXAMPLE = ExampleAttention(
    task="tiny",
    model="model.safetensors",
    run="seed1",
    scale="",
    stand_in="a test's",
    source=f"the {HOSTILE}",
    source_tokens=["the", HOSTILE, "</s>"],
    translation="das",
    target_tokens=["das", "</s>"],
    layers=RunScore(2, "a test"),
    weights=WEIGHTS,
)
SHOWN = "document.querySelector('.attention output').textContent"
SHARES = (
    "[...document.querySelectorAll('.attention .source .token')]"
    ".map(one => one.style.getPropertyValue('--weight'))"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with Page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("attention") / "page.html"
    output.write_text(attention_page(EXAMPLE), "utf-8")
    return output


def test_pointing_at_a_token_shows_where_it_looks(
    page: Page, attention: Path, pictures: Path
) -> None:
    page.open(attention, width=1000, scheme="light")
    asked = page.run(SHOWN)
    # The mean of both layers; of the first token before any is pointed at.
    first = f"das looks at: </s> 0.45, the 0.40, {HOSTILE} 0.15"
    assert asked.startswith(f"{first}. Point at a token")
    assert page.run(SHARES) == ["0.4000", "0.1500", "0.4500"]
    page.point(".attention .source .token", 0)
    page.wait(f"{SHOWN}.startsWith('the is looked at by')")
    assert page.run(SHARES) == ["", "", ""]
    page.point(".attention .target .token", 0)
    page.wait(f"{SHOWN} === {first!r}")
    assert page.run(SHARES) == ["0.4000", "0.1500", "0.4500"]
    page.picture(pictures / "attention.png")
    page.point("h1")
    page.wait(f"{SHOWN} === {asked!r}")
    assert page.run(SHARES) == ["0.4000", "0.1500", "0.4500"]


def test_a_layer_is_chosen_and_keys_go_from_token_to_token(
    page: Page, attention: Path
) -> None:
    page.open(attention, width=1000, scheme="light")
    # The mean, and both layers.
    assert page.run("document.querySelectorAll('.attention input').length") == 3
    page.run("document.querySelector('.attention input[value=\"1\"]').click()")
    page.run("document.querySelector('.attention .target .token').focus()")
    page.wait(f"{SHOWN}.startsWith('das looks at: </s> 0.80')")
    page.press("ArrowRight")
    page.wait(f"{SHOWN}.startsWith('</s> looks at: </s> 0.40')")
    page.press("ArrowUp")
    page.wait(f"{SHOWN} === {HOSTILE!r} + ' is looked at by: </s> 0.30, das 0.10'")
    page.press("Escape")
    page.wait(f"{SHOWN}.includes('Point at a token')")


@pytest.mark.parametrize("width", [1000, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_looks_alike_everywhere(
    page: Page, attention: Path, scheme: str, width: int, pictures: Path
) -> None:
    page.open(attention, width=width, scheme=scheme)
    assert page.run("document.documentElement.scrollWidth") <= width
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert page.complaints == []
    assert set(page.fetched) == {attention.as_uri()}
    assert page.run("document.querySelectorAll('main b').length") == 0
    page.picture(pictures / f"attention_{scheme}_{width}.png", whole=True)


def test_outputs_side_by_side(
    page: Page, tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "old.fr": ["a red car .", f"no {HOSTILE}"],
        "new.fr": ["two red cars .", f"yes {HOSTILE}"],
        "reference.fr": ["two red cars .", f"no {HOSTILE}"],
        "source.de": ["zwei rote Autos .", "nein"],
    }
    for name, lines in files.items():
        write_lines(tmp_path / name, lines)
    old, new, reference, source = (str(tmp_path / name) for name in files)
    options = ["--reference", reference, "--source", source, "--tokenized", "--html"]
    main(["compare-outputs", old, new, *options])
    output = tmp_path / "page.html"
    output.write_text(capsys.readouterr().out, "utf-8")
    page.complaints.clear()
    for scheme in ("light", "dark"):
        page.open(output, width=400, scheme=scheme)
        assert page.run("document.documentElement.scrollWidth") <= 400
        page.picture(pictures / f"outputs_{scheme}.png", whole=True)
    assert page.complaints == []
    texts = "[...document.querySelectorAll('{} {}')].map(one => one.textContent)"
    assert page.run(texts.format("article:nth-of-type(1)", "del")) == ["a", "car"]
    assert page.run(texts.format("article:nth-of-type(1)", "ins")) == ["two", "cars"]
    assert page.run(texts.format("article:nth-of-type(2)", "ins")) == ["yes"]
    assert page.run("document.querySelectorAll('main b').length") == 0
