"""What the filter drops and counts, and its report."""

import json
from pathlib import Path
from typing import Any

from convs2s.files.text import read_line_pairs
from convs2s.text.corpus_filter import (
    FilterReport,
    added_reports,
    tokenize_and_filter,
)
from convs2s.text.preparation import Preparation


def clean(
    folder: Path, pairs: list[tuple[str, str]], **changes: Any
) -> tuple[list[tuple[str, str]], FilterReport]:
    """Return the pairs that are left, and the report."""
    settings: dict[str, Any] = {"minimum": 2, "maximum": 4, "ratio": 1.5} | changes
    sides = (folder / "out.en", folder / "out.fr")
    path = folder / "report.json"
    report = tokenize_and_filter(iter(pairs), sides=sides, report=path, **settings)
    assert json.loads(path.read_text()) == report
    return list(read_line_pairs(*sides)), report


def test_every_pair_is_kept_or_counted(tmp_path: Path) -> None:
    pairs = [
        ("a b", "c d"),
        ("", "an empty side"),
        ("a b", " \u2028 "),
        ("one", "two words"),
        ("a b c d e", "a b c d"),
        ("a b", "a b c d"),
        ("a b", "a " + "x" * 2_000_000),
        ("a b", "a " + "x" * 1000),
        ("a | b", "c  \u00a0d"),
        ("a b c d", "a b c d"),
        ("aaaaaa bbb", "a b c"),
    ]
    left, report = clean(tmp_path, pairs)
    assert left == [pairs[0], pairs[7], pairs[0], *pairs[-2:]]
    reasons = {"empty": 2, "too_long": 1, "too_short": 1, "ratio": 1, "long_word": 1}
    reasons["overlap"] = 0
    settings = "preparation none, minimum 2, maximum 4, ratio 1.5"
    assert report == {"read": 11, "kept": 5, "dropped": reasons, "settings": settings}
    _, any_ratio = clean(tmp_path, [("a b", "a b c d")], ratio=None)
    assert any_ratio["kept"] == 1


def test_lines_are_prepared_before_they_are_judged(tmp_path: Path) -> None:
    """Bars stay where text comes tokenized."""
    line = "a || b |c| <unk> #"
    for name, kept in (("none", line), ("stanford", "a b c <unk> #")):
        prepare = (Preparation(name, "en").prepare,) * 2
        pairs = [(line, line), ("| | |", "a b c")]
        left, report = clean(tmp_path, pairs, maximum=6, prepare=prepare)
        assert left[0] == (kept, kept)
        assert report["dropped"]["empty"] == (name == "stanford")


def test_reports_of_parts_are_added(tmp_path: Path) -> None:
    paths = []
    for number, source in enumerate(("", "c d")):
        clean(tmp_path, [("a b", "x y"), (source, "x y")])
        path = tmp_path / f"{number}.json"
        paths.append((tmp_path / "report.json").rename(path))
    total = added_reports(paths)
    assert (total["read"], total["kept"], total["dropped"]["empty"]) == (4, 3, 1)
    assert total["settings"] == "preparation none, minimum 2, maximum 4, ratio 1.5"
