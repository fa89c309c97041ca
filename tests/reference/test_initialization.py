"""Initialization keeps the variance of activations: the paper's section 3.5, appendices A and B."""

from functools import partial

import pytest
import torch
import yaml
from torch import Tensor, nn

from convs2s.config.architecture import ConvS2SArchitecture, LstmArchitecture
from convs2s.models.convs2s import ConvS2S
from convs2s.models.layers import GatedConvolution, Linear
from convs2s.models.lstm import Lstm

ARCHITECTURE = yaml.safe_load("""
encoder: &stack
- {layers: 3, width: 128, kernel: 3}
- {layers: 1, width: 256, kernel: 3}
- {layers: 1, width: 256, kernel: 1}
decoder: *stack
embedding: 128
output_embedding: 128
positions: {maximum: 64}
""")
TYPES = 500
EMBEDDED = 0.1**2 + 0.1**2
"""Variance of a token's plus its position's embedding."""


def variance(x: Tensor) -> float:
    return float(x.square().mean())  # every mean is 0


def changes(model: ConvS2S) -> dict[str, float]:
    """Return what each layer does to the variance of its input as it was before dropout."""
    found = {}

    def record(
        name: str, _: nn.Module, arguments: tuple[Tensor], output: Tensor
    ) -> None:
        found[name] = variance(arguments[0]), variance(output)

    for name, module in model.named_modules():
        if isinstance(module, Linear | GatedConvolution | nn.Identity):
            module.register_forward_hook(partial(record, name))
    source, previous = torch.randint(1, TYPES, (2, 4, 40))
    with torch.no_grad():
        model.train()(source, previous)
    ratios = {}
    for name, (before, after) in found.items():
        if name.endswith("coder.in_projection"):
            before = EMBEDDED
        elif name.endswith(".convolution"):
            before = found[name.replace("convolution", "residual")][0]
        elif name == "decoder.output":
            before = found["decoder.out_projection"][1]
        ratios[name] = after / before
    return ratios


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_every_layer_keeps_the_variance(seed: int, dropout: float) -> None:
    stated = ARCHITECTURE | {"dropout": dropout}
    architecture = ConvS2SArchitecture.model_validate(stated)
    torch.manual_seed(seed)
    ratios = changes(ConvS2S(architecture, TYPES, TYPES))
    assert len(ratios) > 20
    assert ratios == pytest.approx(dict.fromkeys(ratios, 1.0), abs=0.25)


def test_every_parameter_of_the_lstm_is_drawn_uniformly() -> None:
    torch.manual_seed(1)
    architecture = LstmArchitecture(kind="lstm", layers=2, cells=64, embedding=32)
    for name, parameter in Lstm(architecture, 50, 60).named_parameters():
        values = parameter.detach()
        assert 0.07 < float(values.abs().max()) <= 0.08, name
        assert float(values.std()) == pytest.approx(0.08 / 3**0.5, rel=0.15), name
