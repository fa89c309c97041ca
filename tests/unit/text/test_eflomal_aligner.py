"""eflomal in fast_align's place: asked for alone, and refused in one line where it is not there."""

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.links import read_links

LINES = {
    "en": ["the house", "", "the red car"] * 4,
    "fr": ["la maison", "x", "la voiture"] * 4,
}


Align = partial[int]


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
        pairs = zip(source, target, strict=True)
        lengths = [min(len(one.split()), len(other.split())) for one, other in pairs]
        links = [" ".join(f"{i}-{i}" for i in range(length)) for length in lengths]
        write_lines(links_filename_fwd, links)
        write_lines(links_filename_rev, ["0-0"] * len(links))


@pytest.fixture
def align(tmp_path: Path) -> Align:
    for language, lines in LINES.items():
        write_lines(tmp_path / language, lines)
    source, target = (tmp_path / language for language in LINES)
    return partial(align_words, source=source, target=target, pairs=None)


def test_its_links_are_joined_as_fast_aligns_are(
    align: Align, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("eflomal")
    module.__dict__["Aligner"] = OneToOne
    monkeypatch.setitem(sys.modules, "eflomal", module)
    links = tmp_path / "alignment/links"
    assert align(links=links, aligner="eflomal") == 8
    assert list(read_lines(links)) == ["0-0 1-1", "", "0-0 1-1"] * 4
    assert [path.name for path in links.parent.iterdir()] == ["links"]


def test_where_it_is_not_installed(
    align: Align, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    message = r"^alignment.aligner: eflomal is not installed: run pip install 'convs2s\[eflomal\]'"
    with pytest.raises(UserError, match=message):
        align(links=tmp_path / "links", aligner="eflomal")
    assert not (tmp_path / "links").exists()
    align(links=tmp_path / "links")  # does without


def test_the_real_one(align: Align, tmp_path: Path) -> None:
    pytest.importorskip("eflomal", reason="eflomal is not installed")
    align(links=tmp_path / "links", aligner="eflomal")
    found = list(read_links(tmp_path / "links"))
    assert [bool(links) for links in found] == [True, False, True] * 4
