"""What the filter drops and counts, and its report."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.files.text import read_line_pairs
from convs2s.text.corpus_filter import FilterReport, tokenize_and_filter
from convs2s.text.preparation import Preparation

pytestmark = pytest.mark.usefixtures("in_folder")

REPORT = Path("report.json")


def clean(
    pairs: list[tuple[str, str]], **changes: Any
) -> tuple[list[tuple[str, str]], FilterReport]:
    """Return the pairs that are left, and the report."""
    settings = {"minimum": 2, "maximum": 4, "ratio": 1.5, **changes}
    sides = Path("out.en"), Path("out.fr")
    report = tokenize_and_filter(pairs, sides=sides, report=REPORT, **settings)
    assert json.loads(REPORT.read_text()) == report
    return list(read_line_pairs(*sides)), report


def test_every_pair_is_kept_or_counted() -> None:
    kept = [
        ("a b", "c d"),
        ("a b", "a " + "x" * 1000),
        ("a b c d", "a b c d"),
        ("aaaaaa bbb", "a b c"),
    ]
    dropped = [
        ("", "an empty side"),
        ("a b", " \u2028 "),
        ("one", "two words"),
        ("a b c d e", "a b c d"),
        ("a b", "a b c d"),
        ("a b", "a " + "x" * 2_000_000),
    ]
    left, report = clean([*dropped, *kept, ("a | b", "c  \u00a0d")])
    assert left == [*kept, ("a b", "c d")]
    assert report == yaml.safe_load("""
        read: 11
        kept: 5
        dropped: {empty: 2, too_long: 1, too_short: 1, ratio: 1, long_word: 1, overlap: 0}
        settings: preparation none, minimum 2, maximum 4, ratio 1.5
    """)
    _, any_ratio = clean([("a b", "a b c d")], ratio=None)
    assert any_ratio["kept"] == 1


def test_lines_are_prepared_before_they_are_judged() -> None:
    """Bars stay where text comes tokenized."""
    line = "a || b |c| <unk> #"
    for name, kept, empty in (("none", line, 0), ("stanford", "a b c <unk> #", 1)):
        prepare = Preparation(name, "en").prepare
        pairs = [(line, line), ("| | |", "a b c")]
        left, report = clean(pairs, maximum=6, prepare=(prepare, prepare))
        assert left[0] == (kept, kept)
        assert report["dropped"]["empty"] == empty
