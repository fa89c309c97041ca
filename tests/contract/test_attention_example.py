"""One sentence's attention: of which model and sentence, in which layers, and the figure."""

import json
from pathlib import Path

import numpy as np
import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END
from convs2s.decoding.inspection import attention_of, attention_reader, layer_attention
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import write_lines
from convs2s.model_file import load_model
from convs2s.paper.attention import attend_to_example, sentence_of
from convs2s.paper.attention_maps import read_example
from tests.support.refusals import refuses

SENTENCE = "w1 w2 w3"


def test_onnx_runtime_attends_as_torch_does(sharp: Path) -> None:
    network, _ = load_model(sharp)
    read = attention_reader(sharp)
    assert read is not None
    sentences = [4, 5, 6, 3, END], [5, 5, 4, END]
    found = read(*sentences)
    np.testing.assert_allclose(found, layer_attention(network, *sentences), atol=1e-5)


def test_the_attention_is_that_of_the_decoded_line(model: Path, tmp_path: Path) -> None:
    search = DecodingSettings()
    output, lines = tmp_path / "example.json", tmp_path / "test.jsonl"
    attend_to_example(
        model=model,
        sentence=SENTENCE,
        settings=search,
        header={"task": "tiny", "model": "tiny", "run": "seed1", "scale": "demo"},
        stand_in="a test's",
        output=output,
        manifest={"processor": "a processor"},
    )
    found = read_example(output)
    (line,) = LineTranslator([model], search, "cpu").translate([SENTENCE])
    write_lines(lines, [json.dumps(line.as_json())])
    expected = attention_of(model, lines, 1)
    assert np.array(found.weights) == pytest.approx(expected.weights, abs=1e-4)
    assert found.source_tokens == expected.source
    assert found.target_tokens == expected.target
    assert found.translation == line.text
    assert found.layers.score == len(expected.weights) > 1
    assert found.layers.signature == (
        f"3 tokens of source and {len(line.tokens)} of translation, tiny seed1"
    )
    assert '"processor": "a processor"' in output.read_text("utf-8")
    refuses("test.jsonl ... no sentence 0", attention_of, model, lines, 0)


def test_a_line_of_a_test_set_stands_in_for_the_sentence(tmp_path: Path) -> None:
    text = tmp_path / "test.en"
    write_lines(text, ["w3", SENTENCE])
    assert sentence_of(None, str(text), 2) == SENTENCE
    assert sentence_of(SENTENCE, "", None) == SENTENCE
    refuses("example_line is 3 ... test.en", sentence_of, None, str(text), 3)
