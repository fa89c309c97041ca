"""The filter against clean-corpus-n.perl."""

from pathlib import Path

from convs2s.files.text import read_line_pairs, read_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from tests.support.golden import golden_lines, plain_or_packed

TARGETS = {"data": ("fr", 318), "golden": ("de", 644)}


def test_filter_is_clean_corpus_n(golden: Path, tmp_path: Path) -> None:
    folder = golden / "clean"
    language, pairs = TARGETS[golden.name]
    languages = ("en", language)
    sides = tmp_path / "en", tmp_path / language
    for name, maximum, ratio in (
        ("r1.5.1-175", 175, 1.5),
        ("r1.5.1-250", 250, 1.5),
        ("r9.1-80", 80, 9.0),
    ):
        report = tokenize_and_filter(
            read_line_pairs(
                *(plain_or_packed(folder, f"in.{one}") for one in languages)
            ),
            sides=sides,
            report=tmp_path / "report.json",
            minimum=1,
            maximum=maximum,
            ratio=ratio,
        )
        for path in sides:
            wanted = golden_lines(folder, f"out.{name}.{path.name}")
            assert list(read_lines(path)) == wanted
        kept = len(golden_lines(folder, f"out.{name}.lines"))
        assert (report["read"], report["kept"]) == (pairs, kept)
        assert sum(report["dropped"].values()) == pairs - kept
