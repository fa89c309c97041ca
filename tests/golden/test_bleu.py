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

ASCII = "issue 15: the scripts lower-case ASCII alone, sacrebleu every letter"
BYTES = "multi-bleu.perl works on bytes: a no-break space does not end a word, in sacrebleu it does"
UNEQUAL = {
    "case.hyp.lc 1 -lc": ASCII,
    "degen.hyp.blanks 1 cased": BYTES,
    "degen.hyp.blanks 1 -lc": BYTES,
    "demofr.500.hyp.empty 1 -lc": ASCII,
    "demofr.500.hyp.heavy 1 -lc": ASCII,
    "demofr.500.hyp.mid 1 -lc": ASCII,
    "demofr.500.hyp.mild 1 -lc": ASCII,
    "mteval.demofr.hyp.empty 1 (case-insensitive)": ASCII,
    "mteval.demofr.hyp.heavy 1 (case-insensitive)": ASCII,
    "mteval.demofr.hyp.long 1 (case-insensitive)": ASCII,
    "mteval.demofr.hyp.mid 1 (case-insensitive)": ASCII,
    "mteval.demofr.hyp.mild 1 (case-insensitive)": ASCII,
    "mteval.hazard.hyp.empty 1 (case-insensitive)": ASCII,
    "mteval.hazard.hyp.mild 1 (case-insensitive)": ASCII,
}
"""The rows in which ours differ, and why."""


def cases(rows: Iterable[BleuRow], *reasons: str) -> list[Any]:
    """Return a test's parameters; rows that differ for one of the reasons must fail."""
    found = []
    for row in rows:
        reason = UNEQUAL.get(row.label)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason in reasons else []
        found.append(pytest.param(row, id=row.label, marks=marks))
    return found


def test_every_row_is_tested() -> None:
    assert (len(MULTI_BLEU), len(MTEVAL)) == (56, 28)
    assert UNEQUAL.keys() <= {row.label for row in (*MULTI_BLEU, *MTEVAL)}


@pytest.mark.parametrize("row", cases(MULTI_BLEU, ASCII, BYTES))
def test_tokenized_bleu_is_multi_bleu_perl(row: BleuRow) -> None:
    score = tokenized_bleu(*row.texts(), lowercase=row.lowercase).score
    assert f"{score:.2f}" == row.bleu


@pytest.mark.parametrize("row", cases((row for row in MULTI_BLEU if not row.lowercase), BYTES))
def test_length_ratio_is_multi_bleu_perl(row: BleuRow) -> None:
    assert f"{length_ratio(*row.texts()).score:.3f}" == row.ratio


@pytest.mark.parametrize("row", cases(MTEVAL, ASCII))
def test_detokenized_bleu_is_mteval_v13a(row: BleuRow) -> None:
    score = detokenized_bleu(*row.texts(), lowercase=row.lowercase).score
    assert f"{score / 100:.4f}" == row.printed
