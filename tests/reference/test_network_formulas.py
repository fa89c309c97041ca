"""The networks against the papers' formulas, written anew and slowly beside this.

Logits, attention and gradients of training; that each step of decoding is the same,
``invariants/test_decoding.py`` tests.
"""

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.data.vocabulary import PADDING
from convs2s.models.convs2s import ConvS2S
from convs2s.models.network import Network
from tests.reference.plain_convs2s import ENCODER_STACK, PlainConvS2S, weights_of
from tests.reference.plain_recurrent import Array, PlainLstm, PlainRnn
from tests.support.networks import batch, lstm, network, rnn

SOURCE = batch(9, 1, 5)
READ = batch(5, 5, 5).roll(1, 1)
"""What the decoder reads: ``</s>`` and tokens."""


def unpadded(row: Tensor) -> Tensor:
    return row[row != PADDING]


CONVS2S = [
    network(),
    network(attention=[1, 3]),
    # Even kernels, no target positions, and a lookup table as output layer.
    network(
        4,
        encoder=[
            {"layers": 1, "width": 8, "kernel": 2},
            {"layers": 1, "width": 6, "kernel": 4},
        ],
        kernels=(2, 3),
        attention=[2],
        positions={"target": False, "maximum": 30},
        vocabulary_selection={},
    ),
]


def near(found: Tensor, expected: Tensor | Array) -> None:
    expected = torch.as_tensor(expected)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("model", CONVS2S)
def test_convs2s_computes_its_formulas(model: ConvS2S) -> None:
    model.eval()
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


@pytest.mark.parametrize("model", [lstm(), rnn(), rnn(attention="luong")])
def test_gradients_of_recurrent_networks_are_finite_differences(
    model: Network,
) -> None:
    model.eval()
    parameters = tuple(model.parameters())

    def logits(*_: Tensor) -> Tensor:
        return model.features(SOURCE, READ)

    assert torch.autograd.gradcheck(logits, parameters, fast_mode=True)
