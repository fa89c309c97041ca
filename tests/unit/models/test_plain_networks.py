"""The networks against the papers' formulas, written anew and slowly in tests/support.

Training's path, decoding's path and the gradients: what both paths share is checked by nothing else
of this package.
"""

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.data.vocabulary import END, PADDING
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import for_inference
from convs2s.models.lstm import Lstm
from convs2s.models.network import Network
from tests.support.networks import TYPES, batch, convs2s, lstm, network
from tests.support.plain_convs2s import PlainConvS2S
from tests.support.plain_lstm import PlainLstm

LENGTHS = (9, 1, 5)
TOKENS = 6


def previous(rows: int) -> Tensor:
    """What the decoder reads: ``</s>`` and tokens."""
    read = batch(*[TOKENS] * rows)[:, :TOKENS]
    read[:, 0] = END
    return read


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


NETWORKS = {
    "all attend": network,
    "some attend": lambda: network(attention=(True, False, True)),
    "selecting": selecting,
}


def incremental(
    model: Network, source: Tensor, read: Tensor
) -> list[tuple[Tensor, Tensor | None]]:
    """Return logits (B, n, V) and attention of decoding's path, step by step."""
    inference = for_inference(model, "fp32")
    state = inference.start(source, 1)
    steps = [state.step(read[:, place : place + 1]) for place in range(read.shape[1])]
    return [
        (inference.output(features)[:, 0], attention) for features, attention in steps
    ]


@pytest.mark.parametrize("name", NETWORKS)
def test_convs2s_is_the_papers_formulas_in_training_and_decoding(name: str) -> None:
    model, source, read = (
        NETWORKS[name]().eval(),
        batch(*LENGTHS),
        previous(len(LENGTHS)),
    )
    with torch.no_grad():
        logits, attentions = model(source, read)
        steps = incremental(model, source, read)
        plain = PlainConvS2S(model.state_dict())
        for row, sentence in enumerate(source):
            expected, attended = plain.logits(unpadded(sentence), read[row])
            torch.testing.assert_close(logits[row], expected, atol=1e-10, rtol=0)
            assert len(attentions) == len(attended)
            mean = torch.stack(attended).mean(0)
            for mine, one in zip(attentions, attended, strict=True):
                torch.testing.assert_close(
                    mine[row, :, : one.shape[1]], one, atol=1e-10, rtol=0
                )
            for place, (now, attention) in enumerate(steps):
                torch.testing.assert_close(
                    now[row], expected[place], atol=1e-10, rtol=0
                )
                assert attention is not None
                found = attention[row, 0, : mean.shape[1]]
                torch.testing.assert_close(found, mean[place], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", NETWORKS)
def test_convs2s_has_the_gradients_of_the_formulas(name: str) -> None:
    model, source, read = (
        NETWORKS[name]().eval(),
        batch(*LENGTHS),
        previous(len(LENGTHS)),
    )
    weights = {
        k: v.detach().clone().requires_grad_() for k, v in model.named_parameters()
    }
    upstream = torch.randn(
        len(LENGTHS), TOKENS, TYPES, generator=torch.Generator().manual_seed(1)
    ).double()
    (model(source, read)[0] * upstream).sum().backward()
    plain = PlainConvS2S(weights)
    for row, sentence in enumerate(source):
        (
            plain.logits(unpadded(sentence), read[row])[0] * upstream[row]
        ).sum().backward()
    # The default scaling divides the gradients of the encoder's stack (section 3.5).
    layers = sum(name.endswith("attention.in_projection.bias") for name in weights)
    stack = ("encoder.in_projection", "encoder.blocks", "encoder.out_projection")
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None
        expected = weights[key].grad
        assert expected is not None
        if key.startswith(stack):
            expected = expected / layers
        torch.testing.assert_close(parameter.grad, expected, atol=1e-9, rtol=1e-9)


# ---- the LSTM ----


def plain(model: Lstm) -> PlainLstm:
    weights = {
        name: tensor.double().numpy() for name, tensor in model.state_dict().items()
    }
    return PlainLstm(weights, model.reverse_source)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("reverse_source", [True, False])
def test_the_lstm_is_its_formulas_in_training_and_decoding(
    layers: int, reverse_source: bool
) -> None:
    model = lstm(layers=layers, reverse_source=reverse_source).eval()
    source, read = batch(*LENGTHS), previous(len(LENGTHS))
    reference = plain(model)
    with torch.no_grad():
        logits, _ = model(source, read)
        steps = incremental(model, source, read)
    for row, sentence in enumerate(source):
        expected = reference.logits(unpadded(sentence).tolist(), read[row].tolist())
        np.testing.assert_allclose(logits[row].numpy(), expected, rtol=0, atol=1e-10)
        for place, (now, _) in enumerate(steps):
            np.testing.assert_allclose(
                now[row].numpy(), expected[place], rtol=0, atol=1e-10
            )


@pytest.mark.parametrize("reverse_source", [True, False])
def test_every_layer_hands_over_its_output_and_its_cells(reverse_source: bool) -> None:
    model = lstm(layers=3, reverse_source=reverse_source).eval()
    source = batch(*LENGTHS)
    with torch.no_grad():
        states = model.encode(source)
    reference = plain(model)
    assert len(states) == 3
    for row, sentence in enumerate(source):
        expected = reference.states(unpadded(sentence).tolist())
        for mine, one in zip(states, expected, strict=True):
            for tensor, array in zip(mine, one, strict=True):  # the output, the cells
                np.testing.assert_allclose(
                    tensor[0, row].numpy(), array, rtol=0, atol=1e-12
                )


def test_the_lstms_gradients_are_finite_differences_of_its_formulas() -> None:
    model, source, read = lstm(layers=2).train(), batch(4, 2), previous(2)
    for side in (model.encoder, model.decoder):
        side.dropout = side.embedding.dropout = 0.0
    upstream = np.random.default_rng(1).normal(size=(2, TOKENS, TYPES))
    (model(source, read)[0] * torch.from_numpy(upstream)).sum().backward()
    reference = plain(model)

    def value() -> float:
        rows = zip(source, read, upstream, strict=True)
        return sum(
            float(
                (reference.logits(unpadded(one).tolist(), tokens.tolist()) * up).sum()
            )
            for one, tokens, up in rows
        )

    places, step = np.random.default_rng(2), 1e-5
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        weights = reference.weights[name]
        strongest = int(parameter.grad.abs().argmax())
        for place in (strongest, int(places.integers(weights.size))):
            index = np.unravel_index(place, weights.shape)
            kept, found = weights[index], []
            for change in (step, -step):
                weights[index] = kept + change
                found.append(value())
            weights[index] = kept
            slope = (found[0] - found[1]) / (2 * step)
            assert float(parameter.grad[index]) == pytest.approx(
                slope, rel=1e-5, abs=1e-6
            ), name
