"""Validation with permuted sources tells a network that reads its source from one that does not."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convs2s.data.batches import collate
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END
from convs2s.model_file import load_model
from convs2s.models.convs2s import ConvEncoder, EncodedSource
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
from tests.support.score_files import read


def store(path: Path, lengths: list[int]) -> TokenStore:
    """Write pairs whose sources have these lengths, and whose targets have one token more."""
    write_store(path, [([4] * (n - 1) + [END], [5] * n + [END]) for n in lengths])
    return TokenStore(path)


def test_each_pair_gets_the_source_of_the_next_longer_one(tmp_path: Path) -> None:
    for lengths, expected in (
        ([5, 2, 300, 4, 2], [2, 4, 1, 0, 3]),
        ([4, 4, 4], [1, 2, 0]),
    ):
        sources = permuted_sources(store(tmp_path / "store", lengths))
        assert sources is not None
        assert sources.tolist() == expected
    assert permuted_sources(store(tmp_path / "store", [5])) is None


def test_permuted_batches_keep_their_targets_and_are_no_larger_than_others(
    tmp_path: Path,
) -> None:
    pairs = store(tmp_path / "store", [2] * 3000 + [900])
    sources = permuted_sources(pairs)
    assert sources is not None
    batches = validation_batches(pairs, tiny.settings().training, None, sources)
    assert sorted(np.concatenate(batches)) == list(range(3001))
    for rows in batches:
        assert collate(pairs, rows, sources).source.size <= VALIDATION_TOKENS
    batch = collate(pairs, np.array([2999, 3000]), sources)
    assert (batch.source == END).argmax(1).tolist() == [899, 1]
    assert (batch.target == END).argmax(1).tolist() == [2, 900]


def trained(task: Path, folder: Path, **recipe: Any) -> Any:
    """Train; return what ``training.json`` says."""
    train(tiny.job(task, folder / "model.safetensors", tiny.settings(**recipe)))
    return read(folder / "training.json")


@pytest.mark.parametrize(
    "changes", [{"learning_rate": 1.0, "clip": 1.0}, {"average": 2}]
)
def test_it_is_measured_with_the_weights_that_are_exported(
    task: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """So high a rate throws the network off after its best epoch; a mean is of no epoch."""
    said = trained(task, tmp_path, maximum_epochs=4, **changes)
    assert "average" in changes or said["best_epoch"] != 4
    network, _ = load_model(tmp_path / "model.safetensors")
    valid = TrainingData.read(task).valid
    updater = Updater(network, tiny.settings().training, seed=1, device="cpu")
    perplexity = math.exp(updater.validate(valid))
    permuted = math.exp(updater.validate(valid, sources=permuted_sources(valid)))
    assert said["validation_perplexity"] == pytest.approx(perplexity, rel=1e-4)
    assert said["source_use"] == {
        "perplexity": pytest.approx(perplexity, rel=1e-4),
        "permuted_perplexity": pytest.approx(permuted, abs=1e-3),
        "ratio": pytest.approx(permuted / perplexity, rel=1e-3),
    }


def test_a_network_whose_encoder_is_cut_off_is_warned_of(
    task: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encode = ConvEncoder.forward

    def forget(self: ConvEncoder, *given: Any) -> EncodedSource:
        encoded = encode(self, *given)
        return encoded._replace(keys=0 * encoded.keys, values=0 * encoded.values)

    monkeypatch.setattr(ConvEncoder, "forward", forget)
    assert trained(task, tmp_path, maximum_epochs=1)["source_use"]["ratio"] == 1.0
    said = capfd.readouterr().err
    assert "warning: the model ignores its source: validation perplexity " in said


def test_the_warning_begins_below_its_bound() -> None:
    assert "warning" in str(SourceUse(10.0, 11.9, 1.19))
    said = str(SourceUse(10.0, 12.0, 1.2))
    assert "warning" not in said
    assert "12.00" in said
