"""BLEU against the output of the original scripts, multi-bleu.perl and mteval-v13a.pl."""

import re
from collections.abc import Iterator
from pathlib import Path

from convs2s.config.bleu import BleuForm
from convs2s.files.text import read_lines
from convs2s.scoring.bleu import corpus_bleu, length_ratio
from tests.support.golden import golden_lines

MTEVAL = {
    "data": ("mteval-v13a.tsv", 28),
    "golden": ("mteval.nd16en.mteval-v13a.tsv", 12),
}
LONG = ("nt13de.3000", "nd16en.1999")
"""Test sets of so many lines; of the second, 500 are among the others."""


def rows_of(table: Path) -> Iterator[tuple[list[list[str]], bool, str]]:
    """Yield hypotheses and references, whether case is ignored, and what the script printed.

    International tokenization is no metric of the paper.
    """
    for line in read_lines(table):
        name, *stated, option, printed = line.split("\t")
        if name.startswith(LONG) or "--international-tokenization" in option:
            continue
        stem, _, _ = name.partition(".hyp.")
        # Their number, or the name of the one of two that counts.
        references = stated[0] if stated else "1"
        ends = [references]
        if references == "1":
            ends = ["ref"]
        elif references.isdigit():
            ends = [f"ref{number}" for number in range(int(references))]
        names = [name, *(f"{stem}.{end}" for end in ends)]
        texts = [golden_lines(table.parent, each) for each in names]
        yield texts, option in ("-lc", "(case-insensitive)"), printed


def test_bleu_and_length_ratio_are_multi_bleu_perl(golden: Path) -> None:
    rows = list(rows_of(golden / "bleu/multi-bleu.tsv"))
    assert len(rows) == 56
    for texts, lowercase, printed in rows:
        score = corpus_bleu(*texts, lowercase=lowercase).score
        # Where no word is translated, it stops with a division by zero and prints nothing.
        found = re.search(r"BLEU = (\S+),.* ratio=([0-9.]+)", printed)
        expected = found.groups() if found else ("0.00", "0.000")
        assert (f"{score:.2f}", f"{length_ratio(*texts):.3f}") == expected


def test_detokenized_bleu_is_mteval_v13a(golden: Path) -> None:
    table, count = MTEVAL[golden.name]
    rows = list(rows_of(golden / "bleu" / table))
    assert len(rows) == count
    for texts, lowercase, printed in rows:
        score = corpus_bleu(*texts, form="13a", lowercase=lowercase).score
        assert f"{score / 100:.4f}" == printed


CHINESE = ["她每天早上六点去河边跑步。", "她每天早上七点去河边散步。"]
JAPANESE = ["彼は毎朝六時に川まで走ります。", "彼は毎朝七時に川まで歩きます。"]
THAI = ["เธอวิ่งไปที่แม่น้ำทุกเช้า", "เธอเดินไปที่แม่น้ำทุกเย็น"]
UKRAINIAN = [
    "Вона біжить о шостій; так, до річки.",
    "Вона біжить о сьомій; так, до річки.",
]
FORMS: list[tuple[list[str], BleuForm, str]] = [
    (CHINESE, "13a", "0.00"),
    (CHINESE, "zh", "52.66"),
    (CHINESE, "char", "52.66"),
    (JAPANESE, "zh", "43.67"),
    (JAPANESE, "char", "49.36"),
    (THAI, "char", "64.04"),
    (UKRAINIAN, "13a", "65.80"),
    (UKRAINIAN, "intl", "65.80"),
    (UKRAINIAN, "none", "41.11"),
]
"""Text, the option, and what ``sacrebleu --tokenize OPTION`` (2.6.0) prints."""


def test_other_scripts_are_scored_as_by_sacrebleu() -> None:
    for (hypothesis, reference), form, printed in FORMS:
        score = corpus_bleu([hypothesis], [reference], form=form)
        assert str(score) == printed
        signature = f"nrefs:1|case:mixed|eff:no|tok:{form}|smooth:exp|"
        assert score.signature.startswith(signature)
