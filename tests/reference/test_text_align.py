"""Links and dictionaries against fast_align and Moses' symal, and by hand."""

from itertools import starmap
from pathlib import Path

import numpy as np
import pytest

from convs2s.files.text import read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.dictionary import build_dictionary
from convs2s.text.fast_align import _digamma
from convs2s.text.links import Link, grow_diag_final_and, read_links
from tests.support.golden import golden_lines, plain_or_packed

TARGETS = {"data": "fr", "golden": "de"}
COUNTED = {
    "data": {
        "fast_align.fwd": "dict.fast_align.fwd.tsv",
        "fast_align.int": "dict.fast_align.int.tsv",
        "fast_align.gdfa": "dict.fast_align.gdfa.tsv",
        "symal.gdfa": "dict.fast_align.symal-gdfa.tsv",
    },
    "golden": {"symal.gdfa": "dict.fast_align.symal-gdfa.top2000.tsv"},
}
"""Links and the table of counts of them."""


def links_of(golden: Path, name: str) -> list[list[Link]]:
    return list(read_links(plain_or_packed(golden / "align", name)))


@pytest.fixture
def sides(golden: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The text that was aligned: the first 2,000 pairs of ours, all of the real one."""
    count = len(links_of(golden, "symal.gdfa"))
    assert count == {"data": 2000, "golden": 29_000}[golden.name]
    paths = (tmp_path / "en", tmp_path / TARGETS[golden.name])
    for path in paths:
        lines = golden_lines(golden / "bpe", f"train.tok.{path.name}")
        write_lines(path, lines[:count])
    return paths


def test_links_of_both_directions_are_joined_as_by_symal(golden: Path) -> None:
    forward = links_of(golden, "fast_align.fwd")
    reverse = links_of(golden, "fast_align.rev")
    both = list(zip(forward, reverse, strict=True))[:5000]
    expected = links_of(golden, "symal.gdfa")[:5000]
    assert list(starmap(grow_diag_final_and, both)) == expected


@pytest.mark.parametrize("golden", ["own"], indirect=True)
def test_alignment_finds_fast_aligns_links(
    golden: Path, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of real text, the test takes minutes: it runs on ours alone."""
    source, target = sides
    links = tmp_path / "links"
    aligned = align_words(source=source, target=target, links=links, pairs=None)
    expected = links_of(golden, "symal.gdfa")
    assert list(read_links(links)) == expected
    assert aligned == len(expected)


def test_digamma_at_a_half_and_at_one() -> None:
    expected = -np.euler_gamma - np.log([4, 1])
    assert _digamma(np.array([0.5, 1.0])) == pytest.approx(expected, abs=1e-10)


def test_dictionary_has_the_most_frequent_targets(
    golden: Path, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    source, target = sides
    for links, table in COUNTED[golden.name].items():
        build_dictionary(
            source=source,
            target=target,
            links=plain_or_packed(golden / "align", links),
            dictionary=tmp_path / "dictionary",
            candidates=tmp_path / "candidates",
        )
        wanted = []
        for line in golden_lines(golden / "align", table):
            word, frequency, translation, count, _ = line.split("\t")
            if translation:  # a word that no link reaches is in no dictionary
                wanted.append(f"{word}\t{translation}\t{count}\t{frequency}")
        _, *rows = read_lines(tmp_path / "dictionary")
        assert rows[: len(wanted)] == wanted
        if golden.name == "data":  # the other table ends after 2,000 words
            assert {row.split("\t")[3] for row in rows[len(wanted) :]} == {"1"}
