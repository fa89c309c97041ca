"""What is refused of networks: no attention where it is needed, weights of another one."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.config.architecture import parse_architecture
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import export_extensions
from convs2s.decoding.inspection import attention_of
from convs2s.decoding.translate import LineTranslator
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from tests.support.networks import TYPES, architecture_of, network
from tests.support.refusals import refusal, says


def test_an_lstm_has_no_attention(recurrent: Path, model: Path, tmp_path: Path) -> None:
    settings = DecodingSettings(replace_unknown=True)
    message = refusal(LineTranslator, [recurrent], settings, "cpu")
    says(message, str(recurrent), "no attention", "replace_unknown: false")
    LineTranslator([recurrent, model], settings, "cpu")
    message = refusal(attention_of, recurrent, tmp_path / "none.jsonl", 1)
    says(message, str(recurrent), "no attention")


def test_an_lstm_reads_any_number_of_words(recurrent: Path) -> None:
    settings = DecodingSettings(beam=2, replace_unknown=False)
    translator = LineTranslator([recurrent], settings, "cpu")
    (translation,) = translator.translate([" ".join(["w1"] * 40)])
    assert len(translation.source_tokens) == 40


def test_heads_of_a_transformer_share_its_width(root: Path) -> None:
    export_extensions(["examples/transformer.py"], root)
    given = {"kind": "transformer", "width": 256, "heads": 5}
    says(refusal(parse_architecture, given), "architecture.heads", "256", "5")


@pytest.mark.parametrize("damage", ["lacks", "has", "shape", "type", "infinite"])
def test_weights_of_another_network_build_no_graph(damage: str) -> None:
    state = network().float().state_dict()
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    name = "decoder.out_projection.bias"
    array = arrays.pop(name)
    changed = {
        "lacks": {},
        "has": {name: array, "other": array},
        "shape": {name: array[1:]},
        "type": {name: array.astype(np.int32)},
        "infinite": {name: array + np.inf},
    }[damage]
    weights = Weights({**arrays, **changed}, architecture_of(), (TYPES, TYPES))
    with pytest.raises(ValueError, match="other" if damage == "has" else name):
        OnnxEnsemble([weights], "fp32", "probabilities")
