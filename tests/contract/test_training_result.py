"""What a training begins with, what it is known by, and what it exports and says of it."""

import gc
import json
import math
import re
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest
import torch

from convs2s.config.file_reference import Download
from convs2s.config.model import Recipe
from convs2s.data.batches import Indices, collate
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END, read_counts
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.model_file import describe_model, load_model, save_model
from convs2s.publish.card import model_card
from convs2s.training import run
from convs2s.training.data import TrainingData
from convs2s.training.history import SourceUse, Validation, read_history
from convs2s.training.identity import TRAINING_VERSION, TrainingJob, digest_of, identity
from convs2s.training.loading import (
    VALIDATION_TOKENS,
    permuted_sources,
    validation_batches,
)
from convs2s.training.run import initial_network, log_end, train
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.start import fetched_start
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.contract.score_files import read
from tests.support import tiny
from tests.support.refusals import rows, says
from tests.support.tiny import train_until
from tests.support.together import start


def test_the_best_epochs_weights_are_exported_not_the_last(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = [3.0, 2.0, 1.0, 1.5, 0.5, 2.5]
    seen: list[Any] = []

    def validate(
        self: Updater, *_: Any, sources: Indices | None = None, **__: Any
    ) -> float:
        if sources is not None:
            return 3.5  # with permuted sources, after training
        seen.append(deepcopy(self.network.state_dict()))
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


def test_the_best_epoch_by_bleu_of_greedy_translations(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tiny model has a BLEU of 0, so that the loss decides."""
    settings = tiny.settings(best_by="bleu")
    for scores, best in (([0.0, 0.0, 0.0], 3), ([7.0, 9.0, 8.0], 2)):
        if any(scores):
            place = "convs2s.training.validation_bleu.validation_bleu"
            monkeypatch.setattr(place, Mock(side_effect=scores))
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
    # From a bound on it is no warning.
    assert str(SourceUse(10.0, 12.0, 1.2)) == f"{USE} 12.00: 1.20 times"


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
def test_the_best_or_mean_weights_are_exported_and_it_is_measured_with_them(
    task: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """So high a rate throws the network off after its best epoch; a mean is of no epoch."""
    settings = tiny.settings(maximum_epochs=4, **changes)
    train(tiny.job(task, tmp_path / "model.safetensors", settings))
    said = read(tmp_path / "training.json")
    assert "average" in changes or said["best_epoch"] != 4
    network, _ = load_model(tmp_path / "model.safetensors")
    if "average" in changes:
        kept = sorted(tmp_path.glob("state/*/epoch*.safetensors"))
        assert [path.stem for path in kept] == ["epoch3", "epoch4"]
        states = [load_tensors(path)[0] for path in kept]
        for name, tensor in network.state_dict().items():
            mean = torch.stack([state[name] for state in states]).mean(0)
            torch.testing.assert_close(tensor, mean)
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


# ---- what it begins with, and what it is known by ----


@pytest.fixture
def job(task: Path, tmp_path: Path) -> TrainingJob:
    return tiny.job(task, tmp_path / "model.safetensors")


def known(job: TrainingJob) -> str:
    return digest_of(identity(job, TrainingData.read(job.folder).checksums))


SHORT: dict[str, Any] = {"maximum_epochs": 2, "learning_rate": 0.05}


def begun(start: Path | str, mode: str = "initialise", **changes: Any) -> Recipe:
    """The recipe of a training that begins with a model."""
    changes["start"] = {"from": str(start), "as": mode}
    return tiny.settings(**SHORT | changes).training


def test_whatever_changes_the_result_and_nothing_else_makes_another_training(
    job: TrainingJob, model: Path, tmp_path: Path
) -> None:
    candidates = tmp_path / "candidates.tsv"
    candidates.write_text("source\ttargets\n", "utf-8")
    others = [
        replace(job, seed=2),
        replace(job, recipe=tiny.settings(clip=0.2).training),
        replace(job, architecture=tiny.settings({"dropout": 0.3}).architecture),
        replace(job, folder=tiny.prepare(tmp_path / "other", pairs=150)),
        replace(job, candidates=candidates),
        replace(job, recipe=begun(candidates)),
        replace(job, recipe=begun(model, "continue")),
    ]
    started = replace(job, recipe=begun(model))
    assert len({known(job), known(started), *map(known, others)}) == 9
    later = tiny.settings(threads=2, checkpoint_minutes=1).training
    same = replace(job, recipe=later, threads=2, output=tmp_path, time_limit=3.0)
    # A training keeps the library that it began with.
    assert known(replace(same, products="blas")) == known(job)
    # A model is known by its bytes, wherever it lies.
    shutil.copy(model, tmp_path / "copy")
    assert known(replace(job, recipe=begun(tmp_path / "copy"))) == known(started)


def test_an_identity_has_the_version_and_the_checksum_of_every_file(
    task: Path, job: TrainingJob
) -> None:
    found = identity(job, TrainingData.read(task).checksums)
    files = (
        "dataset/train.arrow dataset/valid.arrow vocabulary/en.tsv vocabulary/fr.tsv"
    )
    assert found["data"] == {name: sha256(task / name) for name in files.split()}
    assert found["version"] == TRAINING_VERSION
    # That of older versions of the program.
    data = dict.fromkeys(files.split()[:2], "0" * 64)
    assert digest_of(found | {"data": data}) == "01780d009b47cc13"


def test_a_seed_starts_from_weights_of_its_own(task: Path, job: TrainingJob) -> None:
    data = TrainingData.read(task)
    first, second = (
        initial_network(replace(job, seed=seed), data).state_dict() for seed in (1, 2)
    )
    for name in ("encoder.embedding.tokens", "decoder.output.weight_v"):
        assert not first[name].allclose(second[name], atol=1e-3)


# ---- a training that begins with a model ----


@pytest.mark.parametrize(
    ("mode", "average", "first"),
    [("initialise", None, 1), ("continue", None, 2), ("continue", 3, 3)],
)
def test_a_training_begins_with_a_model_and_ends_with_the_same_bytes_if_it_is_killed(
    job: TrainingJob, tmp_path: Path, mode: str, average: int | None, first: int
) -> None:
    """Epochs go on after the best one, or after the last one of a mean, or count anew."""
    train(replace(job, recipe=tiny.settings(**SHORT, average=average).training))
    network, description = load_model(job.output)
    training = {**description.training, "best_epoch": 1}
    changed = description.model_copy(update={"training": training})
    first_model = tmp_path / "start.safetensors"
    save_model(first_model, network.state_dict(), changed)
    longer = {"maximum_epochs": 4, "learning_rate": 0.02, "average": average}
    output = tmp_path / "whole/model.safetensors"
    whole = replace(job, recipe=begun(first_model, mode, **longer), output=output)
    killed = replace(whole, output=tmp_path / "killed/model.safetensors")
    train(whole)
    train_until(killed, epoch=3)
    train(killed)
    assert sha256(whole.output) == sha256(killed.output)
    made = read_history(killed.output.with_name("history.jsonl")).epochs
    assert [row.epoch for row in made] == list(range(first, 5))
    before = read_history(tmp_path / "history.jsonl").epochs[0]
    assert made[0].valid_loss < before.valid_loss
    assert describe_model(killed.output).training["epochs"] == 4
    card = model_card(killed.output)
    says(card, f"started from: the model `{sha256(first_model)}`, {mode}")


def test_a_url_is_fetched_and_checked(
    job: TrainingJob, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Always to the same place, where a download finds what is there."""
    url = "https://host.example/model.safetensors"
    known = {url: Download(url=url, sha256=sha256(model))}
    download = Mock()
    monkeypatch.setattr("convs2s.training.start.download_file", download)
    local, place, again, other = (
        fetched_start(begun(start), job.output, known)
        for start in (model, url, url, f"{url}.other")
    )
    assert local is None
    assert place == again != other
    checked = call(url, place, sha256=known[url].sha256, md5=None, size=None)
    assert download.mock_calls[:2] == [checked, checked]


# ---- what a worker keeps in the memory of the CPU where it computes elsewhere ----

STATUS = Path("/proc/self/status")
WIDE = [{"layers": 10, "width": 512, "kernel": 3}]


def memory_of_a_start(jobs: list[TrainingJob]) -> list[tuple[int, int]]:
    """Start to train on a device that needs no memory; return what is kept, and the parameters."""
    sizes: list[tuple[int, int]] = []

    def stop(self: Trainer) -> None:
        parameters = list(self.network.parameters())
        assert {one.device.type for one in parameters} == {"meta"}
        gc.collect()
        # Memory that no file lies behind.
        kilobytes = re.findall(r"RssAnon:\s+(\d+)", STATUS.read_text())
        sizes.append((int(kilobytes[0]) << 10, sum(one.nbytes for one in parameters)))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "worker_device", lambda *_: "meta")
        patch.setattr(Trainer, "run", stop)
        for one in jobs:
            with pytest.raises(KeyboardInterrupt):
                train(one)
    return sizes


@pytest.mark.skipif(not STATUS.exists(), reason="Linux tells what a process keeps")
def test_the_parameters_are_not_kept_where_they_were_made(
    job: TrainingJob, tmp_path: Path
) -> None:
    wide = tiny.settings({"decoder": WIDE})
    jobs = [job, tiny.job(job.folder, tmp_path / "wide/model", wide)]
    # The first one starts the libraries.
    [sizes] = start(tmp_path / "at", 1, memory_of_a_start, jobs)
    (before, _), (kept, parameters) = sizes
    assert parameters > 48 << 20
    assert kept - before < 0.25 * parameters
