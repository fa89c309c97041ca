"""BLEU of real text against the output of multi-bleu.perl and mteval-v13a.pl."""

from pathlib import Path

import pytest

from convs2s.scoring.bleu import detokenized_bleu, length_ratio, tokenized_bleu
from tests.support.bleu_rows import bleu_rows

LONG = ("nt13de.3000", "nd16en.1999")
"""Test sets of so many lines; of the second there are 500 among the others."""


@pytest.mark.parametrize(
    ("is_long", "count"), [(False, 56), pytest.param(True, 24, marks=pytest.mark.slow)]
)
def test_bleu_and_length_ratio_are_multi_bleu_perl(
    shared: Path, is_long: bool, count: int
) -> None:
    table = bleu_rows(shared / "golden/bleu/multi-bleu.tsv")
    rows = [row for row in table if row.name.startswith(LONG) == is_long]
    assert len(rows) == count
    for row in rows:
        texts = row.texts()
        score = tokenized_bleu(*texts, lowercase=row.lowercase).score
        assert f"{score:.2f}" == row.bleu, row.label
        if not row.lowercase:
            assert f"{length_ratio(*texts):.3f}" == row.ratio, row.label


@pytest.mark.parametrize(
    "corpus", ["nd16en", pytest.param("nt13de", marks=pytest.mark.slow)]
)
def test_detokenized_bleu_is_mteval_v13a(shared: Path, corpus: str) -> None:
    rows = list(bleu_rows(shared / f"golden/bleu/mteval.{corpus}.mteval-v13a.tsv"))
    assert len(rows) == 12
    for row in rows:
        score = detokenized_bleu(*row.texts(), lowercase=row.lowercase).score
        assert f"{score / 100:.4f}" == row.printed, row.label
