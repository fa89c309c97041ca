"""``convs2s translate``: what it writes for a line, for a line of several sentences, and when."""

import io
import json
import os
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scipy.linalg import block_diag

from convs2s.api.translator import Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.split_lines import join
from convs2s.decoding.streams import ArrivingBytes, ChunkTranslator, arriving
from convs2s.decoding.test_sets import time_decoding
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import text_lines, write_lines
from convs2s.scoring.n_best import read_n_best
from convs2s.scoring.tuned_settings import decoding_as_run
from tests.conftest import Terminal
from tests.support.refusals import refusal, rows, says

# ---- a line ----


def test_n_best_lists_and_json(run: Terminal, model: Path) -> None:
    asked = ("translate", model, "--beam", 4, "--n-best", 3)
    text = b"w1 w2\n\nw3\n"
    groups = list(read_n_best(run(*asked, text=text).splitlines(), "list"))
    assert [len(group) for group in groups] == [3, 1, 3]
    lines = run(*asked, "--json", text=text).splitlines()
    for number, (group, line) in enumerate(zip(groups, lines, strict=True)):
        for row, one in zip(group, json.loads(line)["n_best"], strict=True):
            assert (row.sentence, row.text) == (number, one["text"])
            assert row.score == pytest.approx(one["score"], abs=1e-6)
            length = len(one["tokens"]) + 1
            assert row.feature("Length") == length
            likelihood = pytest.approx(one["score"] * length, abs=1e-5)
            assert row.feature("LogLikelihood") == likelihood
    assert groups[0][0].score >= groups[0][1].score


def test_a_bar_in_a_text_is_no_separator(model: Path) -> None:
    """A single bar is a token of what comes tokenized."""
    for pretokenized, listed in ((False, "a &#124; b"), (True, "a | b")):
        translator = LineTranslator(
            [model], DecodingSettings(), "cpu", pretokenized=pretokenized
        )
        (translation,) = translator.translate(["w1"], n_best=1)
        forged = replace(translation, n_best=[replace(translation, text="a | b")])
        row = ChunkTranslator(translator, False, 1).lines(forged)
        assert row.split(" ||| ")[1] == listed


