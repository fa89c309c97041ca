"""The filter: reasons, counts, and outputs that appear whole or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.data.corpus import RawText, extract_corpus
from convs2s.errors import UserError
from convs2s.files.text import read_line_pairs, read_lines, write_lines
from convs2s.text.corpus_filter import (
    REASONS,
    FilterReport,
    added_reports,
    reason_to_drop,
    tidy,
    tokenize_and_filter,
)
from tests.support.local_files import FilesBelow


def clean(
    folder: Path, source: list[str], target: list[str], **changes: Any
) -> FilterReport:
    settings: dict[str, Any] = {"minimum": 2, "maximum": 4, "ratio": 1.5}
    write_lines(folder / "in.en", source)
    write_lines(folder / "in.fr", target)
    return tokenize_and_filter(
        read_line_pairs(folder / "in.en", folder / "in.fr"),
        sides=(folder / "out.en", folder / "out.fr"),
        report=folder / "report.json",
        **settings | changes,
    )


def test_every_pair_is_kept_or_counted(tmp_path: Path) -> None:
    pairs = [
        ("a b", "c d"),
        ("", "an empty side"),
        ("a b", " \u2028 "),
        ("one", "two words"),
        ("a b c d e", "a b c d"),
        ("a b", "a b c d"),
        ("a b", "a " + "x" * 1001),
        ("a | b", "c  \u00a0d"),
    ]
    report = clean(
        tmp_path, [source for source, _ in pairs], [target for _, target in pairs]
    )
    reasons = {"empty": 2, "too_long": 1, "too_short": 1, "ratio": 1, "long_word": 1}
    settings = "preparation none, minimum 2, maximum 4, ratio 1.5"
    assert report == {"read": 8, "kept": 2, "dropped": reasons, "settings": settings}
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert list(read_lines(tmp_path / "out.en")) == ["a b", "a b"]
    assert list(read_lines(tmp_path / "out.fr")) == ["c d", "c d"]


def test_no_ratio_means_any_ratio(tmp_path: Path) -> None:
    assert clean(tmp_path, ["a b"], ["a b c d"], ratio=None)["kept"] == 1


@pytest.mark.parametrize(("source", "target"), [(3, 2), (2, 3)])
def test_sides_of_different_length_leave_nothing_behind(
    tmp_path: Path, source: int, target: int
) -> None:
    with pytest.raises(
        UserError, match=rf"in.en has {source} lines but .*in.fr has {target}"
    ):
        clean(tmp_path, ["a b"] * source, ["c d"] * target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "in.fr"]


def test_blanks_are_those_of_perl() -> None:
    assert tidy(" a\tb\u3000\u2028c ") == "a b c"
    assert tidy("a\x1cb") == "a\x1cb"


def test_limits_are_inclusive() -> None:
    assert reason_to_drop("a b c", "a b", minimum=2, maximum=3, ratio=1.5) is None


def test_lines_are_prepared_before_they_are_judged(tmp_path: Path) -> None:
    prepare = (lambda line: line.replace(",", " , "), str.lower)
    report = clean(
        tmp_path, ["A.", "A,B"], ["C D", "C"], minimum=1, maximum=None, prepare=prepare
    )
    assert report["dropped"]["ratio"] == 2
    assert (tmp_path / "out.en").read_bytes() == b""


def test_reports_of_parts_are_added(tmp_path: Path) -> None:
    reports = []
    for number, source in enumerate((["a b", ""], ["c d", "e f"])):
        clean(tmp_path, source, ["x y", "x y"])
        reports.append((tmp_path / "report.json").rename(tmp_path / f"{number}.json"))
    total = added_reports(reports)
    assert (total["read"], total["kept"], total["dropped"]["empty"]) == (4, 3, 1)
    assert total["settings"] == "preparation none, minimum 2, maximum 4, ratio 1.5"


def test_planted_pairs_of_the_mirror_are_dropped(shared: Path, tmp_path: Path) -> None:
    raw, kept = (
        (tmp_path / f"{name}.en", tmp_path / f"{name}.fr") for name in ("raw", "kept")
    )
    archive = shared / "mirror/www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
    pairs = [(f"{archive}#commoncrawl.fr-en.en", f"{archive}#commoncrawl.fr-en.fr")]
    extract_corpus(RawText(pairs, FilesBelow(tmp_path)), output=raw)
    limits: dict[str, Any] = {"minimum": 1, "maximum": 175, "ratio": 1.5}
    report_path = tmp_path / "report.json"
    pairs_of_lines = read_line_pairs(*raw)
    report = tokenize_and_filter(
        pairs_of_lines, sides=kept, report=report_path, **limits
    )
    assert report["read"] == 20_462
    assert report["dropped"] | {"ratio": 0} == dict.fromkeys(REASONS, 0) | {
        "too_long": 60,
        "empty": 2,
    }
    assert report["dropped"]["ratio"] >= 400
