"""Links and dictionaries against fast_align and Moses' symal, and by hand."""

from pathlib import Path

import pytest

from convs2s.files.text import read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.dictionary import build_dictionary
from convs2s.text.links import Link, grow_diag_final_and, read_links
from tests.support.golden import DATA, golden_lines, plain_or_packed


def links_of(name: str) -> list[list[Link]]:
    return list(read_links(plain_or_packed(DATA / "align", name)))


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """The text that was aligned: the first 2,000 pairs."""
    paths = tmp_path / "en", tmp_path / "fr"
    for path in paths:
        write_lines(path, golden_lines(DATA / "bpe", f"train.tok.{path.name}")[:2000])
    return paths


def test_links_of_both_directions_are_joined_as_by_symal() -> None:
    names = "fast_align.fwd", "fast_align.rev", "symal.gdfa"
    rows = zip(*(links_of(name) for name in names), strict=True)
    for forward, reverse, joined in rows:
        assert grow_diag_final_and(forward, reverse) == joined


def test_alignment_finds_fast_aligns_links(
    sides: tuple[Path, Path], tmp_path: Path
) -> None:
    source, target = sides
    align_words(source=source, target=target, links=tmp_path / "links", pairs=None)
    assert list(read_links(tmp_path / "links")) == links_of("symal.gdfa")


def test_dictionary_has_the_most_frequent_targets(
    sides: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = DATA / "align"
    source, target = sides
    build_dictionary(
        source=source,
        target=target,
        links=plain_or_packed(folder, "symal.gdfa"),
        dictionary=tmp_path / "dictionary",
        candidates=tmp_path / "candidates",
    )
    wanted = []
    for line in golden_lines(folder, "dict.fast_align.symal-gdfa.tsv"):
        word, frequency, translation, count, _ = line.split("\t")
        if translation:  # a word that no link reaches is in no dictionary
            wanted.append(f"{word}\t{translation}\t{count}\t{frequency}")
    _, *rows = read_lines(tmp_path / "dictionary")
    assert rows[: len(wanted)] == wanted
    assert {row.split("\t")[3] for row in rows[len(wanted) :]} == {"1"}
