"""Beam search against a plain one, switch by switch, and against probabilities set by hand."""

import math
from collections.abc import Mapping
from typing import Any, cast

import pytest
import torch
import yaml
from torch import Tensor

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.models.ensemble import DecoderState, Ensemble
from plain_decoder import plain_search
from tests.support.networks import batch, network, options

# ---- the plain search ----

LENGTHS = (6, 2, 4)

SWITCHES = yaml.safe_load("""
- {beam: 1}
- {beam: 2}
- {}
- {beam: 10, maximum_length: {factor: 0, offset: 3}}
- {length_penalty: 0.0}
- {length_penalty: 0.6}
- {length_penalty: 1.7}
- {minimum_length: 4}
- {minimum_length: 6, maximum_length: {factor: 0.5, offset: 2}}
- {maximum_length: {factor: 0.4, offset: 1}}
- {maximum_length: {factor: 2.5, offset: 1}}
- {unknown_penalty: 3.0}
- {unknown_penalty: 0.3}
""")

FOND: tuple[dict[int, float], ...] = ({}, {UNKNOWN: 2.0}, {END: 4.0}, {PADDING: 3.0})
"""Types that a network likes, padding among them, which nobody may write."""


@pytest.mark.parametrize("fond", FOND)
@pytest.mark.parametrize("switch", SWITCHES)
def test_the_search_finds_what_a_plain_one_finds(
    switch: dict[str, Any], fond: dict[int, float]
) -> None:
    model = network(1).eval()
    with torch.no_grad():
        # So that much is nearly as probable.
        model.decoder.out_projection.weight_g.mul_(0.05)
        for token, bias in fond.items():
            model.output.bias[token] += bias
    settings = options(**{"maximum_length": {"factor": 1.0, "offset": 3}, **switch})
    for source in (batch(*LENGTHS), batch(*reversed(LENGTHS))):
        found = beam_search(Ensemble([model]), source, settings)
        for row, hypotheses in zip(source, found, strict=True):
            expected = plain_search(model, row[row != PADDING], settings)
            tokens = [tokens for tokens, _ in expected]
            assert [one.tokens for one in hypotheses] == tokens
            # The plain one adds up in fp32.
            scores = pytest.approx([score for _, score in expected], abs=1e-5)
            assert [one.score for one in hypotheses] == scores


def test_the_maximum_length_of_a_source_is_above_the_minimum() -> None:
    model = network(1).eval()
    assert model.positions["target"] == 30
    for maximum, lengths in (
        ({"factor": 0.1, "offset": 5}, [5, 5]),
        ({"factor": 2, "offset": 1}, [9, 5]),
        # The network has 30 positions, one of which is for </s>.
        ({"factor": 9, "offset": 20}, [29, 29]),
    ):
        settings = options(beam=2, minimum_length=30, maximum_length=maximum)
        found = beam_search(Ensemble([model]), batch(4, 2), settings)
        for hypotheses, length in zip(found, lengths, strict=True):
            assert {len(one.tokens) for one in hypotheses} == {length}


# ---- probabilities set by hand ----

A, B, C = (max(END, PADDING, UNKNOWN) + number for number in (1, 2, 3))

NEXT = {
    END: {A: 0.5, B: 0.3, C: 0.1, END: 0.1},
    A: {END: 0.5, C: 0.3, A: 0.1, B: 0.1},
    B: {B: 0.6, A: 0.2, C: 0.1, END: 0.1},
    C: {END: 0.9, A: 0.1},
}
"""The last token -> the probabilities of the next one."""

HALF = {END: 0.5, A: 0.25, B: 0.25}
EQUAL = {END: {A: 0.5, B: 0.5}, A: HALF, B: {C: 1.0}, C: HALF}


class Bigrams:
    """An ensemble that looks at nothing but the last token."""

    attends = False

    def __init__(self, following: Mapping[int, Mapping[int, float]]) -> None:
        self.steps = 0
        self.table = torch.full((C + 1, C + 1), -torch.inf)
        for last, probabilities in following.items():
            for token, probability in probabilities.items():
                self.table[last, token] = math.log(probability)

    def positions(self, side: str) -> None:
        """There is no limit."""

    def start(self, source: Indices, *_: object) -> DecoderState:
        return BigramsState(source, self)


class BigramsState(DecoderState):
    def __init__(self, source: Indices, ensemble: Bigrams) -> None:
        super().__init__([], [], torch.from_numpy(source), "probabilities")
        self.ensemble = ensemble

    def step(self, previous: Tensor) -> tuple[Tensor, None]:
        self.ensemble.steps += 1
        return self.ensemble.table[previous], None


def searched(
    bigrams: Bigrams, *lengths: int, **settings: Any
) -> list[list[Hypothesis]]:
    ensemble = cast(Ensemble, bigrams)
    return beam_search(ensemble, batch(*lengths), options(**settings))


def test_what_becomes_of_the_place_of_a_finished_hypothesis() -> None:
    limit = {"factor": 0, "offset": 3}
    for following, finished, expected in (
        # Step 1 keeps a and b. Step 2 ranks a</s> .25, bb .18, ac .15: with a</s> finished, one
        # place is left, for bb, and ac is gone. Step 3 goes on to bbb .108, which ends: .0108.
        (NEXT, "leave", [([A], 0.25), ([B, B, B], 0.0108)]),
        # As above, but ac stays in the beam, and ac</s> .135 ends before bbb .108 does.
        (NEXT, "replace", [([A], 0.25), ([A, C], 0.135)]),
        # Of equal hypotheses, the first that finished is the best.
        (EQUAL, "replace", [([A], 0.25), ([B, C], 0.25)]),
    ):
        how = {"finished": finished, "length_penalty": 0.0, "maximum_length": limit}
        (found,) = searched(Bigrams(following), 4, beam=2, **how)
        scored = [(one.tokens, round(math.exp(one.score), 6)) for one in found]
        assert scored == expected


def test_a_search_ends_with_its_last_output() -> None:
    for beam, steps in ((1, 2), (2, 3)):
        bigrams = Bigrams(NEXT)
        searched(bigrams, 4, 2, beam=beam, maximum_length={"factor": 0, "offset": 40})
        assert bigrams.steps == steps
