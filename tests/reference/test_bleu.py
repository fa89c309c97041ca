"""BLEU against the output of the original scripts, multi-bleu.perl and mteval-v13a.pl."""

import re
from collections.abc import Iterator

import pytest

from convs2s.config.bleu import BleuForm
from convs2s.files.text import read_lines
from convs2s.scoring.bleu import corpus_bleu, length_ratio
from tests.support.golden import DATA, golden_lines

FOLDER = DATA / "bleu"


def rows_of(table: str) -> Iterator[tuple[list[list[str]], bool, str]]:
    """Yield hypotheses and references, whether case is ignored, and what the script printed.

    International tokenization is no metric of the paper.
    """
    for line in read_lines(FOLDER / table):
        name, references, option, printed = line.split("\t")
        if "--international-tokenization" in option:
            continue
        stem, _, _ = name.partition(".hyp.")
        # Their number, or the name of the one of two that counts.
        if references == "1":
            ends = ["ref"]
        elif references.isdigit():
            ends = [f"ref{number}" for number in range(int(references))]
        else:
            ends = [references]
        names = [name, *(f"{stem}.{end}" for end in ends)]
        texts = [golden_lines(FOLDER, each) for each in names]
        yield texts, option in ("-lc", "(case-insensitive)"), printed


def test_bleu_and_length_ratio_are_multi_bleu_perl() -> None:
    rows = list(rows_of("multi-bleu.tsv"))
    assert len(rows) == 56
    for texts, lowercase, printed in rows:
        score = corpus_bleu(*texts, lowercase=lowercase).score
        # Where no word is translated, it stops with a division by zero and prints nothing.
        found = re.search(r"BLEU = (\S+),.* ratio=([0-9.]+)", printed)
        expected = found.groups() if found else ("0.00", "0.000")
        assert (f"{score:.2f}", f"{length_ratio(*texts):.3f}") == expected


def test_detokenized_bleu_is_mteval_v13a() -> None:
    rows = list(rows_of("mteval-v13a.tsv"))
    assert len(rows) == 28
    for texts, lowercase, printed in rows:
        score = corpus_bleu(*texts, form="13a", lowercase=lowercase).score
        assert f"{score / 100:.4f}" == printed


@pytest.mark.parametrize(("form", "printed"), [("zh", "43.67"), ("char", "49.36")])
def test_other_scripts_are_scored_as_by_sacrebleu(form: BleuForm, printed: str) -> None:
    """``sacrebleu --tokenize FORM`` (2.6.0) prints these scores and signatures."""
    hypothesis = "彼は毎朝六時に川まで走ります。"
    reference = "彼は毎朝七時に川まで歩きます。"
    score = corpus_bleu([hypothesis], [reference], form=form)
    assert str(score) == printed
    signature = f"nrefs:1|case:mixed|eff:no|tok:{form}|smooth:exp|"
    assert score.signature.startswith(signature)
