"""A change of training's results raises its version: short loss curves, pinned to the version.

They are in float64 on one thread, so that machines differ by rounding alone. Where a change of
results is meant, raise TRAINING_VERSION, and put what the failures say in place of ``losses``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from convs2s.config.model import ModelSettings
from convs2s.training.history import read_history
from convs2s.training.identity import TRAINING_VERSION
from convs2s.training.run import train
from tests.support import tiny

VERSION = 4
CURVES: dict[str, dict[str, Any]] = yaml.safe_load("""
of the paper:
  architecture: &convs2s
    {embedding: 16, output_embedding: 12, dropout: 0.2, encoder: &blocks [
    {layers: 1, width: 16, kernel: 3}, {layers: 1, width: 20, kernel: 1}], decoder: *blocks}
  training: {learning_rate: 0.05, batch: {sentences: 16}}
  losses: [2.698778989042682, 2.6300684641259826, 2.6205546849394756, 2.5500120072568913]
of small corpora:
  architecture: {<<: *convs2s, dropout: 0.1, gradient_scaling: fairseq, attention: [2]}
  training:
    {optimizer: adam, learning_rate: 0.01, clip: 1.0, label_smoothing: 0.1,
    schedule: {kind: cosine, warmup: 0.5},
    batch: {sentences: null, tokens: 100, micro_batch_tokens: 50}}
  losses: [2.6924044258215583, 2.5478742464873183, 2.5630670826452615, 2.475627462755686]
of the LSTM:
  architecture: {kind: lstm, layers: 2, cells: 16, embedding: 16, dropout: 0.2}
  training:
    {optimizer: sgd, learning_rate: 0.7, normalize: sentences, clip: 5.0,
    schedule: {kind: step, hold: 1, every: 0.5, divide_by: 2}, batch: {sentences: 16}}
  losses: [2.605284247511165, 2.5306665975517078, 2.5356482151962836, 2.5228143363324054]
of a recurrent network with attention:
  architecture: {kind: rnn, cells: 16, embedding: 16, dropout: 0.2}
  training: {optimizer: adam, learning_rate: 0.01, batch: {sentences: 16}}
  losses: [2.6324102538919716, 2.568313031898481, 2.5133539920710866, 2.482988020495425]
""")
"""The network, its recipe, and training and validation loss of each of two epochs."""


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", CURVES)
def test_results_change_with_the_version_alone(
    task: Path, tmp_path: Path, name: str
) -> None:
    assert VERSION == TRAINING_VERSION, "the version was raised: pin its own curves"
    stated = {"description": name, "architecture": CURVES[name]["architecture"]}
    stated["training"] = CURVES[name]["training"] | {"maximum_epochs": 2, "threads": 1}
    settings = ModelSettings.model_validate(stated)
    train(tiny.job(task, tmp_path / "model", settings, products="blas"))
    found = []
    for epoch in read_history(tmp_path / "history.jsonl").epochs:
        found += [epoch.train_loss, epoch.valid_loss]
    assert found == pytest.approx(CURVES[name]["losses"], rel=1e-7), (
        f"{found}: raise TRAINING_VERSION if other results are meant"
    )
