"""BLEU of real text against the output of multi-bleu.perl and mteval-v13a.pl."""

from pathlib import Path

import pytest

from convs2s.scoring.bleu import detokenized_bleu, length_ratio, tokenized_bleu
from tests.support.bleu_rows import bleu_rows


def test_bleu_and_length_ratio_are_multi_bleu_perl(shared: Path) -> None:
    rows = list(bleu_rows(shared / "golden/bleu/multi-bleu.tsv"))
    assert len(rows) == 80
    for row in rows:
        texts = row.texts()
        score = tokenized_bleu(*texts, lowercase=row.lowercase).score
        assert f"{score:.2f}" == row.bleu, row.label
        if not row.lowercase:
            assert f"{length_ratio(*texts).score:.3f}" == row.ratio, row.label


@pytest.mark.parametrize("corpus", ["nd16en", "nt13de"])
def test_detokenized_bleu_is_mteval_v13a(shared: Path, corpus: str) -> None:
    table = shared / f"golden/bleu/mteval.{corpus}.mteval-v13a.tsv"
    rows = [row for row in bleu_rows(table) if "--international-tokenization" not in row.option]
    assert len(rows) == 12
    for row in rows:
        score = detokenized_bleu(*row.texts(), lowercase=row.lowercase).score
        assert f"{score / 100:.4f}" == row.printed, row.label
