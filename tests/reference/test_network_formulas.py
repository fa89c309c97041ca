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
from convs2s.models.ensemble import Ensemble, for_inference
from convs2s.models.network import Network
from tests.reference.plain_convs2s import ENCODER_STACK, PlainConvS2S, weights_of
from tests.reference.plain_lstm import Array, PlainLstm
from tests.reference.plain_rnn import PlainRnn
from tests.support.networks import (
    batch,
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
    return network(
        4,
        encoder=[
            {"layers": 1, "width": 8, "kernel": 2},
            {"layers": 1, "width": 6, "kernel": 4},
        ],
        kernels=(2, 3),
        attention=[2],
        positions={"target": False, "maximum": 30},
        vocabulary_selection={},
    )


def near(found: Tensor, expected: Tensor | Array) -> None:
    expected = torch.as_tensor(expected)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


@torch.no_grad()
def assert_steps_equal_full(model: Network) -> None:
    """Compare each step's logits, log-probabilities and mean attention, within 1e-9."""
    logits, attentions = model.eval()(SOURCE, READ)
    state = Ensemble([model]).start(SOURCE, 1)
    inference = for_inference(model, "fp32")
    decoding = inference.start(SOURCE, 1)
    for position in range(READ.shape[1]):
        tokens = READ[:, position : position + 1]
        features, _ = decoding.step(tokens)
        now = inference.output(features)[:, 0]
        torch.testing.assert_close(now, logits[:, position], atol=1e-9, rtol=0)
        predictions, attention = state.step(tokens)
        expected = logits[:, position].log_softmax(1)
        torch.testing.assert_close(predictions[:, 0], expected, atol=1e-9, rtol=0)
        assert (attention is not None) == bool(attentions) == model.attends
        if attention is not None:
            mean = torch.stack(attentions).mean(0)[:, position]
            torch.testing.assert_close(attention[:, 0], mean, atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    "make", [network, lambda: network(attention=[1, 3]), selecting]
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
    assert_steps_equal_full(model)


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
    assert_steps_equal_full(model)


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
    assert_steps_equal_full(model)


@pytest.mark.parametrize("model", [lstm(), rnn(), rnn(attention="luong")])
def test_gradients_of_recurrent_networks_are_finite_differences(
    model: Network,
) -> None:
    model.eval()
    parameters = tuple(model.parameters())

    def logits(*_: Tensor) -> Tensor:
        return model.features(SOURCE, READ)

    assert torch.autograd.gradcheck(logits, parameters, fast_mode=True)
