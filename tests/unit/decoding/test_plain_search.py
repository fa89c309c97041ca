"""The search against a plain one (benchmarks/plain_decoder.py), switch by switch."""

from typing import Any

import pytest
import torch
from torch import Tensor

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from plain_decoder import plain_search
from tests.support.networks import batch, network
from tests.support.plain_convs2s import PlainConvS2S

LENGTHS = (6, 2, 4)
LIMIT = {"factor": 1.0, "offset": 3}

SWITCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "a narrow beam": {"beam": 2},
    "the paper's beam": {"beam": 5},
    "a wide beam": {"beam": 10, "maximum_length": {"factor": 0, "offset": 3}},
    "no normalization": {"length_penalty": 0.0},
    "a weak length penalty": {"length_penalty": 0.6},
    "a strong length penalty": {"length_penalty": 1.7},
    "a minimum length": {"minimum_length": 4},
    "a minimum length above the maximum": {
        "minimum_length": 6,
        "maximum_length": {"factor": 0, "offset": 2},
    },
    "no minimum length to speak of": {"minimum_length": 1},
    "no factor": {"maximum_length": {"factor": 0, "offset": 4}},
    "a large factor": {"maximum_length": {"factor": 2.5, "offset": 1}},
    "unknown words penalized": {"unknown_penalty": 3.0},
    "unknown words penalized a little": {"unknown_penalty": 0.3},
}


def biased(unknown: float = 0.0, end: float = 0.0, padding: float = 0.0) -> ConvS2S:
    """Return a network that likes unknown words, ends, or padding, which nobody may write."""
    model = network(1).eval()
    with torch.no_grad():
        # So that much is nearly as probable.
        model.decoder.out_projection.weight_g.mul_(0.05)
        model.output.bias[UNKNOWN] += unknown
        model.output.bias[END] += end
        model.output.bias[PADDING] += padding
    return model


NETWORKS = {
    "as drawn": {},
    "fond of unknown words": {"unknown": 2.0},
    "short": {"end": 4.0},
    "fond of padding": {"padding": 3.0},
}


def settings(switch: str) -> DecodingSettings:
    return DecodingSettings.model_validate(
        {"maximum_length": LIMIT, **SWITCHES[switch]}
    )


def rows(found: list[Hypothesis]) -> list[tuple[list[int], float]]:
    return [(one.tokens, one.score) for one in found]


@pytest.mark.parametrize("model", NETWORKS)
@pytest.mark.parametrize("switch", SWITCHES)
def test_the_search_finds_what_a_plain_one_finds(switch: str, model: str) -> None:
    made, chosen = biased(**NETWORKS[model]), settings(switch)
    source = batch(*LENGTHS)
    found = beam_search(Ensemble([made]), source, chosen)
    for row, hypotheses in zip(source, found, strict=True):
        expected = plain_search(made, row[row != PADDING], chosen)
        assert [one.tokens for one in hypotheses] == [tokens for tokens, _ in expected]
        scores = [one.score for one in hypotheses]
        # The plain one adds up in fp32.
        assert scores == pytest.approx([score for _, score in expected], abs=1e-5)
        assert scores == sorted(scores, reverse=True)


def test_the_switches_change_what_is_found() -> None:
    """Else the comparison above would say nothing of them."""
    source = batch(*LENGTHS)

    def all_found(model: ConvS2S, switch: str) -> list[tuple[list[int], float]]:
        found = beam_search(Ensemble([model]), source, settings(switch))
        return [one for hypotheses in found for one in rows(hypotheses)]

    fond = biased(unknown=2.0)
    assert any(UNKNOWN in tokens for tokens, _ in all_found(fond, "the paper's beam"))
    assert all_found(fond, "unknown words penalized") != all_found(
        fond, "the paper's beam"
    )
    short = biased(end=4.0)
    assert min(len(tokens) for tokens, _ in all_found(short, "the paper's beam")) < 4
    assert min(len(tokens) for tokens, _ in all_found(short, "a minimum length")) == 4
    of_six = all_found(short, "a minimum length above the maximum")
    assert {len(tokens) for tokens, _ in of_six} == {6}


def test_an_output_ends_where_the_networks_positions_end() -> None:
    model = network(1).eval()
    assert model.positions["target"] == 30
    long = DecodingSettings(beam=2, minimum_length=60)
    for hypotheses in beam_search(Ensemble([model]), batch(4, 2), long):
        assert {len(one.tokens) for one in hypotheses} == {29}  # and </s>


def attended_words(model: ConvS2S, source: Tensor, tokens: list[int]) -> list[int]:
    """Return the word with the most attention of each token, by the formulas."""
    previous = torch.tensor([END, *tokens])
    with torch.no_grad():
        _, attentions = PlainConvS2S(model.state_dict()).logits(source, previous)
    # No attention to </s> counts.
    words = torch.stack(attentions).mean(0)[: len(tokens), :-1]
    return words.argmax(1).tolist()


@pytest.mark.parametrize("beam", [1, 5])
def test_the_alignment_is_that_of_the_formulas(beam: int) -> None:
    model, source = biased(), batch(*LENGTHS)
    chosen = DecodingSettings.model_validate({"maximum_length": LIMIT, "beam": beam})
    for row, hypotheses in zip(
        source, beam_search(Ensemble([model]), source, chosen), strict=True
    ):
        for one in hypotheses:
            assert one.alignment == attended_words(
                model, row[row != PADDING], one.tokens
            )
