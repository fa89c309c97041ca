"""Scores of fairseq's own translations of real text."""

import math
from itertools import islice
from pathlib import Path

import pytest

from convs2s.decoding.rescoring import PairScorer, score_pairs
from convs2s.files.text import read_line_pairs, read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq


@pytest.mark.parametrize("lines", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_fairseqs_translations_have_fairseqs_scores(
    shared: Path, tmp_path: Path, lines: int
) -> None:
    folder = shared / "golden" / "fairseq_multi30k"
    names = "checkpoint_best.pt", "dict.en.txt", "dict.de.txt", "codes.8000"
    model = tmp_path / "model.safetensors"
    files = FairseqFiles(*(folder / name for name in names))
    import_fairseq(files, model, task="multi30k", languages=None, preparation="moses_test")
    scorer = PairScorer.load([model], "cpu", "tokens")
    pairs = read_line_pairs(folder / "src.bpe.en", folder / "expected_beam5.bpe.de")
    rows = islice(read_lines(folder / "expected_beam5.scores.tsv"), lines)
    for row, found in zip(rows, score_pairs(scorer, islice(pairs, lines)), strict=True):
        _, normalized, steps = row.split("\t")
        expected = float(normalized) * math.log(2)  # theirs are in bits
        assert found.normalized(1.0) == pytest.approx(expected, abs=1e-4)
        assert found.tokens == len(steps.split())
