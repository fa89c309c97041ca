"""Beam search against fairseq's hypotheses, their scores and attention (golden_generate)."""

import numpy as np
import pytest

from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.inspection import layer_attention
from convs2s.decoding.search import beam_search
from convs2s.models.ensemble import Ensemble
from plain_decoder import plain_search
from tests.reference import fairseq


@pytest.mark.parametrize("batch", fairseq.BATCHES)
@pytest.mark.parametrize("search", fairseq.SEARCHES)
def test_hypotheses(batch: str, search: str) -> None:
    """Also those of the plain search that benchmarks compare with."""
    model = fairseq.load().eval()
    theirs = fairseq.generation(batch, search)
    found = beam_search(Ensemble([model]), theirs.source, theirs.settings)
    for sentence, hypotheses in enumerate(found):
        row = theirs.source[sentence]
        source = row[row != PADDING]
        ours = [(one.tokens, one.score) for one in hypotheses]
        for each in (ours, plain_search(model, source, theirs.settings)):
            assert [[*tokens, END] for tokens, _ in each] == theirs.tokens[sentence]
            scores = [score for _, score in each]
            np.testing.assert_allclose(scores, theirs.scores[sentence], atol=1e-4)
        for one, attention in zip(hypotheses, theirs.attention[sentence], strict=True):
            mean = layer_attention(model, source.tolist(), [*one.tokens, END]).mean(0)
            # Ours (n, m), theirs (padded m, padded n).
            real = attention[len(attention) - len(source) :, : len(mean)]
            np.testing.assert_allclose(mean.T, real, atol=1e-4, rtol=0)
            # What the search kept of it, </s> excepted.
            assert one.alignment == real[:-1, :-1].argmax(0).tolist()
