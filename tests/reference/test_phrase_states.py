"""Phrases by the states of an encoder: the states, their projection, and the figure, by numpy."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from convs2s.config.paper import Phrases
from convs2s.data.vocabulary import END
from convs2s.decoding.inspection import final_states
from convs2s.files.text import read_json
from convs2s.model_file import load_model
from convs2s.paper.phrase_map import PhraseState, plot_phrase_states, read_phrase_map
from convs2s.paper.phrase_states import (
    chance_of_share,
    pca,
    project_phrases,
    share_between,
)
from tests.reference.plain_recurrent import PlainLstm

TEXTS = ("w1 w2 w3", "w1 w2", "w1 unheard", "w3 w2 w1", "w2 w1", "w3 w1")
PHRASES = Phrases(
    title="Word order",
    source="this test",
    language="en",
    meanings=(tuple(TEXTS[:3]), tuple(TEXTS[3:])),
)
HEADER = {
    "task": "tiny",
    "model": "lstm",
    "run": "seed1",
    "scale": "demo",
    "name": "order",
}
MEANINGS = [0, 0, 0, 1, 1, 1]
PAIRS_OF_EIGHT = [0] * 8 + [1] * 8


def test_the_states_are_those_of_an_lstm_written_out(recurrent: Path) -> None:
    found = final_states(recurrent, TEXTS)
    assert found.tokens[2] == ["w1", "unheard"]
    assert found.unknown == [[], [], ["unheard"], [], [], []]
    network, description = load_model(recurrent)
    weights = {name: one.double().numpy() for name, one in network.state_dict().items()}
    plain = PlainLstm(weights, reverse_source=True)
    vocabulary = description.vocabularies()[0]
    for tokens, state in zip(found.tokens, found.states, strict=True):
        encoded = vocabulary.encode(tokens)
        assert encoded[-1] == END
        expected = np.ravel(plain.states(encoded))  # of each layer, output and cells
        assert state == pytest.approx(expected, abs=1e-6)


def test_the_projection_is_that_of_the_covariance() -> None:
    states = np.random.default_rng(1).normal(size=(6, 40)) * np.linspace(3, 0.1, 40)
    points, explained = pca(states)
    centered = states - states.mean(0)
    variances, directions = np.linalg.eigh(centered.T @ centered)
    for column, direction in enumerate((directions[:, -1], directions[:, -2])):
        expected = centered @ direction * np.sign(direction[np.abs(direction).argmax()])
        assert points[:, column] == pytest.approx(expected)
    assert explained == pytest.approx(variances[[-1, -2]] / variances.sum())
    # On a line there is no second coordinate, on a point none.
    points, explained = pca(np.outer([0.1, 0.4, 0.9], [0.3, -0.7, 0.2]))
    assert not points[:, 1].any()
    assert explained == pytest.approx((1, 0))
    points, explained = pca(np.ones((4, 3)))
    assert not points.any()
    assert explained == (0, 0)


SHARES = yaml.safe_load("""
- [[[0, 1], [0, 1], [2, 5], [2, 5]], [0, 0, 1, 1], 1]
- [[[0, 1], [0, 1], [2, 5], [2, 5]], [0, 1, 0, 1], 0]
# 20 around the mean 3, 16 of it between 1 and 5.
- [[[0], [2], [4], [6]], [0, 0, 1, 1], 0.8]
- [[[1], [1], [1], [1]], [0, 0, 1, 1], 0]
""")
"""States, the meaning of each, and the share of the variance that is between meanings."""


def test_the_share_between_meanings() -> None:
    for states, meanings, share in SHARES:
        found = share_between(np.array(states, float), meanings)
        assert found == pytest.approx(share)


def test_p_of_the_share_is_of_all_swaps() -> None:
    """Of eight ways to swap three pairs two are as good as the best, or as bad."""
    line = np.array([[0.0], [1], [2], [10], [11], [12.5]])
    assert chance_of_share(line, MEANINGS)[1] == pytest.approx(2 * 2 / 8)
    random = np.random.default_rng(0)
    states = random.normal(size=(16, 40))
    assert chance_of_share(states, PAIRS_OF_EIGHT)[1] > 0.05
    # A place of the adverbial, which each meaning has, moves states and tells of no meaning.
    places = np.tile(np.repeat([0.0, 100], 4), 2)[:, None]
    chance, p = chance_of_share(states + places, PAIRS_OF_EIGHT)
    assert chance < 0.001  # of free permutations 1 / 15
    assert p > 0.05
    # Float32 does not tell all swaps made at once from none.
    rounded = random.normal(size=(16, 256)).astype(np.float32)
    rounded[8:] += 1
    assert chance_of_share(rounded, PAIRS_OF_EIGHT)[1] == pytest.approx(2 * 2 / 256)


def test_the_figure_has_a_panel_for_each_map(
    recurrent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "phrases.json"
    project_phrases(
        model=recurrent,
        phrases=PHRASES,
        header=HEADER,
        stand_in="captions",
        output=written,
        manifest={},
    )
    unknown = "'w1 unheard' has words that lstm of tiny does not know"
    assert unknown in capsys.readouterr().err
    states = final_states(recurrent, TEXTS).states
    found = read_phrase_map(written).states
    assert [(one.x, one.y) for one in found] == pytest.approx(pca(states)[0])
    said: Any = read_json(written)
    assert said["apart"] == pytest.approx(share_between(states, MEANINGS))
    outputs = [tmp_path / "figure.svg", tmp_path / "figure.pdf"]
    table = tmp_path / "points.csv"
    plot_phrase_states(projections=[written] * 2, outputs=outputs, points=table)
    assert outputs[1].read_bytes().startswith(b"%PDF")
    svg = outputs[0].read_text("utf-8")
    for text in ("Word order", "this test", "1  w1 w2 w3", "6  w3 w1", "6"):
        assert f">{text}<" in svg
    assert ">3  w1 unheard (1 unknown)<" in svg
    points = pd.read_csv(table)
    described = ["task", "model", "run", "phrases"]
    described += [column.name for column in fields(PhraseState)]
    assert list(points.columns) == described
    assert tuple(points["phrase"]) == TEXTS * 2
    assert list(points["meaning"]) == MEANINGS * 2
