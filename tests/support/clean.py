"""The filter's outputs held to those of clean-corpus-n.perl."""

from pathlib import Path

from convs2s.files.text import read_line_pairs
from convs2s.text.corpus_filter import tokenize_and_filter
from tests.support.golden import golden_lines, plain_or_packed

CASES = [("r1.5.1-175", 175, 1.5), ("r1.5.1-250", 250, 1.5), ("r9.1-80", 80, 9.0)]
"""What is said of an output in its name, its limit of words, and its limit of the ratio."""


def assert_filtered(
    golden: Path,
    folder: Path,
    languages: tuple[str, str],
    pairs: int,
    name: str,
    maximum: int,
    ratio: float,
) -> None:
    """Filter ``in.LANGUAGE`` into a folder, and compare with ``out.NAME.LANGUAGE``."""
    report = tokenize_and_filter(
        read_line_pairs(*(plain_or_packed(golden, f"in.{side}") for side in languages)),
        sides=(folder / languages[0], folder / languages[1]),
        report=folder / "report.json",
        minimum=1,
        maximum=maximum,
        ratio=ratio,
    )
    for side in languages:
        wanted = golden_lines(golden, f"out.{name}.{side}")
        assert (folder / side).read_bytes().decode() == "".join(
            f"{line}\n" for line in wanted
        )
    kept = golden_lines(golden, f"out.{name}.lines")
    assert report["read"] == pairs
    assert report["kept"] == len(kept)
    assert sum(report["dropped"].values()) == pairs - len(kept)
