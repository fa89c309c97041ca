"""What a training exports: the weights of its best epoch, whatever came after."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import read_counts
from convs2s.model_file import load_model
from convs2s.models.network import Network
from convs2s.training import trainer
from convs2s.training.data import TrainingData
from convs2s.training.history import read_history
from convs2s.training.run import train
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.interrupted import train_until

SCRIPTED = [3.0, 2.0, 1.0, 1.5, 2.5]
"""Validation losses: the third epoch is the best of five."""

SCRIPTED_PERMUTED = 3.5
"""Validation loss with permuted sources."""


def epochs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """Script the validation losses; return the parameters after each epoch as they come."""
    seen: list[dict[str, torch.Tensor]] = []

    def validate(
        self: Updater, *_: Any, sources: Indices | None = None, **__: Any
    ) -> float:
        if sources is not None:  # after training
            return SCRIPTED_PERMUTED
        seen.append(
            {k: v.detach().clone() for k, v in self.network.state_dict().items()}
        )
        return SCRIPTED[len(seen) - 1]

    monkeypatch.setattr(Updater, "validate", validate)
    return seen


def assert_same(network: Network, weights: dict[str, torch.Tensor]) -> None:
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(tensor, weights[name], atol=0, rtol=0)


def test_the_best_epochs_weights_are_exported_not_the_last(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = epochs(monkeypatch)
    path = tmp_path / "model.safetensors"
    settings = tiny.settings(maximum_epochs=5, learning_rate=0.01)
    train(tiny.job(task, path, settings))
    network, description = load_model(path)
    assert_same(network, seen[2])
    assert not torch.equal(
        seen[2]["decoder.output.bias"], seen[4]["decoder.output.bias"]
    )
    assert description.training["best_epoch"] == 3
    assert description.training["epochs"] == 5
    assert description.training["validation_perplexity"] == pytest.approx(math.exp(1.0))
    said = json.loads((tmp_path / "training.json").read_text("utf-8"))
    assert said["best_epoch"] == 3
    assert said["validation_perplexity"] == pytest.approx(math.exp(1.0))
    assert len(said["curve"]) == 5
    assert min(said["curve"]) == said["curve"][2] == said["validation_perplexity"]
    # The model's file is that of versions before.
    assert "curve" not in description.training
    assert said["source_use"] == description.training["source_use"]
    assert said["source_use"] == pytest.approx(
        {
            "perplexity": math.exp(1.0),
            "permuted_perplexity": math.exp(3.5),
            "ratio": math.exp(2.5),
        },
        abs=1e-4,
    )


def test_the_record_names_what_trained_and_not_what_exports(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tiny.job(
        task, tmp_path / "model.safetensors", tiny.settings(maximum_epochs=2)
    )
    monkeypatch.setattr(trainer, "processor", lambda: "a")
    train_until(job, epoch=1)
    monkeypatch.setattr(trainer, "processor", lambda: "b")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "validate", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(job)
    # Which validates, and exports twice.
    monkeypatch.setattr(trainer, "processor", lambda: "c")
    train(job)
    train(job)
    rows = read_history(tmp_path / "history.jsonl").epochs
    assert [row.machine and row.machine["processor"] for row in rows] == ["a", "b"]
    made = json.loads((tmp_path / "training.json").read_text("utf-8"))["manifest"]
    assert (made["processor"], made["workers"], made["threads"]) == (
        "a; b",
        1,
        job.threads,
    )


def test_a_killed_training_still_knows_its_best_epoch(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = epochs(monkeypatch)
    path = tmp_path / "model.safetensors"
    job = tiny.job(task, path, tiny.settings(maximum_epochs=5, learning_rate=0.01))
    train_until(job, epoch=4)
    train(job)
    assert len(seen) == 5
    assert_same(load_model(path)[0], seen[2])


def test_a_training_that_gets_worse_exports_what_validates_best(
    task: Path, tmp_path: Path
) -> None:
    """Nothing is scripted here: after two epochs so high a rate throws the network off."""
    path = tmp_path / "model.safetensors"
    settings = tiny.settings(maximum_epochs=4, learning_rate=1.0, clip=1.0)
    train(tiny.job(task, path, settings))
    rows = [json.loads(line) for line in (tmp_path / "history.jsonl").open()][:-1]
    losses = [row["valid_loss"] for row in rows]
    assert losses[-1] > min(losses) + 0.01
    network, _ = load_model(path)
    updater = Updater(network, settings.training, seed=1, device="cpu")
    found = updater.validate(TrainingData.read(task).valid)
    assert found == pytest.approx(min(losses), rel=1e-6)


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_threshold_holds_where_words_are_split(tmp_path: Path, kind: str) -> None:
    task = tiny.prepare(tmp_path)
    (task / "vocabulary/codes").write_text("#version: 0.2\n")
    path = task / "dataset/train.json"
    stated = json.loads(path.read_text("utf-8"))
    counts = dict(read_counts(task / "vocabulary/en.tsv"))
    threshold = sorted(counts.values())[len(counts) // 2]
    stated["vocabulary"] |= {"kind": kind, "threshold": threshold}
    path.write_text(json.dumps(stated))
    frequent = sorted(token for token, count in counts.items() if count >= threshold)
    assert TrainingData.read(task).splittable == (frequent if kind == "bpe" else None)


def test_a_model_file_brings_what_translation_needs(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = "source\ttarget\tcount\tsource_count"
    dictionary, *truecasers = (
        tmp_path / name for name in ("dictionary.tsv", "en.tsv", "fr.tsv")
    )
    dictionary.write_text(f"{header}\nw1\tw1x\t3\t4\n", "utf-8")
    for word, table in zip(("London", "Londres"), truecasers, strict=True):
        table.write_text(f"word\tcount\n{word}\t2\n", "utf-8")
    data = replace(
        TrainingData.read(task), bpe_codes="#version: 0.2\n", splittable=["w1", "w2"]
    )
    monkeypatch.setattr(TrainingData, "read", lambda _: data)
    path = tmp_path / "model.safetensors"
    settings = tiny.settings(maximum_epochs=1)
    train(tiny.job(task, path, settings, dictionary=dictionary, truecasers=truecasers))
    _, found = load_model(path)
    assert found.dictionary == {"w1": "w1x"}
    assert found.truecasers == {"en": ["London"], "fr": ["Londres"]}
    assert (found.bpe_codes, found.splittable) == ("#version: 0.2\n", ["w1", "w2"])
    assert (found.source_types, found.target_types) == (
        data.types["source"],
        data.types["target"],
    )
    assert (found.task, found.preparation) == ("tiny", "moses_test")
    assert found.languages == {"source": "en", "target": "fr"}
    assert found.architecture == settings.architecture
