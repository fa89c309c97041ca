"""A training that is stopped, at any moment and by whatever, ends with the same bytes."""

import itertools
import json
import random
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.models.kernels import matmul
from convs2s.training import run, trainer
from convs2s.training.history import EpochRecord, read_history
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.interrupted import train_until
from tests.support.together import forking

COSINE = {"schedule": {"kind": "cosine", "warmup": 0.5}, "maximum_epochs": 1.5}
STEPS: dict[str, Any] = {
    "schedule": {"kind": "step", "hold": 1, "every": 1, "divide_by": 4},
    "maximum_epochs": 4,
    "learning_rate": 0.1,
}


@pytest.fixture
def outputs(tmp_path: Path) -> list[Path]:
    return [tmp_path / name / "model.safetensors" for name in ("whole", "parts")]


def jobs(task: Path, outputs: list[Path], **changes: Any) -> list[TrainingJob]:
    settings = tiny.settings(**changes)
    return [tiny.job(task, output, settings) for output in outputs]


def epochs(job: TrainingJob) -> tuple[EpochRecord, ...]:
    return read_history(job.output.with_name("history.jsonl")).epochs


def last_state(job: TrainingJob) -> Path:
    (path,) = job.output.parent.glob("state/*/last.safetensors")
    return path


@pytest.mark.parametrize(
    ("changes", "stops"),
    [
        (STEPS, [2, 3]),
        ({**STEPS, "velocity": "rescale"}, [2, 3]),
        ({**COSINE, "optimizer": "sgd"}, [1]),
        ({**COSINE, "optimizer": "adam"}, [1]),
        ({"best_by": "bleu"}, [1]),
    ],
)
def test_a_resumed_training_ends_as_an_undisturbed_one(
    task: Path, outputs: list[Path], changes: dict[str, Any], stops: list[int]
) -> None:
    whole, parts = jobs(task, outputs, **changes)
    with tiny.whole_states():
        train(whole)
        for epoch in stops:
            train_until(parts, epoch)
        train(parts)
    assert sha256(whole.output) == sha256(parts.output)
    # The best epoch may have been before: the last one's weights and velocity as well.
    expected, found = (load_tensors(last_state(job))[0] for job in (whole, parts))
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert torch.equal(tensor, found[name]), name


@pytest.mark.parametrize(
    ("maxima", "changes", "goes_on"),
    [
        ([1, 2, 4], {}, True),
        pytest.param(
            [1, None],
            {**STEPS, "schedule": {**STEPS["schedule"], "minimum": 3e-3}},
            True,
            marks=pytest.mark.slow,
        ),
        ([3, 4], {"average": 2, "optimizer": "adam", "learning_rate": 0.01}, True),
        pytest.param([2, 3], {"best_by": "bleu"}, True, marks=pytest.mark.slow),
        # The schedule ends both after an epoch: the model is only exported again.
        pytest.param(
            [2, 4],
            {**STEPS, "schedule": {**STEPS["schedule"], "minimum": 0.05}},
            True,
            marks=pytest.mark.slow,
        ),
        ([1, 2], COSINE, False),
        ([3, 2], {}, False),
        pytest.param([1.5, 3], {}, False, marks=pytest.mark.slow),
    ],
)
def test_more_epochs_end_as_if_the_training_had_them_from_the_start(
    task: Path,
    outputs: list[Path],
    capfd: pytest.CaptureFixture[str],
    maxima: list[float | None],
    changes: dict[str, Any],
    goes_on: bool,
) -> None:
    write = StateFolder.write

    def killed(folder: StateFolder, path: Path, *content: Any) -> None:
        if path == folder.last:
            raise KeyboardInterrupt
        write(folder, path, *content)

    for maximum in maxima:
        whole, parts = jobs(task, outputs, **{**changes, "maximum_epochs": maximum})
        capfd.readouterr()
        if maximum != maxima[0]:
            parts.output.unlink()  # as Snakemake does
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(StateFolder, "write", killed)
                with pytest.raises(KeyboardInterrupt):
                    train(parts)
        train(parts)
    said = capfd.readouterr().err
    assert ("\ngoing on from " in said) == goes_on
    assert ("\nepoch   1/" not in said) == goes_on
    train(whole)
    assert sha256(parts.output) == sha256(whole.output)
    expected, found = (epochs(job) for job in (whole, parts))
    assert [replace(row, tokens_per_second=0) for row in found] == [
        replace(row, tokens_per_second=0) for row in expected
    ]
    # Of all that a longer training can go on from, only the last state keeps its tensors.
    kept = parts.output.parent.glob("state/*/last.safetensors")
    whole_ones = [path for path in kept if load_tensors(path)[0]]
    assert len(whole_ones) <= 1 or not goes_on


