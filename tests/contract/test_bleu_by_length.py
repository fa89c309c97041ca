"""BLEU by sentence length and by rarity of words: the groups, their scores, and the figure."""

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.paper.bleu_by_length import (
    GroupBleu,
    bleu_by_length,
    groups_of_equal_size,
    plot_bleu_by_length,
    ranks,
)
from convs2s.scoring.bleu import tokenized_bleu
from tests.support.documents import svg_texts

PAPERS_TICKS = (4, 7, 8, 12, 17, 22, 28, 35, 79)
"""Lengths on the axis of figure 3 of Sutskever et al. 2014: groups lie between them."""

WORDS = [f"w{number}" for number in range(1, 41)]
SOURCES = [" ".join(WORDS[:length]) for length in range(5, 41)]
REFERENCES = [line.replace("w", "x") for line in SOURCES]


def spoiled(line: str) -> str:
    """Return a line whose second half is wrong."""
    words = line.split()
    return " ".join(
        [*words[: len(words) // 2], *["y"] * (len(words) - len(words) // 2)]
    )


def test_groups_are_of_about_equal_size_and_equal_values_stand_together() -> None:
    values = np.array([3.0, 1, 2, 2, 2, 9, 8, 7, 2, 1])
    groups = groups_of_equal_size(values, 3)
    assert [sorted(values[group]) for group in groups] == [
        [1, 1, 2, 2, 2, 2],
        [3],
        [7, 8, 9],
    ]
    assert sorted(np.concatenate(groups)) == list(range(10))
    sizes = [len(group) for group in groups_of_equal_size(np.arange(100.0), 8)]
    assert len(sizes) == 8
    assert max(sizes) - min(sizes) <= 1
    assert len(groups_of_equal_size(np.ones(5), 8)) == 1


def test_the_mean_rank_counts_unknown_words_as_the_rarest(tmp_path: Path) -> None:
    table = tmp_path / "en.tsv"
    write_lines(table, ["type\tcount", "the\t9", "cat\t2"])
    places = ranks(table)
    assert places == {"the": 1, "cat": 2}
    for source, rank in (("the cat the dog", (1 + 2 + 1 + 3) / 4), ("", 0)):
        by_length, by_rank = bleu_by_length([source], ["x"], {"system": ["x"]}, places)
        assert (by_length.mean, by_rank.mean) == (len(source.split()), rank)


def test_each_group_is_scored_as_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convs2s.paper.bleu_by_length.GROUPS", 4)
    curves = {"right": REFERENCES, "half": list(map(spoiled, REFERENCES))}
    places = {word: place for place, word in enumerate(reversed(WORDS), start=1)}
    found = list(bleu_by_length(SOURCES, REFERENCES, curves, places))
    assert len(found) == 2 * 2 * 4
    assert all(one.bleu == pytest.approx(100) for one in found if one.curve == "right")
    half = [one for one in found if one.curve == "half" and one.by == "length"]
    assert [one.sentences for one in half] == [9, 9, 9, 9]
    assert [(one.lowest, one.highest) for one in half][:2] == [(5, 13), (14, 22)]
    expected = tokenized_bleu(list(map(spoiled, REFERENCES[:9])), REFERENCES[:9])
    assert (half[0].bleu, half[0].signature) == (expected.score, expected.signature)
    # Longer sentences begin with the same words here, which are the rarest.
    by_rank = [one for one in found if one.curve == "half" and one.by == "rank"]
    assert [one.bleu for one in by_rank] == [one.bleu for one in reversed(half)]


def write_test_set(folder: Path, system: list[str]) -> dict[str, Path]:
    """Write a test set, its translations and another system's list of two for each line."""
    files = {
        name: folder / name for name in ("system", "baseline", "source", "reference")
    }
    for name, lines in (("source", SOURCES), ("reference", REFERENCES)):
        write_lines(files[name], lines)
    empty = {"text": "", "text_before": "", "words_before": [], "replacements": []}
    rows = (
        {"line": number, "source": "", "words": line.split(), **empty}
        for number, line in enumerate(system, start=1)
    )
    write_lines(files["system"], map(json.dumps, rows))
    listed = [
        f"{number} ||| {text} ||| F= 0 ||| {score}"
        for number, line in enumerate(REFERENCES)
        for text, score in ((line, -2), (spoiled(line), -1))
    ]
    write_lines(files["baseline"], listed)
    files["vocabulary"] = folder / "en.tsv"
    write_lines(files["vocabulary"], ["type\tcount", *(f"{word}\t1" for word in WORDS)])
    return files


def test_the_figure_has_both_curves_and_the_table_its_points(tmp_path: Path) -> None:
    outputs = [tmp_path / "figure.svg", tmp_path / "figure.pdf"]
    plot_bleu_by_length(
        **write_test_set(tmp_path, REFERENCES),
        names=["LSTM", "baseline"],
        stand_in="captions",
        outputs=outputs,
        points=tmp_path / "points.csv",
    )
    assert outputs[1].read_bytes().startswith(b"%PDF")
    texts = svg_texts(outputs[0])
    labels = {
        "LSTM",
        "baseline",
        "tokenized BLEU (0 to 100)",
        "source sentence length (words)",
    }
    assert labels <= texts
    assert "mean frequency rank of the source words" in texts
    assert any("STAND-IN DATA: captions" in text for text in texts)
    points = pd.read_csv(tmp_path / "points.csv")
    means = points.groupby("curve")["bleu"].mean()
    assert means["LSTM"] == pytest.approx(100)
    assert means["baseline"] < 60  # what the list prefers, not what is right
    assert points.groupby(["curve", "by"])["sentences"].sum().unique() == [len(SOURCES)]
    assert points.groupby(["curve", "by"]).size().unique() == [len(PAPERS_TICKS) - 1]
    assert list(points.columns) == [column.name for column in fields(GroupBleu)]


def test_translations_of_another_test_set_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"system has 35 lines or lists but .*reference has 36"
    ):
        plot_bleu_by_length(
            **write_test_set(tmp_path, REFERENCES[:-1]),
            names=["LSTM", "baseline"],
            stand_in=None,
            outputs=[],
            points=tmp_path / "points.csv",
        )
