"""Trainings that run out of memory, numbers, disk or workers, and go on after it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor

from convs2s.config.identity import training_settings
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.training import heartbeat
from convs2s.training.heartbeat import HEARTBEATS, ending_stuck_workers
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.state_folder import StateFolder
from convs2s.training.update import Updater, is_out_of_memory
from tests.faults.limits import files_of_at_most
from tests.support import tiny
from tests.support.processes import listening
from tests.support.refusals import refusal, says
from tests.support.together import KilledError, start


def job(task: Path, output: Path, dropout: float = 0.1, **training: Any) -> TrainingJob:
    """A training that writes a state after every update."""
    often = {"maximum_epochs": 2, "checkpoint_minutes": 1e-9} | training
    settings = tiny.settings({"dropout": dropout}, **often)
    return tiny.job(task, output / "model.safetensors", settings)


def last_state(one: TrainingJob) -> tuple[dict[str, Tensor], dict[str, Any]]:
    (path,) = one.output.parent.glob("state/*/last.safetensors")
    return load_tensors(path)


@contextmanager
def replaced(owner: type, name: str, stand_in: Callable[..., Any]) -> Iterator[None]:
    """Let a function, which gets the call's number and what it stands in for, be called."""
    sound = getattr(owner, name)
    calls = [0]

    def call(*arguments: Any) -> Any:
        calls[0] += 1
        return stand_in(calls[0], sound, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, call)
        yield


def memory_for(tokens: int) -> Callable[..., Any]:
    """Let memory end on the way back of more tokens, when only one gradient is still missing."""
    running = [0]

    def fail(_: Tensor) -> None:
        if running[0] > tokens:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")

    def loss(call: int, sound: Any, updater: Updater, *arguments: Any) -> Any:
        if call == 1:
            last = updater.network.get_parameter("encoder.embedding.tokens")
            last.register_hook(fail)
        inputs = arguments[0]
        running[0] = max(inputs.source.numel(), inputs.previous.numel())
        return sound(updater, *arguments)

    return loss


def test_memory_runs_out_on_the_device_and_on_the_machine() -> None:
    for error in (
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"),
        MemoryError(),
    ):
        assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("shapes cannot be multiplied"))


