"""Networks learn to reverse sequences that they have not seen, and to read their source."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.config.decoding import DecodingSettings
from convs2s.config.model import ModelSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_json
from convs2s.model_file import describe_model
from convs2s.training.run import train
from tests.support import tiny

RECIPE = yaml.safe_load("""
batch: {sentences: 64, micro_batch_tokens: null}
optimizer: adam
learning_rate: 0.004
clip: 1.0
schedule: {kind: cosine}
threads: 1
maximum_epochs: 2
""")

# The LSTM reads forward: what was read last is written first, as Sutskever et al. want it.
ARCHITECTURES = yaml.safe_load("""
convs2s:
  embedding: 64
  output_embedding: 64
  encoder: [{layers: 3, width: 64, kernel: 3}]
  decoder: [{layers: 3, width: 64, kernel: 3}]
  dropout: 0.0
  positions: {maximum: 32}
bahdanau: {kind: rnn, cells: 64, embedding: 64, attention: bahdanau}
luong: {kind: rnn, cells: 64, embedding: 64, attention: luong}
lstm: {kind: lstm, layers: 1, cells: 192, embedding: 64, reverse_source: false}
""")


def trained(task: Path, architecture: dict[str, Any], recipe: dict[str, Any]) -> Path:
    stated = {"description": "", "architecture": architecture, "training": recipe}
    output = task / "model.safetensors"
    train(tiny.job(task, output, ModelSettings.model_validate(stated)))
    return output


def sequences(count: int, seed: int) -> list[list[str]]:
    """Return sequences of 5 to 20 of ten tokens."""
    generator = random.Random(seed)
    tokens = [f"s{index}" for index in range(10)]
    return [generator.choices(tokens, k=generator.randint(5, 20)) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_learns_to_reverse(tmp_path: Path, name: str) -> None:
    """In at most so many updates of 64 pairs; then 1,000 unseen sequences are right."""
    updates = 5000 if name == "lstm" else 1200
    # A hundred of them are for validation.
    tiny.prepare_pairs(tmp_path, sequences(updates * 64 // 2, seed=1))
    model = trained(tmp_path, ARCHITECTURES[name], RECIPE)
    assert int(str(describe_model(model).training["updates"])) <= updates
    greedy = DecodingSettings(beam=1)
    translator = LineTranslator([model], greedy, "cpu", pretokenized=True)
    unseen = sequences(1000, seed=2)
    right = 0
    found = translator.translate(map(" ".join, unseen))
    for one, tokens in zip(found, unseen, strict=True):
        right += one.text.split() == tokens[::-1]
    assert right >= 990


def test_an_lstm_learns_to_read_its_source_and_is_not_warned_of(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = tiny.prepare(tmp_path / "task", pairs=480)
    small = {"kind": "lstm", "layers": 1, "cells": 48, "embedding": 16}
    changes = {"learning_rate": 1e-2, "maximum_epochs": 10, "batch": {"sentences": 16}}
    output = trained(task, small | {"initialization": 0.3}, RECIPE | changes)
    said: Any = read_json(output.with_name("training.json"))
    assert said["source_use"]["ratio"] > 2
    assert "warning" not in capfd.readouterr().err
