"""What is refused of networks: no attention where it is needed, weights of another one."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
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


def test_heads_of_a_transformer_share_its_width(root: Path) -> None:
    export_extensions(["examples/transformer.py"], root)
    given = {"kind": "transformer", "width": 256, "heads": 5}
    says(refusal(parse_architecture, given), "architecture.heads", "256", "5")


BIAS = "decoder.out_projection.bias"


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("other", np.zeros(1)),
        (BIAS, np.zeros(5)),
        (BIAS, np.zeros(6, np.int32)),
        (BIAS, np.full(6, np.inf)),
        (BIAS, None),
    ],
)
def test_weights_of_another_network_build_no_graph(
    name: str, array: npt.NDArray[np.generic] | None
) -> None:
    arrays = {name: one.numpy() for name, one in network().state_dict().items()}
    if array is None:
        del arrays[name]
    else:
        arrays[name] = array
    with pytest.raises(ValueError, match=name):
        OnnxEnsemble([Weights(arrays, architecture_of(), (TYPES, TYPES))], "fp32", "")
