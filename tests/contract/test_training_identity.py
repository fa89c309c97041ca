"""What a training goes on from: its own state alone, with everything that decides what follows."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter

from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.training.data import TrainingData
from convs2s.training.history import EpochRecord
from convs2s.training.identity import TrainingJob, digest_of, identity
from convs2s.training.run import train
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.state_folder import StateFolder
from tests.support import tiny
from tests.support.interrupted import train_until


def folder(job: TrainingJob) -> Path:
    return StateFolder(
        Path("state"), identity(job, TrainingData.read(job.folder).checksums)
    ).path


def test_whatever_changes_the_result_has_a_state_of_its_own(
    task: Path, tmp_path: Path
) -> None:
    job = tiny.job(task, tmp_path / "model.safetensors")
    candidates = tmp_path / "candidates.tsv"
    candidates.write_text("source\ttargets\n", "utf-8")
    others = {
        "seed": replace(job, seed=2),
        "recipe": replace(job, recipe=tiny.settings(clip=0.2).training),
        "network": replace(
            job, architecture=tiny.settings({"dropout": 0.3}).architecture
        ),
        "data": replace(job, folder=tiny.prepare(tmp_path / "other", pairs=150)),
        "candidates": replace(job, candidates=candidates),
    }
    places = {name: folder(other) for name, other in others.items()} | {
        "first": folder(job)
    }
    assert len(set(places.values())) == len(places)


def test_what_changes_no_result_changes_no_state(task: Path, tmp_path: Path) -> None:
    job = tiny.job(task, tmp_path / "model.safetensors")
    recipe = tiny.settings(threads=2, checkpoint_minutes=1).training
    other = replace(
        job, recipe=recipe, threads=2, output=tmp_path / "b", time_limit=3.0
    )
    # A training keeps the library that it began with.
    other = replace(other, products="blas")
    assert folder(other) == folder(job)


def test_a_training_of_when_schedules_stated_a_comparison_is_the_same_one(
    task: Path,
) -> None:
    job = tiny.job(task, Path("model.safetensors"))
    data = dict.fromkeys(("dataset/train.arrow", "dataset/valid.arrow"), "0" * 64)
    found = identity(job, TrainingData.read(job.folder).checksums) | {"data": data}
    assert digest_of(found) == "01780d009b47cc13"


def test_an_identity_has_the_checksum_of_every_file(task: Path) -> None:
    files = (
        "dataset/train.arrow",
        "dataset/valid.arrow",
        "vocabulary/en.tsv",
        "vocabulary/fr.tsv",
    )
    assert TrainingData.read(task).checksums == {
        name: sha256(task / name) for name in files
    }


def test_a_state_knows_where_everything_stands() -> None:
    schedule = Schedule(0.01, True, 2.0, 3, "over")
    record = EpochRecord(1, 10, 0.1, 3.0, 2.0, 7.4, 900, 1000)
    state = TrainerState(schedule, 0.02, 5, 4, 44, 123.4, 99, 5.6, [record, record])
    fields = json.loads(json.dumps(asdict(state)))
    assert TypeAdapter(TrainerState).validate_python(fields) == state


def test_a_seed_starts_from_weights_of_its_own(task: Path, tmp_path: Path) -> None:
    paths = [tmp_path / str(seed) / "model.safetensors" for seed in (1, 2)]
    # So low a rate leaves the weights as they were drawn.
    settings = tiny.settings({"dropout": 0.0}, maximum_epochs=1, learning_rate=1e-9)
    for seed, path in enumerate(paths, start=1):
        train(tiny.job(task, path, settings, seed=seed))
    states = [next(path.parent.glob("state/*/best.safetensors")) for path in paths]
    first, second = (load_tensors(path)[0] for path in states)
    for name in ("encoder.embedding.tokens", "decoder.output.weight_v"):
        assert not first[name].allclose(second[name], atol=1e-3)


@pytest.mark.parametrize(
    "changes", [{}, {"velocity": "rescale"}], ids=["keep", "rescale"]
)
def test_a_training_goes_on_after_its_rate_has_changed(
    task: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """The velocity is in units of the last rate, which the state has to know."""
    steps = {"kind": "step", "hold": 1, "every": 1, "divide_by": 4}
    settings = tiny.settings(
        maximum_epochs=4, learning_rate=0.1, schedule=steps, **changes
    )
    whole, parts = (
        tmp_path / name / "model.safetensors" for name in ("whole", "parts")
    )
    with tiny.whole_states():
        train(tiny.job(task, whole, settings))
    for epoch in (2, 3):
        train_until(tiny.job(task, parts, settings), epoch)
    with tiny.whole_states():
        train(tiny.job(task, parts, settings))
    assert sha256(whole) == sha256(parts)
    # The best epoch may have been before: the last one's weights and velocity as well.
    last = [next(one.parent.glob("state/*/last.safetensors")) for one in (whole, parts)]
    expected, found = (load_tensors(path)[0] for path in last)
    assert expected.keys() == found.keys()
    assert [
        name for name in expected if not torch.equal(expected[name], found[name])
    ] == []


# ---- the schedule where a loss is as good as another ----


def test_an_equal_loss_is_no_improvement() -> None:
    recipe = tiny.settings(maximum_epochs=None, learning_rate=0.1).training
    schedule = Schedule(0.1)
    for epoch, loss in enumerate([3.0, 2.0, 2.0], start=1):
        schedule = schedule.after_epoch(epoch, loss, recipe)
    assert schedule.annealing
    assert schedule.learning_rate == pytest.approx(0.01)
    assert (schedule.best_epoch, schedule.best_loss) == (2, 2.0)
