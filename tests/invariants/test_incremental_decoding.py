"""Decoding step by step finds what the whole forward pass does, in any batch."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.config.architecture import parse_architecture
from convs2s.config.extensions import export_extensions
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.search import beam_search
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble, for_inference
from convs2s.models.network import Network
from convs2s.models.steps import Precision
from tests.support.networks import (
    TYPES,
    assert_incremental_equals_full,
    batch,
    lstm,
    network,
    options,
    rnn,
)

READ = batch(6, 6, 6).roll(1, 1)
"""What the decoder reads: ``</s>`` and tokens."""


@torch.inference_mode()
def test_the_example_of_a_transformer_decodes_step_by_step(root: Path) -> None:
    export_extensions(["examples/transformer.py"], root)
    settings = {"kind": "transformer", "layers": 2, "width": 32, "heads": 4}
    model = build_network(parse_architecture(settings), TYPES, TYPES).double()
    source = batch(9, 2, 5)
    assert_incremental_equals_full(model, source, READ)
    assert_follows_its_hypotheses(model)


@torch.inference_mode()
def assert_follows_its_hypotheses(model: Network) -> None:
    """Let the first hypothesis of each sentence become the second, and drop a sentence."""
    source = batch(9, 2, 5)
    expected = model(source, READ)[0].log_softmax(2)
    state = Ensemble([model]).start(source, 2)
    state.step(READ[:, :1].expand(-1, 2))
    state.step(torch.stack([READ[:, 1], READ[:, 2]], 1))
    state.select(np.array([1, 0, 3, 2, 5, 4]))
    state.keep(np.array([0, 2]))
    found, _ = state.step(READ[[0, 2], 2:3].expand(-1, 2))
    torch.testing.assert_close(found[:, 1], expected[[0, 2], 2])


RECURRENT = [lstm(), rnn(), rnn("lstm", "luong", layers=2)]


@pytest.mark.parametrize("model", RECURRENT)
def test_a_recurrent_network_follows_its_hypotheses(model: Network) -> None:
    assert_follows_its_hypotheses(model.eval())


@pytest.mark.parametrize("hypotheses", [1, 4])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("model", RECURRENT)
def test_an_encoded_sentence_is_the_same_to_the_bit_in_every_batch(
    model: Network, precision: Precision, hypotheses: int
) -> None:
    """Rows of one length alone, and rows that outlast all others, take other kernels of torch."""
    decoding = for_inference(deepcopy(model).float().eval(), precision)
    lengths = [3, 9, 9, 17, 30]
    source = batch(*lengths)

    @torch.inference_mode()
    def features(chosen: list[int]) -> torch.Tensor:
        rows = source[chosen, : max(lengths[one] for one in chosen) + 1]
        state = decoding.start(rows, hypotheses)
        state.step(torch.full((len(chosen), hypotheses), END))
        return state.step(torch.full((len(chosen), hypotheses), 4))[0]

    together = features([0, 1, 2, 3, 4])
    for chosen in ([0], [4], [1, 2], [3, 4], [0, 4], [2, 0, 3]):
        assert torch.equal(features(chosen), together[chosen])


@pytest.mark.parametrize("finished", ["replace", "leave"])
@pytest.mark.parametrize("model", RECURRENT)
def test_what_a_recurrent_network_finds_does_not_depend_on_the_batch(
    model: Network, finished: str
) -> None:
    ensemble = Ensemble([model])
    chosen = options(finished=finished, length_penalty=0.0)
    source = batch(9, 2, 5)
    for row, found in zip(source, beam_search(ensemble, source, chosen), strict=True):
        (alone,) = beam_search(ensemble, row[row != PADDING].unsqueeze(0), chosen)
        assert [one.tokens for one in found] == [one.tokens for one in alone]
        scores = [one.score for one in alone]
        assert [one.score for one in found] == pytest.approx(scores)


@torch.inference_mode()
def test_a_mixed_ensemble_averages_and_has_the_attention_of_those_that_attend() -> None:
    convs2s = network()
    recurrent = lstm()
    source = batch(5, 8)
    tokens = READ[:2, :1]
    together, attention = Ensemble([recurrent, convs2s]).start(source, 1).step(tokens)
    one, _ = Ensemble([recurrent]).start(source, 1).step(tokens)
    other, alone = Ensemble([convs2s]).start(source, 1).step(tokens)
    torch.testing.assert_close(attention, alone)
    torch.testing.assert_close(together.exp(), (one.exp() + other.exp()) / 2)
