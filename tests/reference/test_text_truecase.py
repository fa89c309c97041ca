"""Truecasing against Moses of May 2017 (Perl), on hand-written words.

The first line of ``moses/truecase.jsonl`` has the counts of ``train-truecaser.perl`` over the
words (``tokens``) of all other lines, which have what ``truecase.perl`` and ``detruecase.perl``
make of them. No two cases of a word are equally frequent: Perl takes either then.
"""

import json
from pathlib import Path

import pytest

from convs2s.files.text import read_lines, write_lines
from convs2s.text.truecase import (
    Truecaser,
    count_cases,
    detruecase,
    learn_truecaser,
    read_truecaser,
)

Lines = list[dict[str, str]]


@pytest.fixture(scope="module")
def original(root: Path) -> tuple[dict[str, int], Lines]:
    counts, *lines = map(
        json.loads, read_lines(root / "tests/reference/moses/truecase.jsonl")
    )
    return counts, lines


def test_cases_are_counted_alike(original: tuple[dict[str, int], Lines]) -> None:
    counts, lines = original
    assert count_cases(line["tokens"] for line in lines) == counts


def test_text_is_truecased_and_back_alike(
    original: tuple[dict[str, int], Lines], tmp_path: Path
) -> None:
    _, lines = original
    write_lines(tmp_path / "words", (line["tokens"] for line in lines))
    learn_truecaser(text=tmp_path / "words", output=tmp_path / "truecaser.tsv")
    truecase = Truecaser(read_truecaser(tmp_path / "truecaser.tsv"))
    assert len(lines) >= 25
    for line in lines:
        assert truecase(line["tokens"]) == line["truecased"]
        assert " ".join(detruecase(line["truecased"].split(" "))) == line["detruecased"]
