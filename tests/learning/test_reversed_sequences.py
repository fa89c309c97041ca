"""Networks learn to reverse sequences that they have not seen, and to read their source."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.config.model import ModelSettings
from convs2s.config.options import Products
from convs2s.data.batches import pad
from convs2s.decoding.search import beam_search
from convs2s.model_file import load_model
from convs2s.models.ensemble import Ensemble
from convs2s.models.kernels.matmul import Kernel
from convs2s.training.run import train
from tests.support import tiny

BATCH = 64
EPOCHS = 2
RECIPE = {
    "batch": {"sentences": BATCH, "micro_batch_tokens": None},
    "optimizer": "adam",
    "learning_rate": 4e-3,
    "clip": 1.0,
    "schedule": {"kind": "cosine"},
    "threads": 1,
    "maximum_epochs": EPOCHS,
}
BLOCKS = [{"layers": 3, "width": 64, "kernel": 3}]
CONVS2S = {
    "embedding": 64,
    "output_embedding": 64,
    "encoder": BLOCKS,
    "decoder": BLOCKS,
    "dropout": 0.0,
    "positions": {"maximum": 32},
}
RNN = {"kind": "rnn", "cells": 64, "embedding": 64}
LSTM = {"kind": "lstm", "layers": 1, "cells": 192, "embedding": 64}


def trained(
    task: Path,
    architecture: dict[str, Any],
    recipe: dict[str, Any],
    products: Products = "auto",
) -> Path:
    stated = {"description": "", "architecture": architecture, "training": recipe}
    settings = ModelSettings.model_validate(stated)
    output = task / "model.safetensors"
    train(tiny.job(task, output, settings, products=products))
    return output


def sequences(count: int, seed: int) -> list[list[str]]:
    """Return sequences of 5 to 20 of ten tokens."""
    generator = random.Random(seed)
    tokens = [f"s{index}" for index in range(10)]
    return [generator.choices(tokens, k=generator.randint(5, 20)) for _ in range(count)]


def exactly_reversed(
    folder: Path,
    architecture: dict[str, Any],
    updates: int,
    products: Products = "auto",
) -> float:
    """Train for at most ``updates`` of 64 pairs; return how much of 1,000 unseen ones is right."""
    tiny.prepare_pairs(folder, sequences(updates * BATCH // EPOCHS - BATCH, seed=1))
    network, description = load_model(trained(folder, architecture, RECIPE, products))
    assert int(str(description.training["updates"])) <= updates
    source, target = description.vocabularies()
    unseen = sequences(1000, seed=2)
    rows = torch.from_numpy(pad([source.encode(tokens) for tokens in unseen]))
    found = beam_search(Ensemble([network]), rows, DecodingSettings(beam=1))
    right = 0
    for hypotheses, tokens in zip(found, unseen, strict=True):
        right += target.decode(hypotheses[0].tokens) == tokens[::-1]
    return right / len(unseen)


@pytest.mark.slow
def test_convs2s_learns_to_reverse(tmp_path: Path, kernel: Kernel) -> None:
    # Of the 3,000 updates that it may take, it needs fewer than half.
    assert exactly_reversed(tmp_path, CONVS2S, updates=1200, products=kernel) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_a_recurrent_network_with_attention_learns_to_reverse(
    tmp_path: Path, attention: str
) -> None:
    attending = {**RNN, "attention": attention}
    assert exactly_reversed(tmp_path, attending, updates=1200) >= 0.99


@pytest.mark.slow
def test_the_lstm_learns_to_reverse(tmp_path: Path) -> None:
    # It reads forward: what was read last is written first, as Sutskever et al. want it.
    forward = {**LSTM, "reverse_source": False}
    assert exactly_reversed(tmp_path, forward, updates=5000) >= 0.99


def test_an_lstm_learns_to_read_its_source_and_is_not_warned_of(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = tiny.prepare(tmp_path / "task", pairs=480)
    small = {**LSTM, "cells": 48, "embedding": 16, "initialization": 0.3}
    changes = {"learning_rate": 1e-2, "maximum_epochs": 10, "batch": {"sentences": 16}}
    output = trained(task, small, {**RECIPE, **changes})
    said = json.loads(output.with_name("training.json").read_text("utf-8"))
    assert said["source_use"]["ratio"] > 2
    assert "warning" not in capfd.readouterr().err
