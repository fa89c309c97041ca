"""An alignment finds the same links in any process, and after a stop between any two steps."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from convs2s.demo.corpus import read_demo_corpus
from convs2s.files.text import read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.fast_align import AlignmentState
from convs2s.text.links import read_links

Pairs = list[tuple[str, str]]
ALIGN = """
import sys
from convs2s.text.align import align_words
source, target, links = sys.argv[1:]
align_words(source=source, target=target, links=links, pairs=400, seed=7)
"""


def align(
    folder: Path,
    text: Pairs,
    name: str = "links",
    pairs: int | None = None,
    seed: int = 7,
) -> Path:
    """Align pairs, and return the file of links."""
    source, target, links = folder / "en", folder / "fr", folder / name
    write_lines(source, (english for english, _ in text))
    write_lines(target, (french for _, french in text))
    align_words(source=source, target=target, links=links, pairs=pairs, seed=seed)
    return links


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    """Nothing that differs between processes, such as the hashes of words, may change a link."""
    here = align(tmp_path, read_demo_corpus()["train"][:500], pairs=400)
    paths = (tmp_path / name for name in ("en", "fr", "there"))
    command = [sys.executable, "-c", ALIGN, *map(str, paths)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    assert here.read_bytes() == (tmp_path / "there").read_bytes()
    assert here.read_bytes().count(b"-") > 2000


def test_a_sample_is_drawn_by_its_seed(tmp_path: Path) -> None:
    def sample(seed: int) -> list[bool]:
        links = align(tmp_path, [("the house", "la maison")] * 10, pairs=3, seed=seed)
        return list(map(bool, read_links(links)))

    assert sum(sample(1)) == 3
    assert sample(1) == sample(1) != sample(2)


def test_an_alignment_that_is_stopped_goes_on_unless_it_is_of_another_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    keep = AlignmentState.keep

    def keep_and_stop(state: AlignmentState, **arrays: Any) -> None:
        keep(state, **arrays)
        kept.append(arrays.get("iterations"))
        raise KeyboardInterrupt

    monkeypatch.setattr(AlignmentState, "keep", keep_and_stop)
    pairs = read_demo_corpus()["train"][:200]
    for text in [pairs] * 10 + [pairs[::-1]]:
        with pytest.raises(KeyboardInterrupt):
            align(tmp_path, text)
    assert kept == [1, 2, 3, 4, None] * 2 + [1], "no iteration twice"
    monkeypatch.undo()
    for text in (pairs, pairs[::-1]):
        resumed = align(tmp_path, text).read_bytes()
        assert resumed == align(tmp_path, text, name="undisturbed").read_bytes()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"en", "fr", "links", "undisturbed"}


def test_pairs_without_links_harm_no_others(tmp_path: Path) -> None:
    unlinked = [("", "an empty side"), ("another", ""), ("the " * 1024, "la")]
    linked = [
        ("the house", "la maison"),
        ("a ||| b", "a ||| b"),
        ("the car", "la voiture"),
        ("the " * 1023, "la"),
    ]
    found = read_links(align(tmp_path, (linked + unlinked) * 3))
    for number, links in enumerate(found):
        assert bool(links) == (number % 7 < 4)
    assert list(read_lines(align(tmp_path, unlinked[:2]))) == ["", ""]
