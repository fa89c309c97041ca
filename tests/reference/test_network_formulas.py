"""The networks against the papers' formulas, written anew and slowly beside this.

Logits, attention and gradients of training, and each step of decoding.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.data.vocabulary import PADDING
from convs2s.models.convs2s import ConvS2S
from convs2s.models.network import Network
from tests.reference.plain_convs2s import ENCODER_STACK, PlainConvS2S, weights_of
from tests.reference.plain_lstm import Array, PlainLstm
from tests.reference.plain_rnn import PlainRnn
from tests.support.networks import (
    TYPES,
    assert_incremental_equals_full,
    batch,
    convs2s,
    lstm,
    network,
    rnn,
)

SOURCE = batch(9, 1, 5)
READ = batch(5, 5, 5).roll(1, 1)
"""What the decoder reads: ``</s>`` and tokens."""


def unpadded(row: Tensor) -> Tensor:
    return row[row != PADDING]


def selecting() -> ConvS2S:
    """Even kernels, no target positions, and a lookup table as output layer."""
    architecture = convs2s(
        ((8, 2), (6, 4)),
        ((8, 2), (8, 3)),
        embedding=10,
        output_embedding=6,
        attention=[2],
        positions={"target": False, "maximum": 30},
        vocabulary_selection={},
    )
    torch.manual_seed(4)
    model = ConvS2S(architecture, TYPES, TYPES).double()
    for parameter in model.parameters():
        parameter.data.mul_(2.0)
    return model


def near(found: Tensor, expected: Tensor | Array) -> None:
    expected = torch.as_tensor(expected)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    "make", [network, lambda: network(attention=(True, False, True)), selecting]
)
def test_convs2s_computes_its_formulas(make: Callable[[], ConvS2S]) -> None:
    model = make().eval()
    weights = weights_of(model)
    plain = PlainConvS2S(weights)
    logits, attentions = model(SOURCE, READ)
    upstream = torch.randn_like(logits)
    (logits * upstream).sum().backward()
    for row, sentence in enumerate(SOURCE):
        expected, attended = plain.logits(unpadded(sentence), READ[row])
        near(logits[row], expected)
        for mine, one in zip(attentions, attended, strict=True):
            near(mine[row, :, : one.shape[1]], one)
        (expected * upstream[row]).sum().backward()
    # The default scaling divides the gradients of the encoder's stack (section 3.5).
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        gradient = weights[name].grad
        assert gradient is not None
        divisor = len(attentions) if name.startswith(ENCODER_STACK) else 1
        near(parameter.grad, gradient / divisor)
    assert_incremental_equals_full(model, SOURCE, READ)


@pytest.mark.parametrize("reverse_source", [True, False])
def test_the_lstm_computes_its_formulas(reverse_source: bool) -> None:
    model = lstm(layers=3, reverse_source=reverse_source).eval()
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    plain = PlainLstm(weights, reverse_source)
    logits, _ = model(SOURCE, READ)
    states = model.encode(SOURCE)
    for row, sentence in enumerate(SOURCE):
        words = unpadded(sentence).tolist()
        near(logits[row], plain.logits(words, READ[row].tolist()))
        for mine, expected in zip(states, plain.states(words), strict=True):
            near(torch.stack(mine)[:, 0, row], np.stack(expected))
    assert_incremental_equals_full(model, SOURCE, READ)


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_recurrent_network_with_attention_computes_its_formulas(
    cell: str, attention: str
) -> None:
    model = rnn(cell, attention, layers=2).eval()
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    plain = PlainRnn(weights, cell, attention)
    logits, (attended,) = model(SOURCE, READ)
    for row, sentence in enumerate(SOURCE):
        words = unpadded(sentence).tolist()
        expected, weighted = plain.run(words, READ[row].tolist())
        near(logits[row], expected)
        near(attended[row, :, : len(words)], weighted)
        assert not attended[row, :, len(words) :].any()
    assert_incremental_equals_full(model, SOURCE, READ)


@pytest.mark.parametrize("model", [lstm(), rnn(), rnn(attention="luong")])
def test_gradients_of_recurrent_networks_are_finite_differences(
    model: Network,
) -> None:
    model.eval()
    parameters = tuple(model.parameters())

    def logits(*_: Tensor) -> Tensor:
        return model.features(SOURCE, READ)

    assert torch.autograd.gradcheck(logits, parameters, fast_mode=True)
