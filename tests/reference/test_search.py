"""Beam search against fairseq's hypotheses, their scores and attention (golden_generate)."""

from typing import Any

import numpy as np
import pytest

from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.inspection import layer_attention
from convs2s.decoding.search import beam_search
from convs2s.files.text import read_json
from convs2s.models.ensemble import Ensemble
from plain_decoder import plain_search
from tests.reference import fairseq
from tests.support.networks import options

DESCRIBED: Any = read_json(fairseq.VECTORS / "golden.json")
CASES = DESCRIBED["generation_cases"]
"""Two batches, each translated with seven settings."""


@pytest.mark.parametrize("name", CASES)
def test_hypotheses(name: str) -> None:
    """Also those of the plain search that benchmarks compare with."""
    model = fairseq.load().eval()
    padded, _, _ = fairseq.inputs(name.split(".")[0])
    stated = CASES[name]["args"]
    settings = options(
        beam=stated["beam"],
        length_penalty=0.0 if stated["unnormalized"] else stated["lenpen"],
        minimum_length=stated["min_len"],
        maximum_length={"factor": stated["max_len_a"], "offset": stated["max_len_b"]},
        unknown_penalty=stated["unkpen"],
    )
    theirs = fairseq.part(np.load(fairseq.VECTORS / "golden_generate.npz"), name)
    found = beam_search(Ensemble([model]), padded, settings)
    for sentence, hypotheses in enumerate(found):
        row = padded[sentence]
        source = row[row != PADDING]
        expected = [
            fairseq.our_indices(tokens[:length]).tolist()
            for tokens, length in zip(
                theirs["tokens"][sentence], theirs["lengths"][sentence], strict=True
            )
        ]
        ours = [(one.tokens, one.score) for one in hypotheses]
        for each in (ours, plain_search(model, source, settings)):
            assert [[*tokens, END] for tokens, _ in each] == expected
            scores = [score for _, score in each]
            np.testing.assert_allclose(scores, theirs["scores"][sentence], atol=1e-4)
        attended = theirs["attention"][sentence]
        for one, attention in zip(hypotheses, attended, strict=True):
            mean = layer_attention(model, source.tolist(), [*one.tokens, END]).mean(0)
            # Ours (n, m), theirs (m padded on the left, padded n).
            real = attention[len(attention) - len(source) :, : len(mean)]
            np.testing.assert_allclose(mean.T, real, atol=1e-4, rtol=0)
            # What the search kept of it, </s> excepted.
            assert one.alignment == real[:-1, :-1].argmax(0).tolist()