def test_a_stopped_training_goes_on_with_more_epochs(
    task: Path, outputs: list[Path], capfd: pytest.CaptureFixture[str]
) -> None:
    _, short = jobs(task, outputs, maximum_epochs=2)
    train_until(short, 1)
    whole, longer = jobs(task, outputs, maximum_epochs=3)
    train(longer)
    assert "resuming in epoch 2 from " in capfd.readouterr().err
    train(whole)
    assert sha256(longer.output) == sha256(whole.output)


@pytest.mark.parametrize("change", ["dropped", "damaged", "lost"])
def test_without_a_state_to_go_on_from_more_epochs_start_again(
    task: Path, outputs: list[Path], capfd: pytest.CaptureFixture[str], change: str
) -> None:
    _, short = jobs(task, outputs, maximum_epochs=1)
    train(short)
    last = last_state(short)
    if change == "dropped":
        identity = json.loads(last.with_name("identity.json").read_text("utf-8"))
        folder = StateFolder(last.parent.parent, identity)
        folder.write(last, {}, folder.read(last, "cpu")[1])
    elif change == "damaged":
        last.write_bytes(last.read_bytes()[:-1])
    else:
        last.with_name("best.safetensors").unlink()
    whole, longer = jobs(task, outputs, maximum_epochs=2)
    capfd.readouterr()
    train(longer)
    said = capfd.readouterr().err
    assert f"cannot go on from {last.parent}: {last.parent}/" in said
    assert "training.maximum_epochs is 1.0, not 2.0): not loaded" in said
    train(whole)
    assert sha256(longer.output) == sha256(whole.output)


def test_killed_three_times(
    task: Path, outputs: list[Path], capfd: pytest.CaptureFixture[str]
) -> None:
    # A state after each update, so that a kill comes at every kind of moment.
    undisturbed, _ = jobs(task, outputs, maximum_epochs=12)
    _, killed = jobs(task, outputs, maximum_epochs=12, checkpoint_minutes=1e-9)
    train(undisturbed)
    moments = random.Random(7)

    def saved() -> float:
        paths = killed.output.parent.glob("state/*/last.safetensors")
        return max((path.stat().st_mtime_ns for path in paths), default=0)

    for _ in range(3):
        before = saved()
        process = forking().Process(target=train, args=(killed,))
        process.start()
        # Wait until it has gone on from where the last one was.
        while process.is_alive() and saved() == before:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.03))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    capfd.readouterr()
    train(killed)
    assert "resuming in epoch" in capfd.readouterr().err
    assert sha256(killed.output) == sha256(undisturbed.output)


