"""Alignment and the tables made of it, on toy corpora with every hazard."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from convs2s.demo.corpus import read_demo_corpus
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.text.align import align_words
from convs2s.text.dictionary import build_dictionary, read_candidates, read_dictionary
from convs2s.text.fast_align import AlignmentState, _Model
from convs2s.text.links import grow_diag_final_and, read_links

PAIRS = [
    ("the house", "la maison"),
    ("a ||| b", "a ||| b"),
    ("", "an empty side"),
    ("another", ""),
    ("the " * 1024, "la"),
    ("the car", "la voiture"),
    ("the", "la"),
] * 3


def written(folder: Path, pairs: list[tuple[str, str]]) -> tuple[Path, Path]:
    paths = folder / "corpus.en", folder / "corpus.fr"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        write_lines(path, side)
    return paths


def test_hazardous_pairs_have_no_links_and_harm_no_others(tmp_path: Path) -> None:
    source, target = written(tmp_path, PAIRS)
    links_path = tmp_path / "alignment" / "links"
    assert align_words(source=source, target=target, links=links_path, pairs=None) == 12
    links = list(read_links(links_path))
    assert len(links) == len(PAIRS)
    for (source_line, target_line), pair in zip(PAIRS, links, strict=True):
        assert bool(pair) == (0 < len(source_line.split()) < 1024 and target_line != "")
        assert all(i < len(source_line.split()) for i, _ in pair)
        assert all(j < len(target_line.split()) for _, j in pair)
    assert [path.name for path in links_path.parent.iterdir()] == ["links"]


def test_a_sample_is_drawn_by_its_seed(tmp_path: Path) -> None:
    source, target = written(tmp_path, [("the house", "la maison")] * 10)

    def drawn(seed: int) -> list[bool]:
        path = tmp_path / "links"
        assert (
            align_words(source=source, target=target, links=path, pairs=3, seed=seed)
            == 3
        )
        return [bool(links) for links in read_links(path)]

    samples = [drawn(seed) for seed in range(5)]
    assert drawn(0) == samples[0]
    assert len({tuple(sample) for sample in samples}) > 1


ALIGN = """
import sys
from convs2s.text.align import align_words
source, target, links = sys.argv[1:]
align_words(source=source, target=target, links=links, pairs=400, seed=7)
"""


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    """Nothing that differs between processes, such as the hashes of words, may change a link."""
    source, target = written(tmp_path, read_demo_corpus()["train"][:500])
    here, there = tmp_path / "here", tmp_path / "there"
    align_words(source=source, target=target, links=here, pairs=400, seed=7)
    command = [sys.executable, "-c", ALIGN, *map(str, (source, target, there))]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    assert here.read_bytes() == there.read_bytes()
    assert here.read_bytes().count(b"-") > 2000


class StoppedError(Exception):
    """Stands for a kill."""


def test_an_alignment_that_is_stopped_goes_on_to_the_same_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = written(tmp_path, read_demo_corpus()["train"][:200])
    align = partial(align_words, source=source, target=target, pairs=None)
    align(links=tmp_path / "links")
    keep, iterate = AlignmentState.keep, _Model.iterate
    iterations = []

    def keep_and_stop(state: AlignmentState, **arrays: Any) -> None:
        keep(state, **arrays)
        raise StoppedError

    def count(model: _Model) -> float:
        iterations.append(model)
        return iterate(model)

    monkeypatch.setattr(AlignmentState, "keep", keep_and_stop)
    monkeypatch.setattr(_Model, "iterate", count)
    stopped = tmp_path / "stopped" / "links"
    for _ in range(2 * 5):
        with pytest.raises(StoppedError):
            align(links=stopped)
    align(links=stopped)
    assert stopped.read_bytes() == (tmp_path / "links").read_bytes()
    assert len(iterations) == 2 * 4, "no iteration twice"
    assert [path.name for path in stopped.parent.iterdir()] == ["links"]


def test_a_state_of_another_text_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = read_demo_corpus()["train"][:200]
    links = tmp_path / "links"
    for kept, read in ((pairs, pairs[::-1]), (pairs[::-1], pairs)):
        source, target = written(tmp_path, kept)
        with monkeypatch.context() as patched:
            patched.setattr(_Model, "links", Mock(side_effect=StoppedError))
            with pytest.raises(StoppedError):
                align_words(source=source, target=target, links=links, pairs=None)
        source, target = written(tmp_path, read)
        align_words(source=source, target=target, links=links, pairs=None)
        align_words(
            source=source, target=target, links=tmp_path / "undisturbed", pairs=None
        )
        assert links.read_bytes() == (tmp_path / "undisturbed").read_bytes()
    assert not (tmp_path / "links.state").exists()


def test_nothing_to_align(tmp_path: Path) -> None:
    source, target = written(tmp_path, [("", "x"), ("x", "")])
    assert (
        align_words(source=source, target=target, links=tmp_path / "links", pairs=None)
        == 0
    )
    assert list(read_lines(tmp_path / "links")) == ["", ""]


def test_sides_of_different_length_are_an_error(tmp_path: Path) -> None:
    source, target = written(tmp_path, PAIRS)
    write_lines(target, ["la maison"])
    with pytest.raises(
        UserError, match=r"corpus.en has 21 lines but .*corpus.fr has 1:"
    ):
        align_words(source=source, target=target, links=tmp_path / "links", pairs=None)


def test_growing_final_and() -> None:
    agreed = [(0, 0)]
    assert grow_diag_final_and(agreed, agreed) == [(0, 0)]
    assert grow_diag_final_and([(0, 0), (0, 1)], agreed) == [(0, 0), (0, 1)], (
        "beside a link"
    )
    assert grow_diag_final_and([(0, 0), (1, 1)], agreed) == [(0, 0), (1, 1)], (
        "at its corner"
    )
    apart = [(0, 0), (1, 5)]
    corner = grow_diag_final_and([*apart, (1, 1)], apart)
    assert corner == [(0, 0), (1, 1), (1, 5)], "at a corner, of a word that has a link"
    assert grow_diag_final_and(agreed, [(0, 0), (5, 5)]) == [(0, 0), (5, 5)], "final"
    assert grow_diag_final_and([(0, 0), (0, 5)], agreed) == [(0, 0)], (
        "and: both words free"
    )
    assert grow_diag_final_and([(4, 5)], [(4, 6)]) == [(4, 5)], "forward first"


def count_links(folder: Path, pairs: list[tuple[str, str]], links: list[str]) -> None:
    source, target = written(folder, pairs)
    write_lines(folder / "links", links)
    build_dictionary(
        source=source,
        target=target,
        links=folder / "links",
        dictionary=folder / "dictionary.tsv",
        candidates=folder / "candidates.tsv",
    )


def test_dictionary_and_candidates(tmp_path: Path) -> None:
    pairs = [("source b", "z y"), ("source", "y"), ("b ||| c", "é z"), ("b b", "e")]
    count_links(tmp_path, pairs, ["0-0 1-1", "0-0", "0-0 1-0 2-1", ""])
    assert list(read_lines(tmp_path / "dictionary.tsv")) == [
        "source\ttarget\tcount\tsource_count",
        "b\ty\t1\t4",
        "source\ty\t1\t2",
        "c\tz\t1\t1",
        "|||\té\t1\t1",
    ]
    assert list(read_lines(tmp_path / "candidates.tsv")) == [
        "source\ttargets",
        "b\ty é",
        "source\ty z",
        "c\tz",
        "|||\té",
    ]
    assert read_dictionary(tmp_path / "dictionary.tsv") == {
        "b": "y",
        "source": "y",
        "c": "z",
        "|||": "é",
    }


def test_the_most_frequent_word_is_taken_whatever_its_letters(tmp_path: Path) -> None:
    targets = ["rare", "zebra", "zebra", "zebra", "often", "often", "a"]
    count_links(
        tmp_path, [("word", target) for target in targets], ["0-0"] * len(targets)
    )
    assert read_dictionary(tmp_path / "dictionary.tsv") == {"word": "zebra"}
    assert list(read_lines(tmp_path / "dictionary.tsv"))[1] == "word\tzebra\t3\t7"
    assert list(read_candidates(tmp_path / "candidates.tsv")) == [
        ("word", ["zebra", "often", "a", "rare"])
    ]


def test_reserved_words_are_in_no_dictionary(tmp_path: Path) -> None:
    """``<unk>`` of the text is no translation, however often it is aligned."""
    pairs = [("name <unk>", "<unk> the")] * 2 + [("name", "nom")]
    count_links(tmp_path, pairs, ["0-0 1-1", "0-0 1-1", "0-0"])
    assert list(read_lines(tmp_path / "dictionary.tsv"))[1:] == ["name\tnom\t1\t3"]
    assert list(read_candidates(tmp_path / "candidates.tsv")) == [("name", ["nom"])]


def test_candidates_are_at_most_100(tmp_path: Path) -> None:
    words = [f"w{number:03}" for number in range(150)]
    count_links(tmp_path, [("a", word) for word in words], ["0-0"] * 150)
    row = list(read_lines(tmp_path / "candidates.tsv"))[1]
    assert row == "a\t" + " ".join(words[:100])


@pytest.mark.parametrize("links", [["0-0"], ["0-0", "1-0"], ["0-0", "0-0", "0-0"]])
def test_links_of_another_text_are_an_error(tmp_path: Path, links: list[str]) -> None:
    with pytest.raises(
        UserError, match=r"links:\d: the links are not those of this text"
    ):
        count_links(tmp_path, [("a", "b"), ("a", "b")], links)


@pytest.mark.parametrize(
    "text", ["a\tb\t1\t1\n", "source\ttarget\tcount\tsource_count\na\tb\n"]
)
def test_another_table_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.tsv").write_text(text)
    with pytest.raises(UserError, match=r"other.tsv:\d: expected the columns"):
        read_dictionary(tmp_path / "other.tsv")
