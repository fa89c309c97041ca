"""Links and dictionaries against fast_align and Moses' symal."""

from pathlib import Path

import pytest

from convs2s.files.text import read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.links import read_links
from tests.support.alignments import counted_links, dictionary_of, symmetrized
from tests.support.golden import DATA, golden_lines, plain_or_packed

ALIGNED = 2000
"""How many pairs of the training text were aligned."""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    source, target = (
        tmp_path_factory.mktemp("aligned") / side for side in ("en", "fr")
    )
    for path in source, target:
        write_lines(
            path, golden_lines(DATA / "bpe", f"train.tok.{path.name}")[:ALIGNED]
        )
    return source, target


def test_links_are_those_of_symal() -> None:
    links = list(symmetrized(DATA / "align"))
    assert len(links) == ALIGNED
    assert links == list(read_links(plain_or_packed(DATA / "align", "symal.gdfa")))


def test_both_directions_are_those_of_fast_align(
    sides: tuple[Path, Path], tmp_path: Path
) -> None:
    source, target = sides
    aligned = align_words(
        source=source, target=target, links=tmp_path / "links", pairs=None
    )
    assert aligned == ALIGNED
    ours, wanted = tmp_path / "links", plain_or_packed(DATA / "align", "symal.gdfa")
    assert list(read_links(ours)) == list(read_links(wanted))


@pytest.mark.parametrize(
    ("links", "counted"),
    [
        ("fast_align.fwd", "fast_align.fwd"),
        ("fast_align.int", "fast_align.int"),
        ("fast_align.gdfa", "fast_align.gdfa"),
        ("symal.gdfa", "fast_align.symal-gdfa"),
    ],
)
def test_dictionary_has_the_most_frequent_targets(
    sides: tuple[Path, Path], tmp_path: Path, links: str, counted: str
) -> None:
    wanted = counted_links(DATA / "align", f"dict.{counted}.tsv")
    dictionary = dictionary_of(sides, plain_or_packed(DATA / "align", links), tmp_path)
    rows = list(read_lines(dictionary))[1:]
    assert rows[: len(wanted)] == wanted
    assert {row.split("\t")[3] for row in rows[len(wanted) :]} == {"1"}
