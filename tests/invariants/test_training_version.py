"""A change of training's results raises its version: short loss curves, pinned to the version.

They are in float64 on one thread, so that machines differ by rounding alone. Where a change of
results is meant, raise TRAINING_VERSION, run ``python -m tests.unit.training.test_version`` and
put what it prints in place of ``CURVES``.
"""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.model import ModelSettings
from convs2s.training.data import TrainingData
from convs2s.training.identity import TRAINING_VERSION, identity
from convs2s.training.interruption import Interruption
from convs2s.training.progress import Watch
from convs2s.training.run import initial_network
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.support import tiny

BLOCKS = [
    {"layers": 1, "width": 16, "kernel": 3},
    {"layers": 1, "width": 20, "kernel": 1},
]
CONVS2S = {
    "embedding": 16,
    "output_embedding": 12,
    "encoder": BLOCKS,
    "decoder": BLOCKS,
}
RECIPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the paper's": (
        {**CONVS2S, "dropout": 0.2},
        {"learning_rate": 0.05, "batch": {"sentences": 16}},
    ),
    "of small corpora": (
        {**CONVS2S, "dropout": 0.1, "gradient_scaling": "fairseq", "attention": [2]},
        {
            "optimizer": "adam",
            "learning_rate": 0.01,
            "clip": 1.0,
            "label_smoothing": 0.1,
            "schedule": {"kind": "cosine", "warmup": 0.5},
            "batch": {"sentences": None, "tokens": 100, "micro_batch_tokens": 50},
        },
    ),
    "the LSTM's": (
        {"kind": "lstm", "layers": 2, "cells": 16, "embedding": 16, "dropout": 0.2},
        {
            "optimizer": "sgd",
            "learning_rate": 0.7,
            "normalize": "sentences",
            "clip": 5.0,
            "schedule": {"kind": "step", "hold": 1, "every": 0.5, "divide_by": 2},
            "batch": {"sentences": 16},
        },
    ),
}
"""Name -> the network, and how it is trained."""

CURVES = {
    4: {
        "the paper's": [
            2.698778989042682,
            2.6300684641259826,
            2.6205546849394756,
            2.5500120072568913,
        ],
        "of small corpora": [
            2.6924044258215583,
            2.5478742464873183,
            2.5630670826452615,
            2.475627462755686,
        ],
        "the LSTM's": [
            2.605284247511165,
            2.5306665975517078,
            2.5356482151962836,
            2.5228143363324054,
        ],
    }
}
"""Version -> name -> training and validation loss of each of two epochs, in nats per token."""


def curve(name: str, task: Path, folder: Path) -> list[float]:
    """Train for two epochs; return the training and validation loss of each."""
    architecture, training = RECIPES[name]
    recipe = {**training, "maximum_epochs": 2, "threads": 1}
    stated = {"description": name, "architecture": architecture, "training": recipe}
    job = tiny.job(
        task, folder / "model.safetensors", ModelSettings.model_validate(stated)
    )
    data = TrainingData.read(task)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        network = initial_network(job, data)
    finally:
        torch.set_default_dtype(before)
    states = StateFolder(folder / "state", identity(job, data.checksums))
    updater = Updater(network, job.recipe, seed=job.seed, device="cpu")
    watch = Watch(states.progress)
    trainer = Trainer(updater, data, states, stop=Interruption(), watch=watch)
    with states.locked():
        trainer.run()
    return [
        loss
        for record in trainer.state.history
        for loss in (record.train_loss, record.valid_loss)
    ]


@pytest.mark.parametrize("name", RECIPES)
def test_results_change_with_the_version_alone(
    name: str, task: Path, tmp_path: Path
) -> None:
    assert list(CURVES) == [TRAINING_VERSION], (
        "the version was raised: pin its own curves"
    )
    found = curve(name, task, tmp_path)
    assert found == pytest.approx(CURVES[TRAINING_VERSION][name], rel=1e-7), (
        "training gives other results: raise TRAINING_VERSION if they are meant to"
    )
    assert found[2] < found[0]


def test_the_version_is_part_of_a_trainings_identity(task: Path) -> None:
    job = tiny.job(task, Path("model.safetensors"))
    assert (
        identity(job, TrainingData.read(task).checksums)["version"] == TRAINING_VERSION
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        task = tiny.prepare(Path(place, "task"))
        found = {
            name: curve(name, task, Path(place, str(n)))
            for n, name in enumerate(RECIPES)
        }
    print({TRAINING_VERSION: found})
