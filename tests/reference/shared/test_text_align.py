"""Links and dictionaries of real text against fast_align and Moses' symal."""

from itertools import islice
from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from convs2s.text.align import align_words
from convs2s.text.links import read_links
from tests.support.alignments import counted_links, dictionary_of, symmetrized


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "golden" / "align"


@pytest.fixture(scope="module")
def sides(shared: Path) -> tuple[Path, Path]:
    folder = shared / "golden" / "bpe"
    return folder / "train.tok.en", folder / "train.tok.de"


@pytest.mark.parametrize("lines", [5000, pytest.param(29_000, marks=pytest.mark.slow)])
def test_links_are_those_of_symal(golden: Path, lines: int) -> None:
    ours, wanted = symmetrized(golden), read_links(golden / "symal.gdfa")
    first = list(islice(ours, lines))
    assert len(first) == lines
    assert first == list(islice(wanted, lines))


def test_dictionary_of_symal_links(
    golden: Path, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    dictionary = dictionary_of(sides, golden / "symal.gdfa", tmp_path)
    wanted = counted_links(golden, "dict.fast_align.symal-gdfa.top2000.tsv")
    assert list(read_lines(dictionary))[1:2001] == wanted


@pytest.mark.slow
def test_links_of_both_directions(
    golden: Path, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    (source, target), links = sides, tmp_path / "links"
    assert align_words(source=source, target=target, links=links, pairs=None) == 29_000
    assert list(read_links(links)) == list(read_links(golden / "symal.gdfa"))
