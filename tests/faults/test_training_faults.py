"""Trainings that run out of memory, numbers, disk, time or workers, and go on after it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from convs2s.errors import UnfinishedError, UserError
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.state_folder import StateFolder
from convs2s.training.update import Updater, is_out_of_memory
from tests.support import tiny
from tests.support.limits import files_of_at_most

OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory."),
    RuntimeError(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
    ),
    MemoryError(),
    RuntimeError(
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ),
]
UPDATES = 10
"""Updates of an epoch of the tiny task."""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.prepare(tmp_path_factory.mktemp("task"))


def job(
    task: Path,
    output: Path,
    architecture: dict[str, Any] | None = None,
    **training: Any,
) -> TrainingJob:
    """A training that writes a state after every update."""
    often = {"maximum_epochs": 2, "checkpoint_minutes": 1e-9}
    settings = tiny.settings(architecture, **{**often, **training})
    return tiny.job(task, output / "model.safetensors", settings)


@pytest.fixture(scope="module")
def undisturbed(task: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The SHA-256 of the model that the training makes where nothing goes wrong."""
    one = job(task, tmp_path_factory.mktemp("undisturbed"), checkpoint_minutes=60.0)
    train(one)
    return sha256(one.output)


def last_state(one: TrainingJob) -> tuple[dict[str, Tensor], dict[str, Any]]:
    (path,) = one.output.parent.glob("state/*/last.safetensors")
    return load_tensors(path)


def check_that_it_goes_on(one: TrainingJob, undisturbed: str) -> None:
    """Give the same command again, without the fault."""
    assert not one.output.exists()
    train(one)
    assert sha256(one.output) == undisturbed


# ---- memory ----


def limit_memory(patch: pytest.MonkeyPatch, pairs: int, error: Exception) -> None:
    """Let memory end on the way back of more pairs, when only one gradient is still missing."""
    sound, running = Updater._loss, [0]

    def fail(gradient: Tensor) -> None:
        if running[0] > pairs:
            raise error

    def loss(updater: Updater, *arguments: Any) -> Tensor:
        if not running[0]:
            updater.network.get_parameter("encoder.embedding.tokens").register_hook(
                fail
            )
        running[0] = len(arguments[0].source)
        return sound(updater, *arguments)

    patch.setattr(Updater, "_loss", loss)


def test_memory_has_run_out_on_the_device_and_on_the_machine() -> None:
    assert [is_out_of_memory(error) for error in OUT_OF_MEMORY] == [True] * 4
    assert not is_out_of_memory(RuntimeError("shapes cannot be multiplied"))
    with pytest.raises(RuntimeError) as raised:
        torch.empty(10**15)
    assert is_out_of_memory(raised.value)


