"""Beam search against fairseq's hypotheses, their scores and attention (golden_generate)."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.inspection import layer_attention
from convs2s.decoding.search import beam_search
from convs2s.models.ensemble import Ensemble
from plain_decoder import plain_search
from tests.reference import fairseq

each_search = pytest.mark.parametrize("search", fairseq.SEARCHES)
each_batch = pytest.mark.parametrize("batch", fairseq.BATCHES)


@each_batch
@each_search
def test_hypotheses(folder: Path, batch: str, search: str) -> None:
    model = fairseq.load(folder).eval()
    theirs = fairseq.generation(folder, batch, search)
    found = beam_search(Ensemble([model]), theirs.source, theirs.settings)
    for sentence, hypotheses in enumerate(found):
        assert [[*one.tokens, END] for one in hypotheses] == theirs.tokens[sentence]
        ours = [one.score for one in hypotheses]
        np.testing.assert_allclose(ours, theirs.scores[sentence], atol=1e-4)
        row = theirs.source[sentence]
        source = row[row != PADDING].tolist()
        for one, attention in zip(hypotheses, theirs.attention[sentence], strict=True):
            mean = layer_attention(model, source, [*one.tokens, END]).mean(0)  # (n, m)
            real = attention[len(attention) - len(source) :, : len(mean)]  # (m, n)
            np.testing.assert_allclose(mean.T, real, atol=1e-4, rtol=0)
            # What the search kept of it, </s> excepted.
            assert one.alignment == real[:-1, :-1].argmax(0).tolist()


@each_batch
@each_search
def test_the_decoder_that_benchmarks_compare_with_finds_the_same(
    folder: Path, batch: str, search: str
) -> None:
    model = fairseq.load(folder).eval()
    theirs = fairseq.generation(folder, batch, search)
    for sentence, row in enumerate(theirs.source):
        found = plain_search(model, row[row != PADDING], theirs.settings)
        assert [[*ours, END] for ours, _ in found] == theirs.tokens[sentence]
        ours = [score for _, score in found]
        np.testing.assert_allclose(ours, theirs.scores[sentence], atol=1e-4)
