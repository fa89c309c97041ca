"""What a training begins with, and what it is known by: all that decides its result, no more."""

import gc
import re
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
from convs2s.training import run
from convs2s.training.data import TrainingData
from convs2s.training.history import read_history
from convs2s.training.identity import TRAINING_VERSION, TrainingJob, digest_of, identity
from convs2s.training.run import initial_network, train
from convs2s.training.start import fetched_start
from convs2s.training.trainer import Trainer
from tests.support import tiny
from tests.support.refusals import says
from tests.support.tiny import train_until
from tests.support.together import start


@pytest.fixture
def job(task: Path, tmp_path: Path) -> TrainingJob:
    return tiny.job(task, tmp_path / "model.safetensors")


def known(job: TrainingJob) -> str:
    return digest_of(identity(job, TrainingData.read(job.folder).checksums))


def recipe(**changes: Any) -> Recipe:
    stated = {"maximum_epochs": 2, "learning_rate": 0.05} | changes
    return tiny.settings(**stated).training


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


@pytest.mark.parametrize(
    ("mode", "average", "first"),
    [("initialise", None, 1), ("continue", None, 2), ("continue", 3, 3)],
)
def test_a_training_begins_with_a_model_and_ends_with_the_same_bytes_if_it_is_killed(
    job: TrainingJob, tmp_path: Path, mode: str, average: int | None, first: int
) -> None:
    """Epochs go on after the best one, or after the last one of a mean, or count anew."""
    train(replace(job, recipe=recipe(average=average)))
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


def test_a_url_is_fetched_once_and_checked(
    job: TrainingJob, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://host.example/model.safetensors"
    known = {url: Download(url=url, sha256=sha256(model))}

    def fill(_: str, part: PartialFile, __: object) -> None:
        part.append(BytesIO(model.read_bytes()).read, None)

    def fetched(start: Path | str) -> Path | None:
        return fetched_start(begun(start), job.output, known)

    fetch = Mock(side_effect=fill)
    monkeypatch.setattr(download, "fetch", fetch)
    place = fetched(url)
    assert place is not None
    assert fetched(url) == place
    assert fetch.call_count == 1
    place.write_bytes(b"damaged")
    assert fetched(url) == place
    assert sha256(place) == sha256(model)
    assert fetch.call_count == 2
    assert fetched("https://host.example/other.safetensors") != place
    assert fetched(model) is None


# ---- what a worker keeps in the memory of the CPU where it computes elsewhere ----

STATUS = Path("/proc/self/status")
WIDE = [{"layers": 10, "width": 512, "kernel": 3}]


class StartedError(Exception):
    """A training has been started, which was all that was to be seen of it."""


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
        raise StartedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "worker_device", lambda *_: "meta")
        patch.setattr(Trainer, "run", stop)
        for one in jobs:
            with pytest.raises(StartedError):
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
