"""One sentence's attention: of which model and sentence, in which layers, and the figure."""

import json
from pathlib import Path

import numpy as np
import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END
from convs2s.decoding.inspection import attention_of, attention_reader, layer_attention
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.model_file import load_model
from convs2s.paper.attention import attend_to_example, sentence_of
from convs2s.paper.attention_maps import read_example

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


def test_onnx_runtime_attends_as_torch_does(sharp: Path) -> None:
    network, _ = load_model(sharp)
    read = attention_reader(sharp)
    assert read is not None
    sentences = [4, 5, 6, 3, END], [5, 5, 4, END]
    np.testing.assert_allclose(
        read(*sentences), layer_attention(network, *sentences), atol=1e-5
    )


def test_the_attention_is_that_of_the_decoded_line(model: Path, tmp_path: Path) -> None:
    written = attend(model, tmp_path / "example.json")
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
