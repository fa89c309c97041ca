"""Phrases by the states of an encoder: the states, their projection, and the figure."""

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from convs2s.config.architecture import LstmArchitecture
from convs2s.config.paper import Phrases
from convs2s.data.vocabulary import END
from convs2s.decoding.inspection import final_states
from convs2s.model_file import load_model, save_model
from convs2s.models.build import build_network
from convs2s.paper.phrase_map import PhraseState, plot_phrase_states, read_phrase_map
from convs2s.paper.phrase_states import (
    chance_of_share,
    pca,
    project_phrases,
    share_between,
)
from tests.support.documents import svg_texts
from tests.support.plain_lstm import PlainLstm

PHRASES = Phrases(
    title="Word order",
    source="this test",
    language="en",
    meanings=(("w1 w2 w3", "w1 w2", "w1 unheard"), ("w3 w2 w1", "w2 w1", "w3 w1")),
)
TEXTS = [text for meaning in PHRASES.meanings for text in meaning]
HEADER = {
    "task": "tiny",
    "model": "lstm",
    "run": "seed1",
    "scale": "demo",
    "name": "order",
}


@pytest.fixture(scope="module")
def lstm(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An LSTM with random weights over the vocabularies of the shared model."""
    path = tmp_path_factory.mktemp("lstm") / "model.safetensors"
    _, description = load_model(model)
    architecture = LstmArchitecture(
        kind="lstm", layers=2, cells=8, embedding=6, initialization=0.8
    )
    sizes = description.sizes
    torch.manual_seed(2)
    weights = build_network(architecture, *sizes).state_dict()
    save_model(
        path, weights, description.model_copy(update={"architecture": architecture})
    )
    return path


def test_the_states_are_those_of_an_lstm_written_out(lstm: Path) -> None:
    found = final_states(lstm, TEXTS)
    assert found.tokens[2] == ["w1", "unheard"]
    assert found.unknown == [[], [], ["unheard"], [], [], []]
    network, description = load_model(lstm)
    weights = {name: one.double().numpy() for name, one in network.state_dict().items()}
    plain, vocabulary = (
        PlainLstm(weights, reverse_source=True),
        description.vocabularies()[0],
    )
    for tokens, state in zip(found.tokens, found.states, strict=True):
        layers = plain.states(vocabulary.encode(tokens))
        assert vocabulary.encode(tokens)[-1] == END
        expected = np.concatenate([part for layer in layers for part in layer])
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
    assert 1e9 * pca(1e-9 * states)[0] == pytest.approx(points)


def test_states_on_a_line_have_no_second_coordinate() -> None:
    points, explained = pca(np.outer([0.1, 0.4, 0.9], [0.3, -0.7, 0.2]))
    assert not points[:, 1].any()
    assert explained == pytest.approx((1, 0))
    # The largest weight of the direction, -0.7, is made positive.
    assert points[0, 0] - points[2, 0] == pytest.approx(0.8 * 0.62**0.5)


def test_the_share_between_meanings() -> None:
    apart = np.array([[0.0, 1], [0, 1], [2, 5], [2, 5]])
    assert share_between(apart, [0, 0, 1, 1]) == pytest.approx(1)
    assert share_between(apart, [0, 1, 0, 1]) == pytest.approx(0)
    # 20 around the mean 3, 16 of it between 1 and 5.
    line = np.array([[0.0], [2], [4], [6]])
    assert share_between(line, [0, 0, 1, 1]) == pytest.approx(16 / 20)


def test_p_of_the_share_is_of_all_swaps() -> None:
    """Of eight ways to swap three pairs two are as good as the best, or as bad."""
    line = np.array([[0.0], [1], [2], [10], [11], [12.5]])
    assert chance_of_share(line, [0, 0, 0, 1, 1, 1])[1] == pytest.approx(2 * 2 / 8)
    states = np.random.default_rng(0).normal(size=(16, 40))
    meanings = [0] * 8 + [1] * 8
    assert chance_of_share(states, meanings)[1] > 0.05
    states[8:, 0] += 20
    assert chance_of_share(states, meanings)[1] == pytest.approx(2 * 2 / 256)


@pytest.mark.parametrize("seed", range(4))
def test_p_does_not_depend_on_the_rounding_of_float32(seed: int) -> None:
    """All swaps made at once are as good as none; of eight pairs the least p is 4 / 256."""
    states = np.random.default_rng(seed).normal(size=(16, 256)).astype(np.float32)
    states[8:] += 1
    assert chance_of_share(states, [0] * 8 + [1] * 8)[1] == pytest.approx(2 * 2 / 256)


def test_chance_is_of_what_the_phrases_of_a_pair_differ_in() -> None:
    """A place of the adverbial, which each meaning has, moves states and tells of no meaning."""
    noise = np.random.default_rng(0).normal(size=(16, 40))
    places = np.tile(np.repeat([0.0, 100], 4), 2)[:, None] * np.ones(40)
    meanings = [0] * 8 + [1] * 8
    chance, p = chance_of_share(noise + places, meanings)
    assert chance < 0.001  # of free permutations 1 / 15
    assert p > 0.05
    assert share_between(noise + places, meanings) == pytest.approx(chance, rel=0.5)


def write_map(lstm: Path, output: Path, stand_in: str | None = None) -> Path:
    project_phrases(
        model=lstm,
        phrases=PHRASES,
        header=HEADER,
        stand_in=stand_in,
        output=output,
        manifest={},
    )
    return output


def test_a_map_says_where_each_phrase_lies(lstm: Path, tmp_path: Path) -> None:
    output = write_map(lstm, tmp_path / "phrases.json")
    written = read_phrase_map(output)
    assert [(one.phrase, one.meaning) for one in written.states] == [
        *((text, 0) for text in TEXTS[:3]),
        *((text, 1) for text in TEXTS[3:]),
    ]
    states = final_states(lstm, TEXTS).states
    assert [(one.x, one.y) for one in written.states] == pytest.approx(pca(states)[0])
    assert json.loads(output.read_text("utf-8"))["apart"] == pytest.approx(
        share_between(states, [0, 0, 0, 1, 1, 1])
    )
    assert "manifest" in json.loads(output.read_text("utf-8"))


def test_the_figure_has_a_panel_for_each_set(lstm: Path, tmp_path: Path) -> None:
    maps = [
        write_map(lstm, tmp_path / f"{number}.json", "captions") for number in range(2)
    ]
    outputs = [tmp_path / "figure.svg", tmp_path / "figure.pdf"]
    plot_phrase_states(
        projections=maps, outputs=outputs, points=tmp_path / "points.csv"
    )
    assert outputs[1].read_bytes().startswith(b"%PDF")
    texts = svg_texts(outputs[0])
    assert {"Word order", "this test"} <= texts
    listed = {f"{number}  {text}" for number, text in enumerate(TEXTS, start=1)}
    assert listed - {"3  w1 unheard"} | {"3  w1 unheard (1 unknown)"} <= texts
    assert any(text.startswith("component 1 (") for text in texts)
    points = pd.read_csv(tmp_path / "points.csv")
    described = ["task", "model", "run", "phrases"]
    assert list(points.columns) == described + [
        column.name for column in fields(PhraseState)
    ]
    assert list(points["phrase"]) == TEXTS * 2
    assert set(points["meaning"]) == {0, 1}
