"""What a training begins with, and what it is known by: all that decides its result, no more."""

import shutil
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from convs2s.config.file_reference import Download
from convs2s.config.model import Recipe
from convs2s.download import download
from convs2s.download.partial_file import PartialFile
from convs2s.files.checksums import sha256
from convs2s.model_file import describe_model, load_model, save_model
from convs2s.publish.card import model_card
from convs2s.training.data import TrainingData
from convs2s.training.history import read_history
from convs2s.training.identity import TRAINING_VERSION, TrainingJob, digest_of, identity
from convs2s.training.run import initial_network, train
from convs2s.training.start import fetched_start
from tests.support import tiny
from tests.support.refusals import says
from tests.support.tiny import train_until


@pytest.fixture
def job(task: Path, tmp_path: Path) -> TrainingJob:
    return tiny.job(task, tmp_path / "model.safetensors")


def known(job: TrainingJob) -> str:
    return digest_of(identity(job, TrainingData.read(job.folder).checksums))


def recipe(**changes: Any) -> Recipe:
    return tiny.settings(maximum_epochs=2, learning_rate=0.05, **changes).training


def begun(start: Path | str, mode: str = "initialise", **changes: Any) -> Recipe:
    """The recipe of a training that begins with a model."""
    return recipe(start={"from": str(start), "as": mode}, **changes)


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


def test_a_killed_training_ends_with_the_same_bytes_and_its_card_names_the_start(
    job: TrainingJob, model: Path, tmp_path: Path
) -> None:
    killed = replace(job, recipe=begun(model))
    whole = replace(killed, output=tmp_path / "whole/model")
    train(whole)
    train_until(killed, epoch=1)
    train(killed)
    assert sha256(whole.output) == sha256(killed.output)
    made = read_history(tmp_path / "history.jsonl").epochs
    assert [row.epoch for row in made] == [1, 2]
    card = model_card(killed.output)
    says(card, f"started from: the model `{sha256(model)}`, initialise")


@pytest.mark.parametrize(("average", "first"), [(None, 2), (3, 3)])
def test_continue_goes_on_after_the_epoch_whose_weights_it_has(
    job: TrainingJob, tmp_path: Path, average: int | None, first: int
) -> None:
    """The best one, or the last one of a mean."""
    train(replace(job, recipe=recipe(average=average)))
    network, description = load_model(job.output)
    training = {**description.training, "best_epoch": 1}
    changed = description.model_copy(update={"training": training})
    start = tmp_path / "start.safetensors"
    save_model(start, network.state_dict(), changed)
    further = tiny.settings(
        start={"from": str(start), "as": "continue"},
        maximum_epochs=4,
        learning_rate=0.02,
        average=average,
    )
    output = tmp_path / "further/model.safetensors"
    train(replace(job, recipe=further.training, output=output))
    made = read_history(output.with_name("history.jsonl")).epochs
    assert [row.epoch for row in made] == list(range(first, 5))
    before = read_history(tmp_path / "history.jsonl").epochs[0]
    assert made[0].valid_loss < before.valid_loss
    assert describe_model(output).training["epochs"] == 4


def test_a_url_is_fetched_once_and_checked(
    job: TrainingJob, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_: str, part: PartialFile, __: object) -> None:
        part.append(BytesIO(model.read_bytes()).read, None)

    fetch = Mock(side_effect=fill)
    monkeypatch.setattr(download, "fetch", fetch)
    url = "https://host.example/model.safetensors"
    known = {url: Download(url=url, sha256=sha256(model))}
    place = fetched_start(begun(url), job.output, known)
    assert place is not None
    assert fetched_start(begun(url), job.output, known) == place
    assert fetch.call_count == 1
    place.write_bytes(b"damaged")
    assert fetched_start(begun(url), job.output, known) == place
    assert sha256(place) == sha256(model)
    assert fetch.call_count == 2
    other = "https://host.example/other.safetensors"
    assert fetched_start(begun(other), job.output, {}) != place
    assert fetched_start(begun(model), job.output, {}) is None
