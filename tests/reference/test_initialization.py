"""Parameters are drawn as the papers say: in section 3.5, and Sutskever et al. in section 3.4."""

from typing import Any

import pytest
import torch

from convs2s.config.architecture import LstmArchitecture
from convs2s.models.convs2s import ConvS2S
from convs2s.models.lstm import Lstm
from tests.support.networks import convs2s

BLOCKS = ((128, 3), (256, 3), (256, 1))
DROPOUT = 0.3
AFTER_DROPOUT = ("encoder.in_projection", "decoder.in_projection", "decoder.output")


@pytest.mark.parametrize("others", [{}, {"vocabulary_selection": {}}])
def test_convs2s_keeps_the_variance_of_activations(others: dict[str, Any]) -> None:
    """A weight of n inputs has the variance 1/n, 4/n before a gate, and less after dropout.

    Lookup tables have 0.01, that of the output layer among them.
    """
    sizes = {"embedding": 128, "output_embedding": 128, "positions": {"maximum": 500}}
    torch.manual_seed(0)
    architecture = convs2s(BLOCKS, BLOCKS, **sizes, dropout=DROPOUT, **others)
    model = ConvS2S(architecture, 500, 500)
    for name, parameter in model.named_parameters():
        layer, _, kind = name.rpartition(".")
        if kind == "weight_v":
            expected = 1 / parameter[0].numel()
            if layer.endswith(".convolution"):
                expected *= 4 * (1 - DROPOUT)
            elif layer in AFTER_DROPOUT:
                expected *= 1 - DROPOUT
            length = model.get_parameter(f"{layer}.weight_g").flatten()
            torch.testing.assert_close(length, parameter.flatten(1).norm(dim=1))
        elif kind in ("tokens", "positions", "table"):
            expected = 0.01
        else:
            continue
        variance = float(parameter.detach().var())
        assert variance == pytest.approx(expected, rel=0.2), name


def test_every_parameter_of_the_lstm_is_drawn_uniformly() -> None:
    torch.manual_seed(1)
    architecture = LstmArchitecture(kind="lstm", layers=2, cells=64, embedding=32)
    for name, parameter in Lstm(architecture, 50, 60).named_parameters():
        values = parameter.detach()
        assert 0.07 < float(values.abs().max()) <= 0.08, name
        assert float(values.std()) == pytest.approx(0.08 / 3**0.5, rel=0.15), name
