"""BLEU by sentence length and by rarity of words: the groups, their scores, and the figure."""

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convs2s.files.text import write_lines
from convs2s.paper.bleu_by_length import (
    GroupBleu,
    bleu_by_length,
    groups_of_equal_size,
    plot_bleu_by_length,
    ranks,
)
from convs2s.scoring.bleu import corpus_bleu
from tests.support.documents import svg_texts
from tests.support.refusals import refusal, says

WORDS = [f"w{number}" for number in range(1, 41)]
SOURCES = [" ".join(WORDS[:length]) for length in range(5, 41)]
REFERENCES = [line.replace("w", "x") for line in SOURCES]
HALF = [line[: len(line) // 2] + " y" * line.count(" ") for line in REFERENCES]


def test_groups_are_of_about_equal_size_and_equal_values_stand_together() -> None:
    values = np.array([3.0, 1, 2, 2, 2, 9, 8, 7, 2, 1])
    groups = groups_of_equal_size(values, 3)
    found = [sorted(values[group]) for group in groups]
    assert found == [[1, 1, 2, 2, 2, 2], [3], [7, 8, 9]]
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


def test_the_figure_has_both_curves_and_the_table_its_points(tmp_path: Path) -> None:
    names = ("system", "baseline", "source", "reference", "vocabulary")
    files = {name: tmp_path / name for name in names}
    write_lines(files["source"], SOURCES)
    write_lines(files["reference"], REFERENCES)
    write_lines(files["vocabulary"], ["type\tcount", *(f"{word}\t1" for word in WORDS)])
    empty = {"source": "", "text": "", "text_before": "", "words_before": []}
    rows = [
        {"line": number, "words": line.split(), "replacements": [], **empty}
        for number, line in enumerate(HALF, start=1)
    ]
    write_lines(files["system"], map(json.dumps, rows))
    # What the list prefers is wrong.
    listed = [
        f"{number} ||| {text} ||| F= 0 ||| {score}"
        for number, line in enumerate(REFERENCES)
        for text, score in ((line, -2), ("z", -1), (line, -3))
    ]
    write_lines(files["baseline"], listed)
    outputs = [tmp_path / "figure.svg", tmp_path / "figure.pdf"]
    plotted = {"names": ["LSTM", "SMT"], "stand_in": "captions", "outputs": outputs}
    plot_bleu_by_length(**files, **plotted, points=tmp_path / "points.csv")  # type: ignore[arg-type]
    assert outputs[1].read_bytes().startswith(b"%PDF")
    points = pd.read_csv(tmp_path / "points.csv")
    assert list(points.columns) == [column.name for column in fields(GroupBleu)]
    assert set(points[points["curve"] == "SMT"]["bleu"]) == {0}
    found = points[points["curve"] == "LSTM"]
    # The paper's axis has eight spans, too.
    assert list(found["by"]) == ["length"] * 8 + ["rank"] * 8
    first = found.iloc[0]
    count = first["sentences"]
    expected = corpus_bleu(HALF[:count], REFERENCES[:count])
    assert (first["lowest"], first["highest"]) == (5, 4 + count)
    assert first["bleu"] == pytest.approx(expected.score)
    assert first["signature"] == expected.signature
    assert set(found.groupby("by")["sentences"].sum()) == {len(SOURCES)}
    texts = svg_texts(outputs[0])
    assert {
        "LSTM",
        "SMT",
        "tokenized BLEU (0 to 100)",
        "source sentence length (words)",
        "mean frequency rank of the source words",
        f"5–{4 + count}",
    } <= texts
    assert any("STAND-IN DATA: captions" in text for text in texts)
    write_lines(files["system"], map(json.dumps, rows[:-1]))
    message = refusal(plot_bleu_by_length, **files, **plotted, points=tmp_path / "p")
    says(message, "system has 35 lines", "reference has 36")
