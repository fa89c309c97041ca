"""BLEU against the output of the original scripts, multi-bleu.perl and mteval-v13a.pl."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.files import read_lines
from convs2s.scoring.bleu import detokenized_bleu, length_ratio, tokenized_bleu


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "golden" / "bleu"


def rows(table: Path) -> Iterator[list[str]]:
    return (line.split("\t") for line in read_lines(table))


def lines(path: Path) -> list[str]:
    return list(read_lines(path))


def references(golden: Path, hypothesis: str, count: int) -> list[list[str]]:
    stem = hypothesis.split(".hyp.")[0]
    names = [f"{stem}.ref"] if count == 1 else [f"{stem}.ref{i}" for i in range(count)]
    return [lines(golden / name) for name in names]


def test_tokenized_bleu_is_multi_bleu_perl(golden: Path) -> None:
    checked = 0
    for name, count, option, printed in rows(golden / "multi-bleu.tsv"):
        score = tokenized_bleu(
            lines(golden / name),
            *references(golden, name, int(count)),
            lowercase=option == "-lc",
        )
        # where no word is translated the script stops with a division by zero and prints nothing
        expected = printed.split(" ")[2].rstrip(",") if printed else "0.00"
        assert f"{score.score:.2f}" == expected, (name, option)
        checked += 1
    assert checked == 80


def test_length_ratio_is_multi_bleu_perl(golden: Path) -> None:
    for name, count, _, printed in rows(golden / "multi-bleu.tsv"):
        ratio = length_ratio(lines(golden / name), *references(golden, name, int(count)))
        match = re.search(r"ratio=([0-9.]+)", printed)
        assert f"{ratio.score:.3f}" == (match[1] if match else "0.000"), name


@pytest.mark.parametrize("corpus", ["nd16en", "nt13de"])
def test_detokenized_bleu_is_mteval_v13a(golden: Path, corpus: str) -> None:
    checked = 0
    for name, option, printed in rows(golden / f"mteval.{corpus}.mteval-v13a.tsv"):
        if "--international-tokenization" in option:
            continue  # not a metric of the paper
        score = detokenized_bleu(
            lines(golden / name), *references(golden, name, 1), lowercase=option != "-c"
        )
        assert f"{score.score / 100:.4f}" == printed, (name, option)
        checked += 1
    assert checked == 12
