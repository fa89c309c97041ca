"""BLEU by sentence length and by rarity of words: the groups, their scores, and the figure."""

import json
from dataclasses import fields
from functools import partial
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
from tests.contract.documents import svg_texts
from tests.contract.score_files import decoded
from tests.support.refusals import refuses, says

WORDS = [f"w{number}" for number in range(1, 41)]
SOURCES = [" ".join(WORDS[:length]) for length in range(5, 41)]
REFERENCES = [line.replace("w", "x") for line in SOURCES]
HALF = [line[: len(line) // 2] + " y" * line.count(" ") for line in REFERENCES]


def test_groups_are_of_about_equal_size_and_equal_values_stand_together() -> None:
    values = np.array([3.0, 1, 2, 2, 2, 9, 8, 7, 2, 1])
    found = [sorted(values[group]) for group in groups_of_equal_size(values, 3)]
    assert found == [[1, 1, 2, 2, 2, 2], [3], [7, 8, 9]]
    sizes = [len(group) for group in groups_of_equal_size(np.arange(100.0), 8)]
    assert len(sizes) == 8
    assert max(sizes) - min(sizes) <= 1
    assert len(groups_of_equal_size(np.ones(5), 8)) == 1


def test_the_mean_rank_counts_unknown_words_as_the_rarest(tmp_path: Path) -> None:
    table = tmp_path / "en.tsv"
    write_lines(table, ["type\tcount", "the\t9", "cat\t2"])
    for source, length, rank in (("the cat the dog", 4, 1.75), ("", 0, 0)):
        found = bleu_by_length([source], ["x"], {"system": ["x"]}, ranks(table))
        assert [group.mean for group in found] == [length, rank]


def test_the_figure_has_both_curves_and_the_table_its_points(tmp_path: Path) -> None:
    system = [json.dumps(decoded(line, half)) for line, half in enumerate(HALF, 1)]
    listed = []
    for number, line in enumerate(REFERENCES):
        right = f"{number} ||| {line} ||| F= 0 ||| "
        # What the list prefers is wrong.
        listed += [f"{right}-2", f"{number} ||| z ||| F= 0 ||| -1", f"{right}-3"]
    contents = {
        "source": SOURCES,
        "reference": REFERENCES,
        "vocabulary": ["type\tcount", *(f"{word}\t1" for word in WORDS)],
        "system": system,
        "baseline": listed,
    }
    files = {name: tmp_path / name for name in contents}
    for name, lines in contents.items():
        write_lines(files[name], lines)
    picture, document = outputs = [tmp_path / "figure.svg", tmp_path / "figure.pdf"]
    table = tmp_path / "points.csv"
    plot = partial(
        plot_bleu_by_length,
        **files,
        names=["LSTM", "SMT"],
        stand_in="captions",
        outputs=outputs,
        points=table,
    )
    plot()
    assert document.read_bytes().startswith(b"%PDF")
    points = pd.read_csv(table)
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
    texts = svg_texts(picture)
    assert {"LSTM", "SMT", "source sentence length (words)", f"5–{4 + count}"} <= texts
    says(" ".join(texts), "STAND-IN DATA: captions")
    write_lines(files["system"], system[:-1])
    refuses("system has 35 lines ... reference has 36", plot)
