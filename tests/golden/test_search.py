"""Beam search against the peer implementation's hypotheses (golden/fairseq/golden_generate)."""

import json
from pathlib import Path

import numpy as np
import pytest

from convs2s.data.vocabulary import END
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


@pytest.mark.parametrize("batch", ["ragged", "nopad"])
@pytest.mark.parametrize("case", CASES)
def test_hypotheses(shared: Path, batch: str, case: str) -> None:
    folder = shared / "golden" / "fairseq"
    cases = json.loads((folder / "golden.json").read_text())["generation_cases"]
    arguments = cases[f"{batch}.{case}"]["args"]
    options = SearchOptions(
        beam=arguments["beam"],
        length_penalty=0.0 if arguments["unnormalized"] else arguments["lenpen"],
        minimum_length=arguments["min_len"],
        maximum_factor=arguments["max_len_a"],
        maximum_offset=arguments["max_len_b"],
        unknown_penalty=arguments["unkpen"],
        finished="replace",
    )
    source, _, _ = peer.inputs(folder, batch)
    found = beam_search(Ensemble([peer.load(folder)]), source, options)

    golden = np.load(folder / "golden_generate.npz")
    tokens, lengths, scores = (
        golden[f"{batch}.{case}.{name}"] for name in ("tokens", "lengths", "scores")
    )
    for sentence, hypotheses in enumerate(found):
        expected = [
            peer.OUR_INDEX[row[:length]].tolist()
            for row, length in zip(tokens[sentence], lengths[sentence], strict=True)
        ]
        assert [[*one.symbols, END] for one in hypotheses] == expected
        ours = [one.score for one in hypotheses]
        np.testing.assert_allclose(ours, scores[sentence], atol=1e-4)
