"""The filter against clean-corpus-n.perl."""

from pathlib import Path

import pytest

from convs2s.files.text import read_line_pairs, read_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from tests.support.golden import golden_lines, plain_or_packed

TARGETS = {"data": ("fr", 318), "golden": ("de", 644)}


@pytest.mark.parametrize(
    ("name", "maximum", "ratio"),
    [("r1.5.1-175", 175, 1.5), ("r1.5.1-250", 250, 1.5), ("r9.1-80", 80, 9.0)],
)
def test_filter_is_clean_corpus_n(
    golden: Path, tmp_path: Path, name: str, maximum: int, ratio: float
) -> None:
    folder = golden / "clean"
    language, pairs = TARGETS[golden.name]
    languages = ("en", language)
    source, target = (plain_or_packed(folder, f"in.{side}") for side in languages)
    report = tokenize_and_filter(
        read_line_pairs(source, target),
        sides=(tmp_path / "en", tmp_path / language),
        report=tmp_path / "report.json",
        minimum=1,
        maximum=maximum,
        ratio=ratio,
    )
    for side in languages:
        wanted = golden_lines(folder, f"out.{name}.{side}")
        assert list(read_lines(tmp_path / side)) == wanted
    kept = len(golden_lines(folder, f"out.{name}.lines"))
    assert (report["read"], report["kept"]) == (pairs, kept)
    assert sum(report["dropped"].values()) == pairs - kept
