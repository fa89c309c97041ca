"""BLEU against the output of the original scripts, multi-bleu.perl and mteval-v13a.pl."""

import re
from collections.abc import Iterator
from pathlib import Path

from convs2s.files.text import read_lines
from convs2s.scoring.bleu import detokenized_bleu, length_ratio, tokenized_bleu
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
        score = tokenized_bleu(*texts, lowercase=lowercase).score
        # Where no word is translated, it stops with a division by zero and prints nothing.
        found = re.search(r"BLEU = (\S+),.* ratio=([0-9.]+)", printed)
        expected = found.groups() if found else ("0.00", "0.000")
        assert (f"{score:.2f}", f"{length_ratio(*texts):.3f}") == expected


def test_detokenized_bleu_is_mteval_v13a(golden: Path) -> None:
    table, count = MTEVAL[golden.name]
    rows = list(rows_of(golden / "bleu" / table))
    assert len(rows) == count
    for texts, lowercase, printed in rows:
        score = detokenized_bleu(*texts, lowercase=lowercase).score
        assert f"{score / 100:.4f}" == printed
