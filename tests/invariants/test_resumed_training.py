"""A training that is stopped, at any moment and by whatever, ends with the same bytes."""

import itertools
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
import yaml

from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.files.text import read_json
from convs2s.models.kernels import matmul
from convs2s.training import trainer
from convs2s.training.history import EpochRecord, read_history
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.tiny import train_until
from tests.support.together import forking

RESUMED = yaml.safe_load("""
- [{schedule: {kind: step, hold: 1, every: 1, divide_by: 4}, velocity: keep, learning_rate: 0.1,
    maximum_epochs: 4}, [2, 3]]
- [{schedule: {kind: cosine, warmup: 0.5}, optimizer: sgd, maximum_epochs: 1.5}, [1]]
- [{best_by: bleu, optimizer: adam}, [1]]
""")
"""Recipes, and the epochs after which they are stopped."""

LONGER = yaml.safe_load("""
- [[1, 2, 3], {}, true]
- [[2, 3], {average: 2, optimizer: adam, learning_rate: 0.01}, true]
# The schedule ends both after an epoch: the model is only exported again.
- [[2, null], {schedule: {kind: step, hold: 1, every: 1, divide_by: 4, minimum: 0.1}}, true]
- [[1, 1.5], {schedule: {kind: cosine, warmup: 0.5}, optimizer: sgd}, false]
- [[2, 1], {}, false]
- [[0.5, 2], {}, false]
""")
"""Maxima of epochs, one after the other; the recipe; whether the last training goes on."""

ENDS = yaml.safe_load("""
- [run.export, {}, [best, last], true]
- [trainer.Trainer.drop_unneeded, {average: 2, optimizer: adam, learning_rate: 0.01},
    [epoch2, epoch3, last], true]
- [trainer.Trainer.drop_unneeded, {schedule: {kind: cosine, warmup: 0.5}, optimizer: sgd,
    maximum_epochs: 1.5}, [best, last], false]
""")
"""What is killed; the recipe; the files of its states; whether a longer training could go on."""

Training = Callable[..., TrainingJob]


@pytest.fixture
def job(task: Path, tmp_path: Path) -> Training:
    """A training of three epochs, unless its recipe says otherwise."""

    def described(**recipe: Any) -> TrainingJob:
        settings = tiny.settings(**recipe)
        return tiny.job(task, tmp_path / "parts/model.safetensors", settings)

    return described


@pytest.fixture(scope="module")
def assert_undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Compare the model with that of the same training without a stop, and return the latter.

    It is made once for all tests, and keeps its whole last state.
    """
    made: dict[str, TrainingJob] = {}

    def compared(parts: TrainingJob) -> TrainingJob:
        key = f"{parts.recipe} {parts.products}"
        if key not in made:
            output = tmp_path_factory.mktemp("whole") / "model.safetensors"
            made[key] = replace(parts, output=output, states=None)
            with mock.patch.object(Trainer, "drop_unneeded"):
                train(made[key])
        assert sha256(parts.output) == sha256(made[key].output)
        return made[key]

    return compared


def epochs(job: TrainingJob) -> tuple[EpochRecord, ...]:
    return read_history(job.output.with_name("history.jsonl")).epochs


def last_state(job: TrainingJob) -> Path:
    (path,) = job.output.parent.glob("state/*/last.safetensors")
    return path


def stop(*_: object) -> None:
    """Stand for a step before which the training is killed."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(("recipe", "stops"), RESUMED)
def test_a_resumed_training_ends_as_an_undisturbed_one(
    job: Training,
    assert_undisturbed: Training,
    recipe: dict[str, Any],
    stops: list[int],
) -> None:
    """Also the last epoch's weights and optimizer, where the best epoch was before."""
    parts = job(**recipe)
    with mock.patch.object(Trainer, "drop_unneeded"):
        for epoch in stops:
            train_until(parts, epoch)
        train(parts)
    whole = assert_undisturbed(parts)
    found, expected = (load_tensors(last_state(one))[0] for one in (parts, whole))
    torch.testing.assert_close(found, expected, atol=0, rtol=0)


@pytest.mark.parametrize(("maxima", "recipe", "goes_on"), LONGER)
def test_more_epochs_end_as_if_the_training_had_them_from_the_start(
    job: Training,
    assert_undisturbed: Training,
    capfd: pytest.CaptureFixture[str],
    maxima: list[float | None],
    recipe: dict[str, Any],
    goes_on: bool,
) -> None:
    """Also after a kill before the state of the shorter training is taken over."""
    write = StateFolder.write

    def stop_at_the_last(folder: StateFolder, path: Path, *content: Any) -> None:
        if path == folder.last:
            raise KeyboardInterrupt
        write(folder, path, *content)

    for maximum in maxima:
        capfd.readouterr()
        parts = job(**recipe | {"maximum_epochs": maximum})
        if parts.output.exists():
            parts.output.unlink()  # as Snakemake does
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(StateFolder, "write", stop_at_the_last)
                with pytest.raises(KeyboardInterrupt):
                    train(parts)
        train(parts)
    said = capfd.readouterr().err
    assert ("\ngoing on from " in said) == goes_on
    assert ("\nepoch   1/" not in said) == goes_on
    whole = assert_undisturbed(parts)
    found, expected = (
        [row.valid_loss for row in epochs(one)] for one in (parts, whole)
    )
    assert found == expected
    # Of all that a longer training can go on from, only the last state keeps its tensors.
    kept = parts.output.parent.glob("state/*/last.safetensors")
    assert sum(bool(load_tensors(path)[0]) for path in kept) <= 1 or not goes_on


