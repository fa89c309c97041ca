"""What a training is known by: everything that decides its result, and nothing else."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.config.model import Recipe
from convs2s.files.checksums import sha256
from convs2s.training.data import TrainingData
from convs2s.training.identity import TRAINING_VERSION, TrainingJob, digest_of, identity
from convs2s.training.run import initial_network
from tests.support import tiny


@pytest.fixture
def job(task: Path, tmp_path: Path) -> TrainingJob:
    return tiny.job(task, tmp_path / "model.safetensors")


def known(job: TrainingJob) -> str:
    return digest_of(identity(job, TrainingData.read(job.folder).checksums))


def beginning_with(start: Path, mode: str = "initialise") -> Recipe:
    return tiny.settings(start={"from": str(start), "as": mode}).training


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
        replace(job, recipe=beginning_with(candidates)),
        replace(job, recipe=beginning_with(model, "continue")),
    ]
    started = replace(job, recipe=beginning_with(model))
    assert len({known(job), known(started), *map(known, others)}) == 9
    recipe = tiny.settings(threads=2, checkpoint_minutes=1).training
    same = replace(job, recipe=recipe, threads=2, output=tmp_path, time_limit=3.0)
    # A training keeps the library that it began with.
    assert known(replace(same, products="blas")) == known(job)
    # A model is known by its bytes, wherever it lies.
    shutil.copy(model, tmp_path / "copy")
    assert known(replace(job, recipe=beginning_with(tmp_path / "copy"))) == known(
        started
    )


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
