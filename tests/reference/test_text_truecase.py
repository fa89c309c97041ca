"""Truecasing against Moses of May 2017 (Perl), on hand-written words.

The first line of ``data/truecase.jsonl`` has the counts of ``train-truecaser.perl`` over the words
(``tokens``) of all other lines, which have what ``truecase.perl`` and ``detruecase.perl`` make of
them. No two cases of a word are equally frequent: Perl takes either then.
"""

import json
from pathlib import Path

from convs2s.files.text import read_lines, write_lines
from convs2s.text.truecase import (
    Truecaser,
    count_cases,
    detruecase,
    learn_truecaser,
    read_truecaser,
)
from tests.support.golden import DATA


def test_cases_are_counted_and_text_is_truecased_and_back_alike(tmp_path: Path) -> None:
    counts, *lines = map(json.loads, read_lines(DATA / "truecase.jsonl"))
    assert len(lines) >= 25
    tokens = [line["tokens"] for line in lines]
    assert count_cases(tokens) == counts
    write_lines(tmp_path / "words", tokens)
    learn_truecaser(text=tmp_path / "words", output=tmp_path / "truecaser.tsv")
    truecase = Truecaser(read_truecaser(tmp_path / "truecaser.tsv"))
    for line in lines:
        assert truecase(line["tokens"]) == line["truecased"]
        assert " ".join(detruecase(line["truecased"].split(" "))) == line["detruecased"]
