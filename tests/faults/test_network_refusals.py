"""What is refused of networks: no attention where it is needed, weights of another one."""

from pathlib import Path
from typing import Any

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


def test_an_lstm_has_no_attention(recurrent: Path, model: Path) -> None:
    settings = DecodingSettings(replace_unknown=True)
    message = refusal(LineTranslator, [recurrent], settings, "cpu")
    says(message, str(recurrent), "no attention", "replace_unknown: false")
    LineTranslator([recurrent, model], settings, "cpu")
    says(refusal(attention_of, recurrent, Path(), 1), f"{recurrent}: has no attention")


def test_heads_of_a_transformer_share_its_width(root: Path) -> None:
    export_extensions(["examples/transformer.py"], root)
    given = {"kind": "transformer", "width": 256, "heads": 5}
    says(refusal(parse_architecture, given), "architecture.heads", "256", "5")


BIAS = "decoder.out_projection.bias"


def test_weights_of_another_network_build_no_graph() -> None:
    arrays = {name: one.numpy() for name, one in network().state_dict().items()}
    bias = arrays.pop(BIAS)
    odd: list[tuple[str, dict[str, npt.NDArray[Any]]]] = [
        ("other", {BIAS: bias, "other": bias}),
        (BIAS, {BIAS: bias[1:]}),
        (BIAS, {BIAS: bias.astype(np.int32)}),
        (BIAS, {BIAS: bias + np.inf}),
        (BIAS, {}),
    ]
    for name, given in odd:
        weights = Weights(arrays | given, architecture_of(), (TYPES, TYPES))
        with pytest.raises(ValueError, match=name):
            OnnxEnsemble([weights], "fp32", "")
