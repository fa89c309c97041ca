"""eflomal in fast_align's place."""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from convs2s.files.text import read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.links import read_links


class OneToOne:
    """Stands in for eflomal: links words of the same place; the reverse has the first one alone."""

    def __init__(self, null_prior: float) -> None:
        assert null_prior == 0.003

    def align(
        self,
        source: Iterable[str],
        target: Iterable[str],
        *,
        links_filename_fwd: str,
        links_filename_rev: str,
    ) -> None:
        links = []
        for one, other in zip(source, target, strict=True):
            length = min(len(one.split()), len(other.split()))
            links.append(" ".join(f"{i}-{i}" for i in range(length)))
        write_lines(links_filename_fwd, links)
        write_lines(links_filename_rev, ["0-0"] * len(links))


def align(folder: Path) -> Path:
    write_lines(folder / "en", ["the house", "", "the red car"] * 4)
    write_lines(folder / "fr", ["la maison", "x", "la voiture"] * 4)
    links = folder / "alignment/links"
    aligned = align_words(
        source=folder / "en",
        target=folder / "fr",
        links=links,
        pairs=None,
        aligner="eflomal",
    )
    assert aligned == 8
    assert [path.name for path in links.parent.iterdir()] == ["links"]
    return links


def test_its_links_are_joined_as_fast_aligns_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("eflomal")
    module.__dict__["Aligner"] = OneToOne
    monkeypatch.setitem(sys.modules, "eflomal", module)
    assert list(read_lines(align(tmp_path))) == ["0-0 1-1", "", "0-0 1-1"] * 4


def test_the_real_one(tmp_path: Path) -> None:
    pytest.importorskip("eflomal", reason="eflomal is not installed")
    found = read_links(align(tmp_path))
    assert [bool(links) for links in found] == [True, False, True] * 4
