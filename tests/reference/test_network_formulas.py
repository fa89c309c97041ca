"""The networks against the papers' formulas, written anew and slowly beside this.

Logits, attention and gradients of training, and each step of decoding.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from convs2s.data.vocabulary import PADDING
from convs2s.models.network import Network
from tests.reference.plain_convs2s import ENCODER_STACK, PlainConvS2S
from tests.reference.plain_recurrent import PlainLstm, PlainRnn
from tests.support.networks import (
    assert_incremental_equals_full,
    batch,
    lstm,
    network,
    rnn,
)

SOURCE = batch(9, 1, 5)
READ = batch(5, 5, 5).roll(1, 1)
"""What the decoder reads: ``</s>`` and tokens."""


ROWS = [
    (row, sentence[sentence != PADDING], READ[row])
    for row, sentence in enumerate(SOURCE)
]
"""The place of each sentence, without its padding, and what the decoder reads."""


def near(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


# The last: an even kernel, no target positions, and a lookup table as output layer.
NETWORKS: list[dict[str, Any]] = [
    {},
    {"attention": (True, False, True)},
    {
        "kernels": (2, 4, 3),
        "attention": (False, True, False),
        "positions": {"target": False, "maximum": 30},
        "vocabulary_selection": {},
    },
]


@pytest.mark.parametrize("settings", NETWORKS)
def test_convs2s_computes_its_formulas(settings: dict[str, Any]) -> None:
    model = network(**settings).eval()
    plain = PlainConvS2S(model)
    logits, attentions = model(SOURCE, READ)
    upstream = torch.randn_like(logits)
    total = torch.zeros(())
    for row, words, previous in ROWS:
        expected, attended = plain.logits(words, previous)
        near(logits[row], expected)
        for mine, one in zip(attentions, attended, strict=True):
            near(mine[row, :, : one.shape[1]], one)
        total = total + (expected * upstream[row]).sum()
    gradients = torch.autograd.grad((logits * upstream).sum(), [*model.parameters()])
    by_formulas = torch.autograd.grad(total, [*plain.weights.values()])
    # The default scaling divides the gradients of the encoder's stack (section 3.5).
    for name, mine, one in zip(plain.weights, gradients, by_formulas, strict=True):
        divisor = len(attentions) if name.startswith(ENCODER_STACK) else 1
        near(mine, one / divisor)
    assert_incremental_equals_full(model, SOURCE, READ)


@pytest.mark.parametrize("reverse_source", [True, False])
def test_the_lstm_computes_its_formulas(reverse_source: bool) -> None:
    model = lstm(layers=3, reverse_source=reverse_source).eval()
    plain = PlainLstm(model.state_dict())
    logits, _ = model(SOURCE, READ)
    states = model.encode(SOURCE)
    for row, words, previous in ROWS:
        expected = plain.states(words, reverse_source)
        for mine, of_layer in zip(states, expected, strict=True):
            near(torch.stack(mine)[:, 0, row], torch.stack(of_layer))
        near(logits[row], plain.logits(expected, previous))
    assert_incremental_equals_full(model, SOURCE, READ)


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_recurrent_network_with_attention_computes_its_formulas(
    cell: str, attention: str
) -> None:
    model = rnn(cell, attention, layers=2).eval()
    plain = PlainRnn(model.state_dict())
    logits, (attended,) = model(SOURCE, READ)
    for row, words, previous in ROWS:
        expected, weighted = plain.run(words, previous, attention)
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
    assert torch.autograd.gradcheck(
        lambda *_: model.features(SOURCE, READ), parameters, fast_mode=True
    )
