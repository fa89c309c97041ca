"""Links and dictionaries of real text against fast_align and Moses' symal."""

from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from convs2s.text.align import align_words
from convs2s.text.links import read_links
from tests.support.alignments import dictionary_of, symmetrized


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "golden" / "align"


@pytest.fixture(scope="module")
def sides(shared: Path) -> tuple[Path, Path]:
    folder = shared / "golden" / "bpe"
    return folder / "train.tok.en", folder / "train.tok.de"


def test_links_are_those_of_symal(golden: Path) -> None:
    assert symmetrized(golden, "fast_align") == list(read_links(golden / "symal.gdfa"))


def test_dictionary_of_symal_links(golden: Path, sides: tuple[Path, Path], tmp_path: Path) -> None:
    dictionary = dictionary_of(sides, golden / "symal.gdfa", tmp_path)
    wanted = []
    for line in read_lines(golden / "dict.fast_align.symal-gdfa.top2000.tsv"):
        source, frequency, target, count, _ = line.split("\t")
        wanted.append(f"{source}\t{target}\t{count}\t{frequency}")
    assert list(read_lines(dictionary))[1:2001] == wanted


@pytest.mark.slow
def test_links_of_both_directions(golden: Path, sides: tuple[Path, Path], tmp_path: Path) -> None:
    (source, target), links = sides, tmp_path / "links"
    assert align_words(source=source, target=target, links=links, pairs=None) == 29_000
    assert list(read_links(links)) == list(read_links(golden / "symal.gdfa"))
