"""Beam search against the peer's hypotheses, their scores and attention (golden_generate)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.attention import layer_attention
from convs2s.decoding.search import SearchOptions, beam_search
from convs2s.models.ensemble import Ensemble
from tests.golden import peer

CASES = [
    "beam5_lp1.0",
    "beam5_lp0.6",
    "beam5_lp1.0_unnormalized",
    "beam1_lp1.0",
    "beam5_lp1.0_maxlenb6",
    "beam5_lp1.0_minlen6",
    "beam2_lp1.3_unkpen2",
]


def search_options(arguments: dict[str, Any]) -> SearchOptions:
    """Return the peer's options of a generation as ours."""
    return SearchOptions(
        beam=arguments["beam"],
        length_penalty=0.0 if arguments["unnormalized"] else arguments["lenpen"],
        minimum_length=arguments["min_len"],
        maximum_factor=arguments["max_len_a"],
        maximum_offset=arguments["max_len_b"],
        unknown_penalty=arguments["unkpen"],
        finished="replace",
    )


@pytest.mark.parametrize("batch", ["ragged", "nopad"])
@pytest.mark.parametrize("case", CASES)
def test_hypotheses(shared: Path, batch: str, case: str) -> None:
    folder = shared / "golden" / "fairseq"
    cases = json.loads((folder / "golden.json").read_text())["generation_cases"]
    options = search_options(cases[f"{batch}.{case}"]["args"])
    source, _, _ = peer.inputs(folder, batch)
    model = peer.load(folder).eval()
    found = beam_search(Ensemble([model]), source, options)

    golden = np.load(folder / "golden_generate.npz")
    tokens, lengths, scores, attention = (
        golden[f"{batch}.{case}.{name}"] for name in ("tokens", "lengths", "scores", "attention")
    )
    for sentence, hypotheses in enumerate(found):
        expected = [
            peer.OUR_INDEX[row[:length]].tolist()
            for row, length in zip(tokens[sentence], lengths[sentence], strict=True)
        ]
        assert [[*one.symbols, END] for one in hypotheses] == expected
        ours = [one.score for one in hypotheses]
        np.testing.assert_allclose(ours, scores[sentence], atol=1e-4)
        words = source[sentence][source[sentence] != PADDING].tolist()
        for one, theirs in zip(hypotheses, attention[sentence], strict=True):
            mean = layer_attention(model, words, [*one.symbols, END]).mean(0)  # (n, m)
            # theirs: (padded m, padded n), the source padded on the left
            real = theirs[len(theirs) - len(words) :, : len(mean)]
            np.testing.assert_allclose(mean.T, real, atol=1e-4, rtol=0)
            # what the search kept of it, </s> excepted
            assert one.peaks == real[:-1, :-1].argmax(0).tolist()
