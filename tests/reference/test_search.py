"""Beam search against fairseq's hypotheses, their scores and attention (golden_generate)."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.inspection import layer_attention
from convs2s.decoding.search import beam_search
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble
from convs2s.models.recorded_ensemble import RecordedEnsemble
from tests.support import fairseq
from tests.support.recordings import CpuRecording

ENSEMBLES: dict[str, Callable[[ConvS2S], Ensemble]] = {
    "run": lambda model: Ensemble([model]),
    "replayed": lambda model: RecordedEnsemble([model], recording=CpuRecording),
}
"""What becomes of a step's operations."""


@pytest.mark.parametrize("batch", fairseq.BATCHES)
@pytest.mark.parametrize("search", fairseq.SEARCHES)
@pytest.mark.parametrize("steps", ENSEMBLES)
def test_hypotheses(folder: Path, batch: str, search: str, steps: str) -> None:
    model, theirs = (
        fairseq.load(folder).eval(),
        fairseq.generation(folder, batch, search),
    )
    found = beam_search(ENSEMBLES[steps](model), theirs.source, theirs.settings)
    for sentence, hypotheses in enumerate(found):
        assert [[*one.tokens, END] for one in hypotheses] == theirs.tokens[sentence]
        ours = [one.score for one in hypotheses]
        np.testing.assert_allclose(ours, theirs.scores[sentence], atol=1e-4)
        source = [
            token for token in theirs.source[sentence].tolist() if token != PADDING
        ]
        for one, attention in zip(hypotheses, theirs.attention[sentence], strict=True):
            mean = layer_attention(model, source, [*one.tokens, END]).mean(0)  # (n, m)
            real = attention[len(attention) - len(source) :, : len(mean)]  # (m, n)
            np.testing.assert_allclose(mean.T, real, atol=1e-4, rtol=0)
            # what the search kept of it, </s> excepted
            assert one.alignment == real[:-1, :-1].argmax(0).tolist()
