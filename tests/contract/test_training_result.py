"""What a training exports and says of it: the weights of its best epoch, whatever came after."""

import json
import math
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from convs2s.data.batches import Indices, collate
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END, read_counts
from convs2s.files.tensors import load_tensors
from convs2s.model_file import load_model
from convs2s.training.data import TrainingData
from convs2s.training.history import SourceUse, Validation, read_history
from convs2s.training.loading import (
    VALIDATION_TOKENS,
    permuted_sources,
    validation_batches,
)
from convs2s.training.run import log_end, train
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.update import Updater
from tests.contract.score_files import read
from tests.support import tiny
from tests.support.refusals import rows, says
from tests.support.tiny import train_until


def test_the_best_epochs_weights_are_exported_not_the_last(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = [3.0, 2.0, 1.0, 1.5, 0.5, 2.5]
    seen: list[dict[str, torch.Tensor]] = []

    def validate(
        self: Updater, *_: Any, sources: Indices | None = None, **__: Any
    ) -> float:
        if sources is not None:
            return 3.5  # with permuted sources, after training
        weights = self.network.state_dict()
        seen.append({name: tensor.clone() for name, tensor in weights.items()})
        return losses[len(seen) - 1]

    monkeypatch.setattr(Updater, "validate", validate)
    settings = tiny.settings(maximum_epochs=6, learning_rate=0.01)
    job = tiny.job(task, tmp_path / "model.safetensors", settings)
    train_until(job, 4)
    train_until(job, 5)
    train(job)
    network, description = load_model(job.output)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, seen[4][name])
    best, last = (weights["decoder.output.bias"] for weights in seen[4:])
    assert not torch.equal(best, last)
    said = read(tmp_path / "training.json")
    perplexity = pytest.approx(math.exp(0.5), abs=1e-4)
    expected = {"best_epoch": 5, "epochs": 6, "validation_perplexity": perplexity}
    assert expected.items() <= said.items()
    assert expected.items() <= description.training.items()
    assert said["curve"] == pytest.approx([math.exp(loss) for loss in losses])
    made = read_history(tmp_path / "history.jsonl")
    assert "maximum of 6 epochs" in str(made.stop)
    tokens = int(TrainingData.read(task).train.lengths("target").sum())
    assert [epoch.tokens for epoch in made.epochs] == [tokens] * 6
    # The fourth is no better: from then on every epoch divides.
    rates = [epoch.learning_rate for epoch in made.epochs]
    assert rates == pytest.approx([0.01] * 4 + [0.001, 0.0001])