def test_a_micro_batch_out_of_memory_is_halved_once_and_no_larger_one_is_tried(
    task: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    once = {"maximum_epochs": 1, "checkpoint_minutes": 60.0}
    plenty = job(task, tmp_path / "plenty", 0.0, **once)
    little = job(task, tmp_path / "little", 0.0, **once)
    train(plenty)
    with replaced(Updater, "_loss", memory_for(100)), signalled_at(8):
        refusal(train, little)
    state, position = last_state(little)
    fitting = position["micro_batch_tokens"]
    said = capfd.readouterr().err
    assert said.count("out of memory in epoch ") == 1
    says(said, f"{2 * fitting} padded tokens is halved, ", f"have at most {fitting} (")
    with replaced(Updater, "_loss", memory_for(fitting)), signalled_at(1):
        refusal(train, little)
    said = capfd.readouterr().err
    assert "out of memory" not in said
    says(said, f"micro-batches have at most {fitting} padded tokens, because memory")
    # Another GPU may have more memory.
    position["machine"]["gpu"] = "a smaller one"
    (path,) = little.output.parent.glob("state/*/last.safetensors")
    save_tensors(path, state, position)
    train(little)
    assert "micro-batches have" not in capfd.readouterr().err
    whole = load_tensors(plenty.output)[0]
    halved = load_tensors(little.output)[0]
    torch.testing.assert_close(halved, whole, rtol=1e-4, atol=1e-5)


def test_a_pair_that_does_not_fit_into_memory_alone_is_named(
    task: Path, tmp_path: Path
) -> None:
    with replaced(Updater, "_loss", memory_for(0)):
        message = refusal(train, job(task, tmp_path))
    says(message, "train.arrow: pair ", " alone (", "target tokens) does not fit")


def test_a_loss_that_is_no_number_leaves_the_last_state(
    task: Path, tmp_path: Path
) -> None:
    def loss(call: int, sound: Any, *arguments: Any) -> Any:
        return sound(*arguments) * (torch.nan if call == 5 else 1.0)

    one = job(task, tmp_path)
    with replaced(Updater, "_loss", loss):
        message = refusal(train, one)
    says(message, "diverged in epoch 1 at update 5: loss nan", "lower", "is kept in ")
    tensors, position = last_state(one)
    assert position["updates"] == 4
    assert all(tensor.isfinite().all() for tensor in tensors.values())


def signalled_at(update: int, sent: signal.Signals = signal.SIGTERM) -> Any:
    """Send a signal to this process as an update begins."""

    def start(call: int, sound: Any, *arguments: Any) -> Any:
        if call == update:
            os.kill(os.getpid(), sent)
        return sound(*arguments)

    return replaced(Updater, "start", start)


# An epoch of the tiny task has ten updates.
@pytest.mark.parametrize(("update", "sent"), [(7, signal.SIGINT), (10, signal.SIGTERM)])
def test_a_signal_stops_after_the_update(
    task: Path, tmp_path: Path, update: int, sent: signal.Signals
) -> None:
    one = job(task, tmp_path, checkpoint_minutes=60.0)
    before = signal.getsignal(sent)
    with signalled_at(update, sent), pytest.raises(UnfinishedError) as stopped:
        train(one)
    said = f"{sent.name} was received; saved in epoch 1 after update {update}"
    says(str(stopped.value), said)
    assert stopped.value.exit_code == 75
    assert signal.getsignal(sent) == before
    assert not one.output.exists()


def test_a_full_disk_leaves_the_last_state(task: Path, tmp_path: Path) -> None:
    one = job(task, tmp_path)
    with signalled_at(3):
        refusal(train, one)
    with files_of_at_most(2000):
        message = refusal(train, one)
    says(message, "last.safetensors: cannot be written", "one before it is kept; make")
    assert last_state(one)[1]["updates"] == 3
    assert not list(tmp_path.rglob("*.partial*"))


def test_a_kill_before_the_best_parameters_are_written_loses_nothing(
    task: Path, tmp_path: Path
) -> None:
    def write(
        _: int, sound: Any, folder: StateFolder, path: Path, *content: Any
    ) -> None:
        if path == folder.best:
            raise KeyboardInterrupt
        sound(folder, path, *content)

    whole = job(task, tmp_path / "whole")
    train(whole)
    killed = job(task, tmp_path / "killed")
    with replaced(StateFolder, "write", write), pytest.raises(KeyboardInterrupt):
        train(killed)
    assert last_state(killed)[1]["epoch"] == 2
    assert not killed.output.exists()
    train(killed)
    assert sha256(killed.output) == sha256(whole.output)


# Two workers, of which one hangs or vanishes


def hang() -> None:
    time.sleep(600.0)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train_until(folder: Path, one: TrainingJob, fail: Callable[[], None]) -> None:
    """Train in a worker; the second one fails in its seventh update."""
    os.environ[HEARTBEATS] = str(folder)
    heartbeat.SECONDS_BETWEEN_BEATS = 0.05
    heartbeat.LEAST_PATIENCE = 2.0
    add = Updater._add_gradient

    def failing(updater: Updater, *arguments: Any) -> Any:
        if updater.workers.rank == 1 and heartbeat.PULSE.updates == 7:
            fail()
        return add(updater, *arguments)

    Updater._add_gradient = failing  # type: ignore
    train(one)


@pytest.mark.parametrize("fail", [hang, kill])
def test_a_lost_worker_is_named_and_the_state_is_of_the_update_before(
    task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    fail: Callable[[], None],
) -> None:
    monkeypatch.setattr(heartbeat, "SECONDS_BETWEEN_LOOKS", 0.1)
    one = job(task, tmp_path, checkpoint_minutes=60.0)
    beats = tmp_path / "beats"
    beats.mkdir()
    with ending_stuck_workers(beats), pytest.raises((KilledError, UserError)):
        start(tmp_path / "meeting", 2, train_until, beats, one, fail)
    said = capfd.readouterr().err
    named = re.search(r"worker 1, process \d+, hangs \(in update 7 for .* s\)", said)
    assert (named is not None) == (fail is hang)
    _, position = last_state(one)
    assert (position["updates"], position["batch"]) == (6, 6)


LAUNCHED = """
import sys
from convs2s.cli.main import main
from convs2s.training import heartbeat
heartbeat.SECONDS_BETWEEN_LOOKS = 0.2
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="of Linux")
def test_a_command_whose_worker_vanishes_or_freezes_says_so_and_goes_on(
    task: Path, tmp_path: Path
) -> None:
    """Workers listen nowhere but on the loopback interface."""
    settings = tiny.settings(maximum_epochs=15, checkpoint_minutes=1e-9)
    (tmp_path / "settings.json").write_text(json.dumps(training_settings(settings)))
    output = tmp_path / "model.safetensors"
    options = f"--settings {tmp_path}/settings.json --output {output} --workers 2"
    options += " --device cpu --threads 1 --checkpoint-minutes 1e-9"
    command = [sys.executable, "-c", LAUNCHED, "train", str(task), *options.split()]
    for sent, code, words in (
        (signal.SIGSTOP, 1, "is frozen (no sign of life for 4.8 s) and is killed"),
        (signal.SIGKILL, 1, "worker 1 was killed by SIGKILL, so the others were stop"),
        (signal.SIGHUP, 75, "training is not finished: SIGHUP was received; saved in"),
    ):
        begun = time.time()
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not any(
            state.stat().st_mtime > begun
            for state in tmp_path.glob("state/*/last.safetensors")
        ):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        children = psutil.Process(process.pid).children()
        workers = {child.environ().get("RANK"): child.pid for child in children}
        for place in (process.pid, *workers.values()):
            assert all(listening(place))
        os.kill(process.pid if sent is signal.SIGHUP else workers["1"], sent)
        said = process.communicate(timeout=120)[1]
        assert process.returncode == code, said
        says(said, words, ": 2 workers by gloo on the CPU, fp32\n")
        assert not output.exists()
