"""What becomes of a finished hypothesis's place in the beam, with probabilities set by hand."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.decoding.search import _Search, beam_search
from convs2s.models import ensemble
from convs2s.models.ensemble import Ensemble, for_inference
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.layers import PlainOutput
from convs2s.models.network import Network
from convs2s.models.steps import Precision
from tests.support.networks import batch, lstm, network, options

A, B, C = (max(END, PADDING, UNKNOWN) + number for number in (1, 2, 3))

NEXT = {
    END: {A: 0.5, B: 0.3, C: 0.1, END: 0.1},
    A: {END: 0.5, C: 0.3, A: 0.1, B: 0.1},
    B: {B: 0.6, A: 0.2, C: 0.1, END: 0.1},
    C: {END: 0.9, A: 0.1},
}
"""The last token -> the probabilities of the next one."""


class Bigrams(Network):
    """A network that looks at nothing but the last token."""

    attends = False

    def __init__(self) -> None:
        super().__init__(nn.Identity(), nn.Identity())
        types = C + 1
        self.layer = PlainOutput(types, types)
        table = torch.full((types, types), -torch.inf)
        for last, probabilities in NEXT.items():
            for token, probability in probabilities.items():
                table[token, last] = math.log(probability)
        # A product with zero must stay zero.
        self.layer.table = nn.Parameter(table.clamp(min=-1e9))
        self.layer.bias = nn.Parameter(torch.zeros(types))

    @property
    def positions(self) -> Mapping[str, int | None]:
        return {"source": None, "target": None}

    @property
    def output(self) -> PlainOutput:
        return self.layer

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Tensor:
        return source

    def features(
        self, source: Tensor, previous: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        return functional.one_hot(previous, C + 1).float()

    def forward(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        return self.layer(self.features(source, previous)), []


class InferenceBigrams:
    def __init__(self, network: Bigrams, precision: Precision) -> None:
        self.features = network.features
        self.output = LinearMap(network.layer.table, network.layer.bias, precision)

    def start(self, source: Tensor, hypotheses: int) -> "InferenceBigrams":
        return self

    def step(self, previous: Tensor) -> tuple[Tensor, None]:
        return self.features(previous, previous), None

    def select(self, parents: Tensor) -> None:
        """There is no state."""

    def keep(self, sentences: Tensor) -> None:
        """There is no state."""


for_inference.register(Bigrams, InferenceBigrams)


def found(beam: int, finished: str) -> list[tuple[list[int], float]]:
    """The finished hypotheses of outputs of at most three words, each with its probability."""
    chosen = options(
        beam=beam,
        finished=finished,
        length_penalty=0.0,
        maximum_length={"factor": 0, "offset": 3},
    )
    (hypotheses,) = beam_search(Ensemble([Bigrams()]), batch(4), chosen)
    return [(one.tokens, round(math.exp(one.score), 6)) for one in hypotheses]


def test_a_finished_hypothesis_leaves_the_beam() -> None:
    # Step 1 keeps a and b. Step 2 ranks a</s> .25, bb .18, ac .15: with a</s> finished, one place
    # is left, for bb, and ac is gone. Step 3 goes on to bbb .108, which must end: .0108.
    assert found(2, "leave") == [([A], 0.25), ([B, B, B], 0.0108)]


def test_another_hypothesis_takes_a_finished_ones_place() -> None:
    # As above, but ac stays in the beam, and ac</s> .135 ends before bbb .108 does.
    assert found(2, "replace") == [([A], 0.25), ([A, C], 0.135)]


def test_a_hypothesis_finishes_only_within_the_beam() -> None:
    # Step 1 ranks a .5, b .3, c .1, </s> .1: an empty output takes a beam of 4.
    assert ([], 0.1) in found(4, "leave")
    assert ([], 0.1) not in found(2, "leave")


@pytest.mark.parametrize("model", [network(), lstm()], ids=["convs2s", "lstm"])
def test_a_beam_of_1_is_greedy_either_way(model: Network) -> None:
    model.eval()
    source = batch(6, 3)
    tokens = [END]
    with torch.no_grad():
        while len(tokens) <= 11:
            logits = model(source[:1], torch.tensor([tokens]))[0][0, -1]
            logits[PADDING] = -torch.inf
            tokens.append(int(logits.argmax()))
            if tokens[-1] == END:
                break
    expected = [token for token in tokens[1:] if token != END]
    for finished in ("leave", "replace"):
        first = beam_search(
            Ensemble([model]), source, options(beam=1, finished=finished)
        )[0]
        assert [one.tokens for one in first] == [expected]


def test_a_greedy_search_ends_with_its_last_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[int] = []
    best = ensemble.DecoderState.best

    def counted(state: ensemble.DecoderState, previous: Indices, *given: Any) -> Any:
        rows.append(len(previous))
        return best(state, previous, *given)

    monkeypatch.setattr(ensemble.DecoderState, "best", counted)
    long = options(beam=1, maximum_length={"factor": 0, "offset": 40})
    # Each writes a and </s>.
    found = beam_search(Ensemble([Bigrams()]), batch(4, 2), long)
    assert [one.tokens for hypotheses in found for one in hypotheses] == [[A], [A]]
    assert rows == [2, 2]


def test_the_beam_ends_with_as_many_hypotheses_as_it_began_with() -> None:
    chosen = options(beam=4, finished="leave", length_penalty=0.0)
    for hypotheses in beam_search(Ensemble([lstm()]), batch(7, 2, 4), chosen):
        assert len(hypotheses) == 4
        assert len({tuple(one.tokens) for one in hypotheses}) == 4
        scores = [one.score for one in hypotheses]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("factor", "words", "most"), [(0.5, 3, 2), (1.5, 3, 5), (0.9, 1, 1)]
)
def test_a_share_of_a_token_is_no_token_of_the_maximum(
    factor: float, words: int, most: int
) -> None:
    """As int(max_len_a * length + max_len_b) of fairseq: of 3 words and 1.5 it is 4 and the 1."""
    chosen = options(beam=2, maximum_length={"factor": factor, "offset": 1})
    search = _Search(Ensemble([network()]), np.asarray(batch(words)), chosen, None)
    assert search.maximum.tolist() == [most]


def test_of_equal_hypotheses_the_first_that_finished_is_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = {END: 0.5, A: 0.25, B: 0.25}
    for last, following in {
        END: {A: 0.5, B: 0.5},
        A: half,
        B: {C: 1.0},
        C: half,
    }.items():
        monkeypatch.setitem(NEXT, last, following)
    assert found(2, "replace") == [([A], 0.25), ([B, C], 0.25)]
