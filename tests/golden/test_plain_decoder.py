"""The decoder that benchmarks compare with finds what the peer finds (golden_generate)."""

import json
from pathlib import Path

import numpy as np
import pytest

from convs2s.data.vocabulary import END, PADDING
from plain_decoder import plain_search
from tests.golden import peer
from tests.golden.test_search import CASES, search_options


@pytest.mark.parametrize("batch", ["ragged", "nopad"])
@pytest.mark.parametrize("case", CASES)
def test_the_plain_decoder_finds_the_peers_hypotheses(shared: Path, batch: str, case: str) -> None:
    folder = shared / "golden" / "fairseq"
    cases = json.loads((folder / "golden.json").read_text())["generation_cases"]
    options = search_options(cases[f"{batch}.{case}"]["args"])
    source, _, _ = peer.inputs(folder, batch)
    model = peer.load(folder).eval()
    golden = np.load(folder / "golden_generate.npz")
    tokens, lengths, scores = (
        golden[f"{batch}.{case}.{name}"] for name in ("tokens", "lengths", "scores")
    )
    for sentence, row in enumerate(source):
        found = plain_search(model, row[row != PADDING], options)
        expected = [
            peer.OUR_INDEX[one[:length]].tolist()
            for one, length in zip(tokens[sentence], lengths[sentence], strict=True)
        ]
        assert [[*symbols, END] for symbols, _ in found] == expected
        np.testing.assert_allclose([score for _, score in found], scores[sentence], atol=1e-4)
