"""Validation with permuted sources tells a network that reads its source from one that does not."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.config.model import ModelSettings
from convs2s.data.batches import collate
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END
from convs2s.model_file import load_model
from convs2s.models.lstm import Lstm, State
from convs2s.training.data import TrainingData
from convs2s.training.history import SourceUse
from convs2s.training.loading import (
    VALIDATION_TOKENS,
    permuted_sources,
    validation_batches,
)
from convs2s.training.run import train
from convs2s.training.update import Updater
from tests.support import tiny

LSTM = {
    "kind": "lstm",
    "layers": 1,
    "cells": 48,
    "embedding": 16,
    "initialization": 0.3,
}
RECIPE: dict[str, Any] = {
    "optimizer": "adam",
    "learning_rate": 1e-2,
    "clip": 1.0,
    "schedule": {"kind": "cosine"},
    "batch": {"sentences": 16},
}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.prepare(tmp_path_factory.mktemp("task"), pairs=480)


def store(path: Path, sources: list[int]) -> TokenStore:
    """Write pairs whose sources have these lengths, and whose targets have one token more."""
    write_store(path, (([*[4] * (one - 1), END], [*[5] * one, END]) for one in sources))
    return TokenStore(path)


def trained(task: Path, folder: Path, epochs: int) -> dict[str, Any]:
    """Train an LSTM; return what ``training.json`` says."""
    given = {"architecture": LSTM, "training": {**RECIPE, "maximum_epochs": epochs}}
    settings = ModelSettings.model_validate({"description": "small", **given})
    train(tiny.job(task, folder / "model.safetensors", settings))
    said: dict[str, Any] = json.loads((folder / "training.json").read_text("utf-8"))
    return said


# ---- the permutation ----


@pytest.mark.parametrize(
    "lengths", [[3, 3], [9, 2, 5], [4] * 7, [2, 300, 2, 5, 7, 7, 40, 3]]
)
def test_no_pair_keeps_its_source(tmp_path: Path, lengths: list[int]) -> None:
    sources = permuted_sources(store(tmp_path / "one.arrow", lengths))
    assert sources is not None
    assert sorted(sources.tolist()) == list(range(len(lengths)))
    assert not (sources == np.arange(len(lengths))).any()


def test_each_pair_gets_the_source_of_the_next_longer_one(tmp_path: Path) -> None:
    sources = permuted_sources(store(tmp_path / "one.arrow", [5, 2, 300, 4, 2]))
    assert sources is not None
    assert sources.tolist() == [2, 4, 1, 0, 3]


def test_a_single_pair_has_no_other(tmp_path: Path) -> None:
    assert permuted_sources(store(tmp_path / "one.arrow", [5])) is None


def test_a_batch_takes_the_sources_and_keeps_the_targets(tmp_path: Path) -> None:
    pairs = store(tmp_path / "one.arrow", [2, 6, 4])
    batch = collate(pairs, [0, 1], np.array([2, 0, 1]))
    assert (batch.source == END).argmax(1).tolist() == [3, 1]
    assert (batch.target == END).argmax(1).tolist() == [2, 6]


def test_permuted_batches_are_no_larger_than_others(tmp_path: Path) -> None:
    pairs = store(tmp_path / "one.arrow", [2] * 3000 + [900])
    sources = permuted_sources(pairs)
    assert sources is not None
    recipe = tiny.settings().training
    batches = validation_batches(pairs, recipe, None, sources)
    assert sorted(row for rows in batches for row in rows) == list(range(3001))
    assert (
        max(collate(pairs, rows, sources).source.size for rows in batches)
        <= VALIDATION_TOKENS
    )


def test_the_loss_is_that_of_a_store_with_the_sources_permuted(
    task: Path, tmp_path: Path
) -> None:
    one = tiny.trainer(task, tmp_path)
    sources = permuted_sources(one.valid)
    assert sources is not None
    rows = (
        (one.valid[int(other)][0], one.valid[row][1])
        for row, other in enumerate(sources)
    )
    write_store(tmp_path / "permuted.arrow", ((list(x), list(y)) for x, y in rows))
    expected = one.updater.validate(TokenStore(tmp_path / "permuted.arrow"))
    found = one.updater.validate(one.valid, sources=sources)
    assert found == pytest.approx(expected, abs=1e-9)
    assert found != pytest.approx(one.updater.validate(one.valid), abs=1e-6)


# ---- what a training says ----


def test_a_network_that_reads_its_source_is_not_warned_of(
    task: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = trained(task, tmp_path, epochs=10)
    use, error = said["source_use"], capfd.readouterr().err
    assert use["perplexity"] == pytest.approx(said["validation_perplexity"], abs=1e-4)
    assert use["ratio"] == pytest.approx(
        use["permuted_perplexity"] / use["perplexity"], rel=1e-3
    )
    assert use["ratio"] > 2
    assert (
        f"with permuted sources {use['permuted_perplexity']:.2f}: {use['ratio']:.2f}"
        in error
    )
    assert "warning" not in error


def test_a_network_whose_encoder_is_cut_off_is_warned_of(
    task: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encode = Lstm.encode

    def forget(self: Lstm, *given: Any) -> list[State]:
        return [
            (torch.zeros_like(h), torch.zeros_like(c)) for h, c in encode(self, *given)
        ]

    monkeypatch.setattr(Lstm, "encode", forget)
    assert trained(task, tmp_path, epochs=1)["source_use"]["ratio"] == 1.0
    (line,) = (row for row in capfd.readouterr().err.splitlines() if "warning" in row)
    assert line.startswith(
        "warning: the model ignores its source: validation perplexity "
    )
    assert line.endswith("1.00 times (docs/training.md)")


@pytest.mark.parametrize(
    "changes",
    [{"learning_rate": 1.0, "clip": 1.0}, {"average": 2}],
    ids=["best", "mean"],
)
def test_it_is_measured_with_the_weights_that_are_exported(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """So high a rate throws the network off after its best epoch; a mean is of no epoch."""
    task, path = tiny.prepare(tmp_path / "task"), tmp_path / "model.safetensors"
    settings = tiny.settings(maximum_epochs=4, **changes)
    train(tiny.job(task, path, settings))
    network, description = load_model(path)
    assert "average" in changes or description.training["best_epoch"] != 4
    valid = TrainingData.read(task).valid
    updater = Updater(network, settings.training, seed=1, device="cpu")
    loss = updater.validate(valid, sources=permuted_sources(valid))
    said = json.loads((tmp_path / "training.json").read_text("utf-8"))["source_use"]
    assert said["permuted_perplexity"] == pytest.approx(math.exp(loss), abs=1e-3)


@pytest.mark.parametrize(
    ("ratio", "warned"), [(1.19, True), (1.2, False), (7.0, False)]
)
def test_the_warning_begins_below_its_bound(ratio: float, warned: bool) -> None:
    assert ("warning" in str(SourceUse(10.0, 10.0 * ratio, ratio))) == warned
