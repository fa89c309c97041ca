"""A line of several sentences: what its translation is, and what the command says of it."""

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from convs2s.api.translator import Translator
from convs2s.cli.main import main
from convs2s.decoding.split_lines import join
from convs2s.errors import UserError
from tests.unit.conftest import Terminal

FIRST, SECOND = "W1 w2 unheard w3.", "W4 w5 w6 unheard."
LINE = f"{FIRST}  {SECOND}"


@pytest.fixture(scope="module")
def translator(sharp: Path) -> Translator:
    return Translator.load(sharp, device="cpu")


def test_a_line_has_its_sentences_translations(translator: Translator) -> None:
    wanted = {"n_best": 2, "attention": True, "beam": 3, "minimum_length": 2}
    one, two = translator.translate([FIRST, SECOND], **wanted)  # type: ignore[arg-type]
    empty, joined = translator.translate(["", LINE], split_sentences=True, **wanted)  # type: ignore[arg-type]
    assert (empty.text, empty.line, joined.line, joined.source) == ("", 1, 2, LINE)
    assert joined.text == f"{one.text} {two.text}"
    assert joined.text_before == f"{one.text_before} {two.text_before}"
    for name in ("source_words", "source_tokens", "words", "words_before", "tokens"):
        assert getattr(joined, name) == getattr(one, name) + getattr(two, name)
    assert {best.source for best in joined.n_best} == {LINE}
    assert joined.score == pytest.approx(one.score + two.score)
    assert [best.text for best in joined.n_best] == [
        f"{left.text} {right.text}"
        for left, right in zip(one.n_best, two.n_best, strict=True)
    ]
    assert one.attention
    assert two.attention
    assert joined.attention
    assert joined.attention.source == one.attention.source + two.attention.source
    rows, columns = one.attention.weights.shape[1:]
    weights = joined.attention.weights
    assert weights[:, :rows, :columns] == pytest.approx(one.attention.weights, abs=1e-5)
    assert weights[:, rows:, columns:] == pytest.approx(two.attention.weights, abs=1e-5)
    assert weights.sum(2) == pytest.approx(np.ones(weights.shape[:2]), abs=1e-5)


def test_places_count_on(translator: Translator) -> None:
    (joined,) = translator.translate([LINE], split_sentences=True)
    one, two = translator.translate([FIRST, SECOND])
    assert one.alignment is not None
    assert two.alignment is not None
    shifted = [len(one.source_tokens) + place for place in two.alignment]
    assert joined.alignment == one.alignment + shifted
    assert len(joined.replacements) == len(one.replacements) + len(two.replacements) > 0
    for row in joined.replacements:
        assert joined.words[row["position"]] == row["word"]
        assert joined.source_words[row["source_position"]] == row["source_word"]
    # A place is that of <unk>; a copied piece such as lo@@ joins the next word, which takes one.
    longer = replace(one, words_before=[*one.words_before, "more"])
    places = [row["position"] for row in join([longer, two], " ").replacements]
    first, second = (
        [row["position"] for row in part.replacements] for part in (one, two)
    )
    assert places == first + [len(longer.words_before) + place for place in second]


def test_the_api_refuses_tokens(sharp: Path) -> None:
    translator = Translator.load(sharp, device="cpu", pretokenized=True)
    with pytest.raises(UserError, match="split_sentences: splits raw text"):
        translator.translate(["w1 w2"], split_sentences=True)


def test_the_command_writes_a_line_for_each_line(
    sharp: Path, translator: Translator, run: Terminal, tmp_path: Path
) -> None:
    text = f"{LINE}\n\n{FIRST}\n".encode()
    expected = [
        one.text
        for one in translator.translate([LINE, "", FIRST], split_sentences=True)
    ]
    options = ("translate", sharp, "--device", "cpu", "--split-sentences")
    assert run(*options, text=text).splitlines() == expected
    rows = [json.loads(row) for row in run(*options, "--json", text=text).splitlines()]
    assert [(row["line"], row["source"]) for row in rows] == [
        (1, LINE),
        (2, ""),
        (3, FIRST),
    ]
    source = tmp_path / "source.txt"
    source.write_bytes(text)
    assert (
        run(*options, "--input", source, "--workers", 2, "--quiet").splitlines()
        == expected
    )


def test_without_it_the_command_says_so_once(
    sharp: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(text: str, *options: str) -> list[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        main(["translate", str(sharp), "--device", "cpu", *options])
        return [
            line for line in capsys.readouterr().err.splitlines() if "sentence" in line
        ]

    one, several = "A Mr. Smith sleeps.\n", "One sleeps here. She reads on.\n"
    (hint,) = said(one + several * 3)
    assert hint.startswith(
        "line 2 has several sentences, translated as one: --split-sentences "
    )
    for other in (
        "The man sees a red car. She reads it.",
        "Omul citește. Ținta stă în față.",
    ):
        assert len(said(other)) == 1
    for single in (
        "As Prof. Smith sleeps well, we do.",
        "At 3 km vs. 5 km. Yes.",
        "They go ...",
    ):
        assert said(single) == []
    assert (
        said(one) == said(several, "--quiet") == said(several, "--pretokenized") == []
    )
    assert said(several, "--split-sentences") == []


@pytest.mark.parametrize("options", [("--pretokenized",), ("--n-best", 2)])
def test_what_does_not_go_together(
    sharp: Path, run: Terminal, options: tuple[object, ...]
) -> None:
    with pytest.raises(
        SystemExit, match="--pretokenized; with --n-best it needs --json"
    ):
        run("translate", sharp, "--split-sentences", *options, text=b"w1\n")


def test_what_the_page_says_runs(
    sharp: Path, root: Path, run: Terminal, tmp_path: Path
) -> None:
    page = (root / "docs/translating.md").read_text("utf-8")
    (text, command) = re.findall(
        r'^    echo "(.*)" \| convs2s (.*--split-sentences)$', page, re.M
    )[0]
    (tmp_path / "model.safetensors").write_bytes(sharp.read_bytes())
    run.monkeypatch.chdir(tmp_path)
    translator = Translator.load(sharp, device="cpu")
    (found,) = translator.translate([text], split_sentences=True)
    assert run(*command.split(), text=f"{text}\n".encode()) == f"{found.text}\n"
    assert len(found.source_words) == 12