def test_what_auto_stands_for_is_said(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    auto = DecodingSettings(precision="auto", replace_unknown=False)
    translate = ChunkTranslator(LineTranslator([model], auto, "cpu"), True, None)
    assert capsys.readouterr().err == "precision: auto is int8 here\n"
    lines = tmp_path / "test.jsonl"
    lines.write_text(translate([(1, "a b c")]))
    stated = auto.model_dump(mode="json")
    assert decoding_as_run(stated, [], lines) == {**stated, "precision": "int8"}
    lines.write_text('{"line": 1}\n')
    message = refusal(decoding_as_run, stated, [], lines)
    says(message, "test.jsonl:1: not a translation by this program")


def test_a_timing_says_what_was_translated_and_on_what(
    model: Path, tmp_path: Path
) -> None:
    lines = ["w1 w2 w3", "", "w4 w5"]
    write_lines(tmp_path / "test.en", lines)
    translator = LineTranslator([model], DecodingSettings(batch_sentences=2), "cpu")
    output = tmp_path / "speed.json"
    time_decoding(
        translator,
        source=tmp_path / "test.en",
        output=output,
        device="cpu",
        threads=1,
        manifest={"processor": "a processor"},
    )
    said = json.loads(output.read_text("utf-8"))
    tokens = sum(len(one.tokens) + 1 for one in translator.translate(lines))
    assert (said["lines"], said["tokens"]) == (3, tokens)
    per_second = tokens / said["seconds"]["score"]
    assert said["tokens_per_second"] == pytest.approx(per_second)
    says(said["seconds"]["signature"], "a processor, 1 CPU threads, fp32, ", "up to 2")


# ---- a line of several sentences ----

FIRST, SECOND = "W1 w2 unheard w3.", "W4 w5 w6 unheard."
LINE = f"{FIRST}  {SECOND}"


def test_a_line_has_its_sentences_translations(sharp: Path) -> None:
    asked: Any = {"n_best": 2, "attention": True, "minimum_length": 2}
    translate: Any = partial(Translator.load(sharp, device="cpu").translate, **asked)
    one, two = translate([FIRST, SECOND])
    _, joined = translate(["", LINE], split_sentences=True)
    assert (joined.line, joined.source) == (2, LINE)
    for name in ("text", "text_before"):
        assert getattr(joined, name) == f"{getattr(one, name)} {getattr(two, name)}"
    for name in ("source_words", "source_tokens", "words", "words_before", "tokens"):
        assert getattr(joined, name) == getattr(one, name) + getattr(two, name)
    assert joined.score == pytest.approx(one.score + two.score)
    assert joined.n_best[1].source == LINE
    assert joined.n_best[1].text == f"{one.n_best[1].text} {two.n_best[1].text}"
    # Places count on.
    shifted = [len(one.source_tokens) + place for place in two.alignment]
    assert joined.alignment == one.alignment + shifted
    assert len(joined.replacements) == len(one.replacements) + len(two.replacements) > 0
    for row in joined.replacements:
        assert joined.words[row["position"]] == row["word"]
        assert joined.source_words[row["source_position"]] == row["source_word"]
    longer = replace(one, words=[*one.words, "more"], n_best=one.n_best[:1])
    both = join([longer, two], " ")
    # The last hypothesis stands for those that are missing.
    assert both.n_best[1].text == f"{one.n_best[0].text} {two.n_best[1].text}"
    last = both.replacements[-1]["position"]
    assert last == len(longer.words) + two.replacements[-1]["position"]
    assert joined.attention.source == one.attention.source + two.attention.source
    parts = (one.attention.weights, two.attention.weights)
    for layer, *blocks in zip(joined.attention.weights, *parts, strict=True):
        assert layer == pytest.approx(block_diag(*blocks), abs=1e-5)


def test_a_line_is_written_for_each_line(
    sharp: Path, run: Terminal, tmp_path: Path
) -> None:
    lines = [LINE, "", SECOND]
    found = Translator.load(sharp, device="cpu").translate(lines, split_sentences=True)
    expected = [one.text for one in found]
    write_lines(tmp_path / "in", lines)
    text = (tmp_path / "in").read_bytes()
    command = ("translate", sharp, "--device", "cpu", "--split-sentences")
    assert run(*command, text=text).splitlines() == expected
    by_two = ("--input", tmp_path / "in", "--workers", 2, "--quiet")
    assert run(*command, *by_two).splitlines() == expected


HINTS = r"""
A Mr. Smith sleeps.\nOne sleeps. She reads on.\nOne sleeps. She reads on. => => 2
The man sees a red car. She reads it. => => 1
Omul cite\u0219te. \u021ainta st\u0103 \u00een fa\u021b\u0103. => => 1
As Prof. Smith sleeps well, we do. => =>
At 3 km vs. 5 km. Yes. => =>
They go ... => =>
One sleeps. She reads on. => --quiet =>
One sleeps. She reads on. => --pretokenized =>
One sleeps. She reads on. => --split-sentences =>
"""


def test_without_the_option_the_command_says_so_once(
    sharp: Path, run: Terminal
) -> None:
    for text, options, line in rows(HINTS):
        said = io.StringIO()
        run.monkeypatch.setattr(sys, "stderr", said)
        run("translate", sharp, "--device", "cpu", *options.split(), text=text.encode())
        hints = re.findall(r"line (\d+) has several sentences", said.getvalue())
        assert "".join(hints) == line, text


# ---- a stream ----


def test_a_line_does_not_wait_for_the_next() -> None:
    reader, writer = os.pipe()
    stream = ArrivingBytes(os.fdopen(reader, "rb"))
    found = arriving(text_lines(stream.readline, "pipe"), stream.must_wait, 3)
    for written, arrived in (
        (b"one\n", [["one"]]),
        (b"two\nthree\nfo", [["two", "three"]]),
        (b"ur\n5\n6\n7\nlast", [["four", "5", "6"], ["7"]]),
    ):
        os.write(writer, written)
        assert [next(found) for _ in arrived] == arrived
    os.close(writer)
    assert list(found) == [["last"]]
