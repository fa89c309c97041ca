"""BLEU against the output of the original scripts, multi-bleu.perl and mteval-v13a.pl."""

from collections.abc import Iterable
from typing import Any

import pytest

from convs2s.scoring.bleu import detokenized_bleu, length_ratio, tokenized_bleu
from tests.support.bleu_rows import BleuRow, bleu_rows
from tests.support.golden import DATA

MULTI_BLEU = list(bleu_rows(DATA / "bleu/multi-bleu.tsv"))
# International tokenization is not a metric of the paper.
MTEVAL = [
    row
    for row in bleu_rows(DATA / "bleu/mteval-v13a.tsv")
    if "--international-tokenization" not in row.option
]


def cases(rows: Iterable[BleuRow]) -> list[Any]:
    """Return a test's parameters, named after the rows."""
    return [pytest.param(row, id=row.label) for row in rows]


def test_every_row_is_tested() -> None:
    assert (len(MULTI_BLEU), len(MTEVAL)) == (56, 28)


@pytest.mark.parametrize("row", cases(MULTI_BLEU))
def test_tokenized_bleu_is_multi_bleu_perl(row: BleuRow) -> None:
    score = tokenized_bleu(*row.texts(), lowercase=row.lowercase).score
    assert f"{score:.2f}" == row.bleu


@pytest.mark.parametrize("row", cases(row for row in MULTI_BLEU if not row.lowercase))
def test_length_ratio_is_multi_bleu_perl(row: BleuRow) -> None:
    assert f"{length_ratio(*row.texts()).score:.3f}" == row.ratio


@pytest.mark.parametrize("row", cases(MTEVAL))
def test_detokenized_bleu_is_mteval_v13a(row: BleuRow) -> None:
    score = detokenized_bleu(*row.texts(), lowercase=row.lowercase).score
    assert f"{score / 100:.4f}" == row.printed
