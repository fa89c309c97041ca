"""ROUGE of real text against the output of ROUGE-1.5.5.pl."""

from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from convs2s.scoring.rouge_stem import read_exceptions, rouge_stem
from tests.support.rouge_rows import rouge_case

CASES = {
    f"duc{system}.{case}": 112
    for system in "AB"
    for case in ("b75.m", "b75.nostem", "nob.m", "b75.m.best")
} | {f"giga{system}.{case}": 105 for system in "AB" for case in ("m", "nostem")}


@pytest.mark.parametrize("name", CASES)
def test_every_item_is_rouge_155s(shared: Path, name: str) -> None:
    case = rouge_case(shared / f"golden/rouge/{name}.out")
    assert len(case.printed) == CASES[name]
    exceptions = read_exceptions(shared / "golden/rouge/wordnet20.exceptions.tsv")
    assert case.ours(exceptions) == case.printed


def test_every_stem_is_rouge_155s(shared: Path) -> None:
    lines = [
        line.split("\t")
        for line in read_lines(shared / "golden/rouge/stems.rouge155.tsv")
    ]
    assert len(lines) == 53166
    assert [[word, rouge_stem(word)] for word, _ in lines] == lines