def test_states_are_as_far_apart_as_is_asked_and_know_the_time_of_earlier_tries(
    task: Path, outputs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each look at the trainer's clock takes a second; an update looks twice.
    clock = map(float, itertools.count())
    monkeypatch.setattr(trainer, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    batches = []
    save = Trainer._save

    def noted(self: Trainer) -> None:
        batches.append(self.state.batch)
        save(self)

    monkeypatch.setattr(Trainer, "_save", noted)
    whole, parts = jobs(task, outputs, checkpoint_minutes=5 / 60, maximum_epochs=1)
    train(whole)
    # The fourth update looks at the seventh second; the last one of an epoch is saved in any case.
    assert batches == [4, 8, 10, 0]
    updates = itertools.count(1)
    start = Updater.start

    def start_until_the_tenth(*given: Any) -> Any:
        if next(updates) == 10:
            raise KeyboardInterrupt
        return start(*given)

    monkeypatch.setattr(Updater, "start", start_until_the_tenth)
    with pytest.raises(KeyboardInterrupt):
        train(parts)
    train(parts)
    assert next(updates) == 10 + 3
    rates = [epochs(job)[0].tokens_per_second for job in (whole, parts)]
    assert rates[1] == pytest.approx(rates[0], rel=0.15)


def test_updates_are_safe_while_validated_and_their_machine_is_named(
    task: Path, outputs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = jobs(task, outputs, maximum_epochs=2)
    train(whole)
    monkeypatch.setattr(trainer, "processor", lambda: "a")
    train_until(parts, epoch=1)
    monkeypatch.setattr(trainer, "processor", lambda: "b")
    with monkeypatch.context() as patch:
        patch.delattr(Updater, "validate")
        with pytest.raises(AttributeError):
            train(parts)
    # Which validates, and exports twice.
    monkeypatch.setattr(trainer, "processor", lambda: "c")
    monkeypatch.delattr(Updater, "start")
    train(parts)
    train(parts)
    assert sha256(whole.output) == sha256(parts.output)
    machines = [row.machine and row.machine["processor"] for row in epochs(parts)]
    assert machines == ["a", "b"]
    said = json.loads(parts.output.with_name("training.json").read_text("utf-8"))
    made = said["manifest"]
    assert (made["processor"], made["workers"], made["threads"]) == ("a; b", 1, 1)


@pytest.mark.parametrize(
    ("step", "changes", "left"),
    [
        ((run, "export"), {}, ["best"]),
        ((run, "export"), {"average": 2}, ["epoch2", "epoch3"]),
        ((Trainer, "drop_unneeded"), {"average": 2}, ["epoch2", "epoch3"]),
        ((Trainer, "drop_unneeded"), {"best_by": "bleu"}, ["best"]),
        ((Trainer, "drop_unneeded"), COSINE, ["best"]),
    ],
)
def test_a_kill_at_the_end_costs_no_training_and_what_the_model_is_made_of_stays(
    task: Path,
    outputs: list[Path],
    step: tuple[object, str],
    changes: dict[str, Any],
    left: list[str],
) -> None:
    whole, parts = jobs(task, outputs, **changes)
    train(whole)

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*step, kill)
        with pytest.raises(KeyboardInterrupt):
            train(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Trainer, "_train_epoch")
        for _ in range(2):
            parts.output.unlink(missing_ok=True)  # as Snakemake does
            train(parts)
            assert sha256(parts.output) == sha256(whole.output)
            # Another machine would round differently.
            patch.delattr(Updater, "validate", raising=False)
    last = last_state(parts)
    kept = {path.stem for path in last.parent.glob("*.safetensors")}
    assert kept == {*left, "last"}
    # A longer training could go on from the end of one without a cosine.
    assert bool(load_tensors(last)[0]) == (changes is not COSINE)


def test_another_machine_goes_on_from_copies_of_the_states(
    task: Path, outputs: list[Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, _ = jobs(task, outputs)
    train(whole)
    copies = (tmp_path / "copies").as_uri()
    lost, parts = (
        tiny.job(task, path, states=copies)
        for path in (tmp_path / "lost" / "model.safetensors", outputs[1])
    )
    train_until(lost, epoch=2)
    shutil.rmtree(tmp_path / "lost")
    train(parts)
    assert "fetched" in capfd.readouterr().err
    assert sha256(parts.output) == sha256(whole.output)


@pytest.mark.skipif(len(matmul.kernels()) < 2, reason="needs oneDNN")
def test_a_training_goes_on_with_the_kernel_that_it_began_with(
    task: Path, outputs: list[Path]
) -> None:
    whole, parts = (tiny.job(task, path, products="onednn") for path in outputs)
    train(whole)
    train_until(parts, epoch=1)
    train(tiny.job(task, parts.output, products="blas"))
    assert sha256(parts.output) == sha256(whole.output)
    said = json.loads(parts.output.with_name("training.json").read_text("utf-8"))
    assert said["manifest"]["products"] == "onednn"