def test_the_mean_of_the_last_epochs(task: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.safetensors"
    train(tiny.job(task, output, tiny.settings(average=2)))
    kept = sorted(output.parent.glob("state/*/epoch*.safetensors"))
    assert [path.stem for path in kept] == ["epoch2", "epoch3"]
    states = [load_tensors(path)[0] for path in kept]
    network, _ = load_model(output)
    for name, tensor in network.state_dict().items():
        mean = torch.stack([state[name] for state in states]).mean(0)
        torch.testing.assert_close(tensor, mean)


def test_the_best_epoch_by_bleu_of_greedy_translations(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tiny model has a BLEU of 0, so that the loss decides."""
    settings = tiny.settings(best_by="bleu")
    for scores, best in (([0.0, 0.0, 0.0], 3), ([7.0, 9.0, 8.0], 2)):
        if any(scores):
            following = Mock(side_effect=scores)
            place = "convs2s.training.validation_bleu.validation_bleu"
            monkeypatch.setattr(place, following)
        train(tiny.job(task, tmp_path / f"{best}/model", settings))
        epochs = read_history(tmp_path / f"{best}/history.jsonl").epochs
        assert [epoch.valid_bleu for epoch in epochs] == scores
        said = read(tmp_path / f"{best}/training.json")
        assert said["best_epoch"] == best
        assert said["validation_perplexity"] == epochs[best - 1].valid_perplexity


def test_a_model_file_brings_what_translation_needs(tmp_path: Path) -> None:
    """Of a vocabulary of pieces with a threshold; one of words leaves no word to be split."""
    task = tiny.prepare(tmp_path / "task")
    codes = "#version: 0.2\n"
    (task / "vocabulary/codes").write_text(codes)
    counts = dict(read_counts(task / "vocabulary/en.tsv"))
    threshold = sorted(counts.values())[len(counts) // 2]
    frequent = sorted(token for token, count in counts.items() if count >= threshold)
    path = task / "dataset/train.json"
    stated = read(path)
    for kind, splittable in (("word", None), ("bpe", frequent)):
        stated["vocabulary"] |= {"kind": kind, "threshold": threshold}
        path.write_text(json.dumps(stated))
        assert TrainingData.read(task).splittable == splittable
    dictionary = tmp_path / "dictionary.tsv"
    dictionary.write_text("source\ttarget\tcount\tsource_count\nw1\tw1x\t3\t4\n")
    truecasers = [tmp_path / "en.tsv", tmp_path / "fr.tsv"]
    for word, table in zip(("London", "Londres"), truecasers, strict=True):
        table.write_text(f"word\tcount\n{word}\t2\n", "utf-8")
    output = tmp_path / "model.safetensors"
    settings = tiny.settings(maximum_epochs=1)
    train(
        tiny.job(task, output, settings, dictionary=dictionary, truecasers=truecasers)
    )
    _, found = load_model(output)
    assert found.dictionary == {"w1": "w1x"}
    assert found.truecasers == {"en": ["London"], "fr": ["Londres"]}
    assert (found.bpe_codes, found.splittable) == (codes, frequent)


def test_a_finished_model_outlives_its_removal_until_the_next_one_is_finished(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Snakemake removes outputs before it runs a training with more epochs."""
    path = tmp_path / "model.safetensors"
    kept = tmp_path / "state/finished.model.safetensors"
    train(tiny.job(task, path, tiny.settings(maximum_epochs=1)))
    first = path.read_bytes()
    assert kept.read_bytes() == first
    path.unlink()
    longer = tiny.job(task, path, tiny.settings(maximum_epochs=2))
    capsys.readouterr()
    train_until(longer, 1)
    assert f"the model of the last training stays in {kept}" in capsys.readouterr().err
    assert kept.read_bytes() == first
    train(longer)
    assert ", with permuted sources " in capsys.readouterr().err
    assert kept.read_bytes() == path.read_bytes() != first
    assert read(kept.with_name("finished.training.json"))["epochs"] == 2


# In the fifth and sixth row not the maximum alone has ended it.
ADVICE = """
4 => 4 => plateau => 0.25 => raise training.maximum_epochs (4) => goes on from the last state
4 => 4 => step => 0.25 => raise training.maximum_epochs (4) => goes on from the last state
4 => 4 => cosine => 0.25 => raise training.maximum_epochs (4) => trains again from the start
4 => 3.5 => plateau => 0.25 => raise training.maximum_epochs (3.5) => trains again from
4 => 4 => plateau => 1e-5 => lower training.schedule.minimum (0.0001) => trains again from
4 => null => plateau => 1e-5 => lower training.schedule.minimum (0.0001) => trains again from
3 => 4 => plateau => 0.25 => =>
"""


USE = "validation perplexity 10.00, with permuted sources"


def test_advice_is_given_where_the_last_of_four_epochs_was_the_best(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for best, maximum, kind, rate, *advice in rows(ADVICE):
        recipe = {"maximum_epochs": json.loads(maximum), "schedule": {"kind": kind}}
        trainer = tiny.trainer(task, tmp_path, **recipe)
        schedule = Schedule(
            float(rate), annealing=True, best_epoch=int(best), stop_reason="enough"
        )
        trainer.state = TrainerState(schedule, float(rate), epoch=5)
        log_end(trainer, Validation(loss=1.0, source_use=SourceUse(10.0, 11.9, 1.19)))
        said = capsys.readouterr().err
        assert ("more epochs would help" in said) == (best == "4")
        says(said, *advice, f"warning: the model ignores its source: {USE} 11.90: 1.19")


# ---- whether it reads its source ----


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
    for batch in batches:
        assert collate(pairs, batch, sources).source.size <= VALIDATION_TOKENS
    last = collate(pairs, np.array([2999, 3000]), sources)
    assert (last.source == END).argmax(1).tolist() == [899, 1]
    assert (last.target == END).argmax(1).tolist() == [2, 900]


@pytest.mark.parametrize(
    "changes", [{"learning_rate": 1.0, "clip": 1.0}, {"average": 2}]
)
def test_it_is_measured_with_the_weights_that_are_exported(
    task: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """So high a rate throws the network off after its best epoch; a mean is of no epoch."""
    settings = tiny.settings(maximum_epochs=4, **changes)
    train(tiny.job(task, tmp_path / "model.safetensors", settings))
    said = read(tmp_path / "training.json")
    assert "average" in changes or said["best_epoch"] != 4
    network, _ = load_model(tmp_path / "model.safetensors")
    valid = TrainingData.read(task).valid
    updater = Updater(network, settings.training, seed=1, device="cpu")
    perplexity = math.exp(updater.validate(valid))
    permuted = math.exp(updater.validate(valid, sources=permuted_sources(valid)))
    assert said["validation_perplexity"] == pytest.approx(perplexity, rel=1e-4)
    assert said["source_use"] == {
        "perplexity": pytest.approx(perplexity, rel=1e-4),
        "permuted_perplexity": pytest.approx(permuted, abs=1e-3),
        "ratio": pytest.approx(permuted / perplexity, rel=1e-3),
    }


def test_from_a_bound_on_it_is_no_warning() -> None:
    assert str(SourceUse(10.0, 12.0, 1.2)) == f"{USE} 12.00: 1.20 times"
