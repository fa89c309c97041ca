"""eflomal in fast_align's place: CI installs it for this test."""

from pathlib import Path

import pytest

from convs2s.files.text import write_lines
from convs2s.text.align import align_words
from convs2s.text.links import read_links


def test_it_links_what_can_be_aligned(tmp_path: Path) -> None:
    pytest.importorskip("eflomal", reason="eflomal is not installed")
    write_lines(tmp_path / "en", ["the house", "", "the red car"] * 4)
    write_lines(tmp_path / "fr", ["la maison", "x", "la voiture"] * 4)
    links = tmp_path / "links"
    aligned = align_words(
        source=tmp_path / "en",
        target=tmp_path / "fr",
        links=links,
        pairs=None,
        aligner="eflomal",
    )
    assert aligned == 8
    assert list(map(bool, read_links(links))) == [True, False, True] * 4