def test_a_micro_batch_out_of_memory_is_halved_and_reported(
    task: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    once = {"maximum_epochs": 1, "checkpoint_minutes": 60.0}
    jobs = [
        job(task, tmp_path / name, {"dropout": 0.0}, **once)
        for name in ("plenty", "little")
    ]
    train(jobs[0])
    capfd.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        limit_memory(patch, 9, OUT_OF_MEMORY[1])
        train(jobs[1])
    said = capfd.readouterr().err
    assert said.count("out of memory in epoch ") == UPDATES
    assert "a micro-batch of 16 pairs and" in said
    same, halved = (load_tensors(one.output)[0] for one in jobs)
    for name, value in same.items():
        torch.testing.assert_close(halved[name], value, rtol=1e-4, atol=1e-5)


def test_a_pair_that_does_not_fit_is_named(task: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        limit_memory(patch, 0, OUT_OF_MEMORY[0])
        with pytest.raises(
            UserError,
            match=r"train\.arrow: pair \d+ alone \(\d+ source, \d+ target tokens\) does not fit",
        ):
            train(job(task, tmp_path))


# ---- numbers ----


def test_a_loss_that_is_no_number_leaves_the_last_state(
    task: Path, tmp_path: Path, undisturbed: str
) -> None:
    sound, calls = Updater._loss, [0]

    def loss(updater: Updater, *arguments: Any) -> Tensor:
        calls[0] += 1
        return sound(updater, *arguments) * (torch.nan if calls[0] == 5 else 1.0)

    one = job(task, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "_loss", loss)
        said = "diverged in epoch 1 at update 5: loss nan.* lower .* is kept in "
        with pytest.raises(UserError, match=said):
            train(one)
    tensors, position = last_state(one)
    assert position["updates"] == 4
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    check_that_it_goes_on(one, undisturbed)


def test_an_exploding_gradient_is_clipped(task: Path, tmp_path: Path) -> None:
    sound = Updater._loss

    def loss(updater: Updater, *arguments: Any) -> Tensor:
        value = sound(updater, *arguments)
        return value * 1e9 if value.requires_grad else value

    one = job(task, tmp_path, maximum_epochs=1, checkpoint_minutes=60.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "_loss", loss)
        train(one)  # a hundred million times the gradient's bound, and no step too long
    assert all(tensor.isfinite().all() for tensor in last_state(one)[0].values())


# ---- disk ----


def test_a_full_disk_leaves_the_last_state(
    task: Path, tmp_path: Path, undisturbed: str
) -> None:
    one = job(task, tmp_path)
    with signalled_at(3), pytest.raises(UnfinishedError):
        train(one)
    with (
        files_of_at_most(2000),
        pytest.raises(
            UserError,
            match=r"last\.safetensors: cannot be written: .*one before it is kept; make",
        ),
    ):
        train(one)
    assert last_state(one)[1]["updates"] == 3
    assert not [path for path in tmp_path.rglob("*") if ".partial" in path.name]
    check_that_it_goes_on(one, undisturbed)


def test_a_kill_before_the_best_parameters_are_written_loses_nothing(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: str
) -> None:
    one, sound = job(task, tmp_path), StateFolder.write

    def killed(folder: StateFolder, path: Path, *content: Any) -> None:
        if path == folder.best:
            raise KeyboardInterrupt
        sound(folder, path, *content)

    with monkeypatch.context() as patch:
        patch.setattr(StateFolder, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            train(one)
    assert last_state(one)[1]["epoch"] == 2
    check_that_it_goes_on(one, undisturbed)


# ---- time ----


@contextmanager
def signalled_at(update: int, sent: signal.Signals = signal.SIGTERM) -> Iterator[None]:
    """Send a signal to this process as an update begins."""
    sound, calls = Updater.start, [0]

    def interrupted(updater: Updater, *arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == update:
            os.kill(os.getpid(), sent)
        return sound(updater, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "start", interrupted)
        yield


@pytest.mark.parametrize(
    ("update", "sent"),
    [(7, signal.SIGTERM), (UPDATES, signal.SIGTERM), (7, signal.SIGINT)],
)
def test_a_signal_stops_after_the_update_and_the_next_command_goes_on(
    task: Path, tmp_path: Path, undisturbed: str, update: int, sent: signal.Signals
) -> None:
    one = job(task, tmp_path, checkpoint_minutes=60.0)
    before = signal.getsignal(sent)
    with signalled_at(update, sent), pytest.raises(UnfinishedError) as stopped:
        train(one)
    assert f"{sent.name} was received; saved in epoch 1 after update {update}" in str(
        stopped.value
    )
    assert stopped.value.exit_code == 75
    assert signal.getsignal(sent) == before
    check_that_it_goes_on(one, undisturbed)


def test_a_time_limit_stops_in_time(task: Path, tmp_path: Path) -> None:
    one = job(task, tmp_path)
    limited = replace(one, time_limit=1e-6)
    with pytest.raises(
        UnfinishedError, match=r"the time limit of 1e-06 minutes is near; saved in"
    ):
        train(limited)
    assert last_state(one)[1]["updates"] == 1
