"""One sentence's attention: of which model and sentence, in which layers, and the figure."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.inspection import attention_of
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import write_json, write_lines
from convs2s.paper import attention_maps
from convs2s.paper.attention import attend_to_example, sentence_of
from convs2s.paper.attention_maps import (
    ExampleAttention,
    plot_example,
    read_example,
)
from convs2s.paper.charts import PANEL_WIDTH
from convs2s.paper.ledger import RunScore
from tests.support.documents import svg_texts

HEADER = {"task": "tiny", "model": "tiny", "run": "seed1", "scale": "demo"}
SENTENCE = "w1 w2 w3"


def attend(model: Path, output: Path) -> Path:
    attend_to_example(
        model=model,
        sentence=SENTENCE,
        settings=DecodingSettings(),
        header=HEADER,
        stand_in="a test's",
        output=output,
        manifest={"processor": "a processor"},
    )
    return output


def test_the_attention_is_that_of_the_decoded_line(model: Path, tmp_path: Path) -> None:
    torch.set_num_threads(2)
    written = attend(model, tmp_path / "example.json")
    assert torch.get_num_threads() == 1  # the one core that its rule asks for
    found = read_example(written)
    (translation,) = LineTranslator([model], DecodingSettings(), "cpu").translate(
        [SENTENCE]
    )
    write_lines(tmp_path / "test.jsonl", [json.dumps(translation.as_json())])
    expected = attention_of(model, tmp_path / "test.jsonl", 1)
    with pytest.raises(
        UserError, match=r"test\.jsonl: has 1 lines, so there is no sentence 0; "
    ):
        attention_of(model, tmp_path / "test.jsonl", 0)
    assert np.array(found.weights) == pytest.approx(expected.weights, abs=1e-4)
    assert (found.source_tokens, found.target_tokens) == (
        expected.source,
        expected.target,
    )
    assert found.translation == translation.text
    assert found.layers.score == len(expected.weights) > 1
    lengths = f"3 tokens of source and {len(translation.tokens)} of translation"
    assert found.layers.signature == f"{lengths}, tiny seed1"
    assert json.loads(written.read_text("utf-8"))["manifest"] == {
        "processor": "a processor"
    }


def test_a_line_of_a_test_set_stands_in_for_the_sentence(tmp_path: Path) -> None:
    text = tmp_path / "test.en"
    write_lines(text, ["w3", SENTENCE])
    assert (
        sentence_of(None, str(text), 2) == sentence_of(SENTENCE, "", None) == SENTENCE
    )
    with pytest.raises(UserError, match=r"example_line is 3, but .*test\.en has fewer"):
        sentence_of(None, str(text), 3)


def test_the_figure_has_a_map_for_each_layer(model: Path, tmp_path: Path) -> None:
    example = attend(model, tmp_path / "example.json")
    outputs = [tmp_path / "figure3.svg", tmp_path / "figure3.pdf"]
    plot_example(example=example, outputs=outputs)
    assert outputs[1].read_bytes().startswith(b"%PDF")
    texts, found = svg_texts(outputs[0]), read_example(example)
    assert found.layers.score == len(found.weights) > 0
    maps = {f"layer {number}" for number, _ in enumerate(found.weights, start=1)}
    assert maps | {"source", "target", "attention (share)"} <= texts
    assert {*found.source_tokens, *found.target_tokens} <= texts
    assert "STAND-IN DATA: a test's" in texts


def test_two_maps_side_by_side_are_as_large_as_a_column_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(
        attention_maps, "save_figure", lambda panels, *_, **__: drawn.extend(panels)
    )
    shown = ExampleAttention(
        **HEADER,
        stand_in=None,
        source="a b",
        source_tokens=["a", "b"],
        translation="c d e f g h i",
        target_tokens=list("cdefghi"),
        layers=RunScore(1, ""),
        weights=np.full((1, 7, 2), 0.5).tolist(),
    )
    write_json(tmp_path / "example.json", asdict(shown))
    plot_example(example=tmp_path / "example.json", outputs=[])
    step = drawn[0]["width"]["step"]
    assert 2 * 7 * step <= PANEL_WIDTH < 2 * 7 * (step + 1)
