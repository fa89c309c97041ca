"""The decoder that benchmarks compare with finds what fairseq finds (golden_generate)."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.data.vocabulary import END, PADDING
from plain_decoder import plain_search
from tests.support import fairseq


@pytest.mark.parametrize("batch", fairseq.BATCHES)
@pytest.mark.parametrize("search", fairseq.SEARCHES)
def test_the_plain_decoder_finds_fairseqs_hypotheses(
    folder: Path, batch: str, search: str
) -> None:
    model, theirs = (
        fairseq.load(folder).eval(),
        fairseq.generation(folder, batch, search),
    )
    for row, tokens, scores in zip(
        theirs.source, theirs.tokens, theirs.scores, strict=True
    ):
        found = plain_search(model, row[row != PADDING], theirs.settings)
        assert [[*ours, END] for ours, _ in found] == tokens
        np.testing.assert_allclose([score for _, score in found], scores, atol=1e-4)
