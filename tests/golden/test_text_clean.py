"""The filter against clean-corpus-n.perl."""

from pathlib import Path

import pytest

from convs2s.text.corpus_filter import tokenize_and_filter


@pytest.mark.parametrize(
    ("name", "maximum", "ratio"),
    [("r1.5.1-175", 175, 1.5), ("r1.5.1-250", 250, 1.5), ("r9.1-80", 80, 9.0)],
)
def test_filter_is_clean_corpus_n(
    shared: Path, tmp_path: Path, name: str, maximum: int, ratio: float
) -> None:
    golden = shared / "golden" / "clean"
    report = tokenize_and_filter(
        raw=(golden / "in.en", golden / "in.de"),
        sides=(tmp_path / "en", tmp_path / "de"),
        report=tmp_path / "report.json",
        minimum=1,
        maximum=maximum,
        ratio=ratio,
    )
    for side in "en", "de":
        assert (tmp_path / side).read_bytes() == (golden / f"out.{name}.{side}").read_bytes()
    kept = (golden / f"out.{name}.lines").read_text().split()
    assert report["read"] == 644
    assert report["kept"] == len(kept)
    assert sum(report["dropped"].values()) == 644 - len(kept)