def test_without_a_state_to_go_on_from_more_epochs_start_again(
    job: Training,
    assert_undisturbed: Training,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for maximum in (1, 2):
        short = job(maximum_epochs=maximum)
        train(short)
    # The second has dropped the tensors of the first, and loses a file of its own.
    for best in short.output.parent.glob("state/*/best.safetensors"):
        best.unlink()
    longer = job()
    train(longer)
    said = capfd.readouterr().err
    assert said.count("cannot go on from ") == 2
    assert "has no tensors, which were dropped" in said
    assert "training.maximum_epochs is 1.0, not 3.0): not loaded" in said
    assert_undisturbed(longer)


def test_a_training_killed_three_times_goes_on_with_more_epochs(
    job: Training,
    assert_undisturbed: Training,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # A state after each update, so that a kill comes at every kind of moment.
    killed, longer = (job(maximum_epochs=n, checkpoint_minutes=1e-9) for n in (8, 9))

    def saved() -> list[int]:
        paths = killed.output.parent.glob("state/*/last.safetensors")
        return [path.stat().st_mtime_ns for path in paths]

    for seconds in (0.0, 0.01, 0.03):
        before = saved()
        process = forking().Process(target=train, args=(killed,))
        process.start()
        # Wait until it has gone on from where the last one was.
        while process.is_alive() and saved() == before:
            time.sleep(0.01)
        time.sleep(seconds)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    capfd.readouterr()
    train(longer)
    assert "resuming in epoch" in capfd.readouterr().err
    assert_undisturbed(longer)


def test_states_are_as_far_apart_as_is_asked_and_know_the_time_of_earlier_tries(
    job: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each look at the trainer's clock takes a second; an update looks twice.
    clock = map(float, itertools.count())
    monkeypatch.setattr(trainer, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    batches = []
    save = Trainer._save

    def save_and_stop(self: Trainer) -> None:
        batches.append(self.state.batch)
        save(self)
        if len(batches) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_save", save_and_stop)
    parts = job(checkpoint_minutes=5 / 60, maximum_epochs=1)
    with pytest.raises(KeyboardInterrupt):
        train(parts)
    train(parts)
    # The fourth update looks at the seventh second; the last one of an epoch is saved in any case.
    assert batches == [4, 8, 10, 0]
    (row,) = epochs(parts)
    assert row.tokens / row.tokens_per_second == pytest.approx(22, abs=3)


@pytest.mark.parametrize(("step", "recipe", "left", "is_whole"), ENDS)
def test_a_kill_at_the_end_costs_no_training_and_what_the_model_is_made_of_stays(
    job: Training,
    assert_undisturbed: Training,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    recipe: dict[str, Any],
    left: list[str],
    is_whole: bool,
) -> None:
    parts = job(**recipe)
    with monkeypatch.context() as patch:
        patch.setattr(f"convs2s.training.{step}", stop)
        with pytest.raises(KeyboardInterrupt):
            train(parts)
    with monkeypatch.context() as patch:
        patch.delattr(Trainer, "_train_epoch")
        train(parts)
        made = sha256(parts.output)
        parts.output.unlink()  # as Snakemake does
        # Another machine would round differently.
        patch.delattr(Updater, "validate")
        train(parts)
    assert sha256(parts.output) == made
    assert_undisturbed(parts)
    last = last_state(parts)
    assert sorted(path.stem for path in last.parent.glob("*.safetensors")) == left
    assert bool(load_tensors(last)[0]) == is_whole


def test_another_machine_goes_on_from_copies_of_the_states(
    job: Training,
    assert_undisturbed: Training,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No update is lost by a kill in validation; the second epoch was made on the first machine."""
    lost = replace(job(), states=(tmp_path / "copies").as_uri())
    parts = replace(lost, output=tmp_path / "other/model.safetensors")
    monkeypatch.setattr(trainer, "processor", lambda: "a")
    train_until(lost, epoch=1)
    with monkeypatch.context() as patch:
        patch.setattr(Updater, "validate", stop)
        with pytest.raises(KeyboardInterrupt):
            train(lost)
    shutil.rmtree(lost.output.parent)
    monkeypatch.setattr(trainer, "processor", lambda: "b")
    train(parts)
    assert "fetched" in capfd.readouterr().err
    assert_undisturbed(parts)
    machines = [row.machine and row.machine["processor"] for row in epochs(parts)]
    assert machines == ["a", "a", "b"]
    said: Any = read_json(parts.output.with_name("training.json"))
    made = said["manifest"]
    assert (made["processor"], made["workers"], made["threads"]) == ("a; b", 1, 1)


@pytest.mark.skipif(len(matmul.kernels()) < 2, reason="needs oneDNN")
def test_a_training_goes_on_with_the_kernel_that_it_began_with(
    job: Training, assert_undisturbed: Training
) -> None:
    parts = replace(job(), products="onednn")
    train_until(parts, epoch=1)
    train(replace(parts, products="blas"))
    assert_undisturbed(parts)
    said: Any = read_json(parts.output.with_name("training.json"))
    assert said["manifest"]["products"] == "onednn"
