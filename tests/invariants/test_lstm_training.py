"""An LSTM's training, stopped and begun again, ends with the same file; bf16 is near."""

from pathlib import Path
from typing import Any

import torch

from convs2s.config.model import ModelSettings
from convs2s.model_file import load_model
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from tests.support import tiny
from tests.support.interrupted import train_until


def job(task: Path, output: Path, **training: Any) -> TrainingJob:
    """The LSTM system's recipe in small (section 3.4)."""
    recipe = {
        "optimizer": "sgd",
        "normalize": "sentences",
        "learning_rate": 0.7,
        "clip": 5.0,
        "schedule": {"kind": "step", "hold": 1, "every": 0.5, "divide_by": 2},
        "maximum_epochs": 2.5,
        "batch": {"sentences": 16},
    }
    network = {"kind": "lstm", "layers": 2, "cells": 8, "embedding": 8, "dropout": 0.2}
    given = {"architecture": network, "training": recipe | training}
    settings = ModelSettings.model_validate({"description": "small", **given})
    return tiny.job(task, output, settings)


def test_it_ends_with_the_same_bytes_and_near_in_bf16(tmp_path: Path) -> None:
    task = tiny.prepare(tmp_path / "task")
    whole, parts, bf16 = (
        tmp_path / name / "model.safetensors" for name in ("whole", "parts", "bf16")
    )
    train(job(task, whole))
    train_until(job(task, parts), epoch=2)
    train(job(task, parts))
    assert parts.read_bytes() == whole.read_bytes()
    bf16.parent.mkdir()
    train(job(task, bf16, precision="bf16"))
    found = dict(load_model(bf16)[0].state_dict())
    expected = dict(load_model(whole)[0].state_dict())
    torch.testing.assert_close(found, expected, atol=0.1, rtol=0)
    assert bf16.read_bytes() != whole.read_bytes()
