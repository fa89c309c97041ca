"""Networks learn to reverse sequences that they have not seen: everything in training plays along.

Ten tokens, lengths 5 to 20; minutes each, so they are marked slow.
"""

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

TOKENS = [f"s{index}" for index in range(10)]
BATCH = 64
RECIPE = {
    "batch": {"sentences": BATCH, "micro_batch_tokens": None},
    "optimizer": "adam",
    "learning_rate": 4e-3,
    "clip": 1.0,
    "schedule": {"kind": "cosine"},
    "threads": 1,
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
LSTM = {
    "kind": "lstm",
    "layers": 1,
    "cells": 192,
    "embedding": 64,
    "reverse_source": False,
}


def sequences(count: int, seed: int) -> list[list[str]]:
    generator = random.Random(seed)
    return [generator.choices(TOKENS, k=generator.randint(5, 20)) for _ in range(count)]


def exactly_reversed(
    folder: Path,
    architecture: dict[str, Any],
    updates: int,
    products: Products = "auto",
) -> float:
    """Train for at most ``updates`` of 64 pairs; return how much of 1,000 unseen ones is right."""
    epochs = 2
    tiny.prepare_pairs(folder, sequences(updates * BATCH // epochs - BATCH, seed=1))
    recipe = {**RECIPE, "maximum_epochs": epochs}
    settings = ModelSettings.model_validate(
        {"description": "", "architecture": architecture, "training": recipe}
    )
    output = folder / "model.safetensors"
    train(tiny.job(folder, output, settings, products=products))
    network, description = load_model(output)
    made = description.training["updates"]
    assert isinstance(made, int)
    assert made <= updates
    source, target = description.vocabularies()
    unseen = sequences(1000, seed=2)
    rows = torch.from_numpy(pad([source.encode(tokens) for tokens in unseen]))
    found = beam_search(Ensemble([network]), rows, DecodingSettings(beam=1))
    outputs = [target.decode(hypotheses[0].tokens) for hypotheses in found]
    right = [tokens == one[::-1] for tokens, one in zip(outputs, unseen, strict=True)]
    return sum(right) / len(right)


@pytest.mark.slow
def test_convs2s_learns_to_reverse(tmp_path: Path, kernel: Kernel) -> None:
    # Of the 3,000 updates that it may take, it needs fewer than half.
    assert exactly_reversed(tmp_path, CONVS2S, updates=1200, products=kernel) >= 0.99


@pytest.mark.slow
def test_the_lstm_learns_to_reverse(tmp_path: Path) -> None:
    # It reads forward: what was read last is written first, as Sutskever et al. want it.
    assert exactly_reversed(tmp_path, LSTM, updates=5000) >= 0.99
