"""BLEU against the output of the original scripts, multi-bleu.perl and mteval-v13a.pl."""

import pytest

from convs2s.scoring.bleu import detokenized_bleu, length_ratio, tokenized_bleu
from tests.support.bleu_rows import BleuRow, bleu_rows
from tests.support.golden import DATA

MULTI_BLEU = list(bleu_rows(DATA / "bleu/multi-bleu.tsv"))
MTEVAL = list(bleu_rows(DATA / "bleu/mteval-v13a.tsv"))


def test_every_row_is_tested() -> None:
    assert (len(MULTI_BLEU), len(MTEVAL)) == (56, 28)


@pytest.mark.parametrize("row", MULTI_BLEU, ids=lambda row: row.label)
def test_bleu_and_length_ratio_are_multi_bleu_perl(row: BleuRow) -> None:
    texts = row.texts()
    score = tokenized_bleu(*texts, lowercase=row.lowercase).score
    assert f"{score:.2f}" == row.bleu
    if not row.lowercase:
        assert f"{length_ratio(*texts):.3f}" == row.ratio


@pytest.mark.parametrize("row", MTEVAL, ids=lambda row: row.label)
def test_detokenized_bleu_is_mteval_v13a(row: BleuRow) -> None:
    score = detokenized_bleu(*row.texts(), lowercase=row.lowercase).score
    assert f"{score / 100:.4f}" == row.printed
