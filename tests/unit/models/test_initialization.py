"""Initialization keeps the variance of activations: the paper's section 3.5, appendices A and B."""

import re
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from convs2s.models.convs2s import ConvS2S
from convs2s.models.kernels.dropout import dropout as drop
from convs2s.models.layers import Embedding, GatedConvolution, Linear
from tests.support.networks import convs2s

DRAWS = range(5)
DROPOUT = 0.3
WIDTH, TYPES = 128, 500
BLOCKS = ((WIDTH, 3),) * 3 + ((2 * WIDTH, 3), (2 * WIDTH, 1))
FOLLOWING = [
    *(f"blocks.{block}.residual" for block in range(1, len(BLOCKS))),
    "out_projection",
]
"""What takes each block's output."""
EMBEDDED = 0.1**2 + 0.1**2
"""Variance of a token's plus its position's embedding."""


def network(seed: int, dropout: float) -> ConvS2S:
    architecture = convs2s(
        BLOCKS,
        BLOCKS,
        embedding=WIDTH,
        output_embedding=WIDTH,
        positions={"maximum": 64},
        dropout=dropout,
        gradient_scaling="paper",
    )
    torch.manual_seed(seed)
    return ConvS2S(architecture, TYPES, TYPES)


def variance(x: Tensor) -> float:
    return float(x.square().mean())  # every mean is 0


def measured(model: ConvS2S) -> dict[str, tuple[float, float]]:
    """Return the variance of the input and output of each layer and identity in training."""
    found = {}

    def record(
        name: str, _: nn.Module, arguments: tuple[Tensor, ...], output: Tensor
    ) -> None:
        found[name] = variance(arguments[0]), variance(output)

    for name, module in model.named_modules():
        if isinstance(module, Linear | GatedConvolution | nn.Identity):
            module.register_forward_hook(partial(record, name))
    source, previous = torch.randint(1, TYPES, (2, 4, 40))
    with torch.no_grad():
        model.train()(source, previous)
    return found


def changes(model: ConvS2S) -> dict[str, float]:
    """Return what each layer does to the variance of its input as it was before dropout.

    Also, under ``encoder.blocks.N``, what the encoder's blocks up to N do together (equation 17),
    and under ``decoder.blocks.N`` what block N does with its attention.
    """
    found = measured(model)
    ratios = {}
    for name, (before, after) in found.items():
        if name.endswith("coder.in_projection"):
            before = EMBEDDED
        elif name.endswith(".convolution"):
            before = found[name.replace("convolution", "residual")][0]
        elif name == "decoder.output":
            before = found["decoder.out_projection"][1]
        ratios[name] = after / before
    for block, following in enumerate(FOLLOWING):
        ratios[f"encoder.blocks.{block}"] = found[f"encoder.{following}"][0] / EMBEDDED
        entered = found[f"decoder.blocks.{block}.residual"][0]
        ratios[f"decoder.blocks.{block}"] = found[f"decoder.{following}"][0] / entered
    return ratios


def outside(model: ConvS2S) -> set[str]:
    """Return the layers that do not keep the variance within 25%."""
    return {name for name, ratio in changes(model).items() if abs(ratio - 1.0) > 0.25}


@pytest.mark.parametrize("dropout", [0.0, DROPOUT])
def test_every_block_keeps_the_variance(dropout: float) -> None:
    for seed in DRAWS:
        assert outside(network(seed, dropout)) == set(), seed


@pytest.mark.parametrize("factor", [2.0**0.5, 0.5**0.5])
@pytest.mark.parametrize(
    "layer",
    [
        r"encoder\.in_projection",
        r"encoder\.out_projection",
        r"encoder\.blocks\.1\.convolution",
        r"encoder\.blocks\.3\.residual",
        r"decoder\.in_projection",
        r"decoder\.out_projection",
        r"decoder\.output",
        r"decoder\.blocks\.\d\.convolution",
        r"decoder\.blocks\.\d\.attention\.in_projection",
        r"decoder\.blocks\.\d\.attention\.out_projection",
    ],
)
def test_a_wrong_gain_is_found(layer: str, factor: float) -> None:
    model = network(0, DROPOUT)
    wrong = set()
    for name, module in model.named_modules():
        if re.fullmatch(layer, name):
            assert isinstance(module, Linear | GatedConvolution)
            module.weight_g.data.mul_(factor)
            wrong.add(name)
    assert wrong
    assert {name for name in outside(model) if not name[-1].isdigit()} == wrong


def test_weights_that_ignore_dropout_are_found() -> None:
    model, without = network(0, DROPOUT), network(0, 0.0)
    model.load_state_dict(without.state_dict())
    after_dropout = {
        name
        for name in changes(model)
        if name.endswith((".convolution", "coder.in_projection", "decoder.output"))
    }
    assert after_dropout <= outside(model)


@pytest.mark.parametrize("dropout", [0.0, DROPOUT])
def test_a_convolution_keeps_the_variance_of_gradients(dropout: float) -> None:
    torch.manual_seed(0)
    layer = GatedConvolution(WIDTH, WIDTH, 3, keep_prob=1.0 - dropout)
    x = (torch.randn(8, 44, WIDTH) * EMBEDDED**0.5).requires_grad_()
    output = layer(drop(x, dropout, training=True), 1)
    gradient = torch.randn_like(output) * 0.001
    output.backward(gradient)
    assert x.grad is not None
    inner = x.grad[:, 2:-2]  # every one of them is in three windows
    assert variance(inner) == pytest.approx(variance(gradient), rel=0.25)


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_dropout_divides_the_variance_by_what_it_retains(dropout: float) -> None:
    torch.manual_seed(0)
    embedding = Embedding(2000, 256, None, dropout)
    tokens = torch.arange(2000).view(1, -1)
    with torch.no_grad():
        kept, dropped = embedding.eval()(tokens), embedding.train()(tokens)
    assert variance(dropped) == pytest.approx(
        variance(kept) / (1.0 - dropout), rel=0.02
    )
    # E[r] = 1.
    assert float((dropped * kept).mean()) == pytest.approx(variance(kept), rel=0.02)
