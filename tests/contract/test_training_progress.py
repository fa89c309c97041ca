"""What a log, a terminal, progress.json and TensorBoard say of a running training."""

import errno
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.files.interrupts import Interrupted
from convs2s.training import progress as progress_module
from convs2s.training import run, state_folder
from convs2s.training.data import TrainingData
from convs2s.training.history import EpochRecord
from convs2s.training.log import LOG_NAME, duration, kept_in, log, speaking_as
from convs2s.training.progress import EVENTS, EpochProgress, Watch
from convs2s.training.run import train
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.state_folder import ProgressFile, StateFolder
from convs2s.training.trainer import Trainer
from tests.support import tiny
from tests.support.interrupted import train_until
from tests.support.refusals import says

RECORD = EpochRecord(1, 30, 0.25, 2.0, 2.0, 7.389, 100, 50)


def written(folder: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((folder / "progress.json").read_bytes())
    return said


@pytest.mark.parametrize(
    ("epoch", "epochs", "terminal", "silent", "words"),
    [
        (
            3,
            7,
            False,
            False,
            [
                "a/b/seed1: epoch 3/7, update 60/100, 40 tokens/s, loss 2.500, ",
                # 40 updates are left of this epoch, and 4 epochs of 100.
                "gradient 0.250, left: 1 min of the epoch, 15 min of the training\n",
            ],
        ),
        (3, None, False, False, ["epoch 3, update 60/100", "1 min of the epoch\n"]),
        (1, 0.9, False, False, ["epoch 1/1, "]),
        (2, 2.5, False, False, ["epoch 2/3, "]),
        (3, 7, True, False, ["\ra/b/seed1: epoch 3/7:  10%"]),
        (3, 7, False, True, []),
    ],
)
def test_a_line_or_a_bar_and_the_file_say_how_far_an_epoch_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    epoch: int,
    epochs: float | None,
    terminal: bool,
    silent: bool,
    words: list[str],
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    file = ProgressFile(tmp_path)
    file.start("process 1 on here", "0123")
    # Ten updates were made before.
    state = TrainerState(Schedule(0.1), 0.1, epoch, 10, 210, loss=250.0, tokens=100)
    with speaking_as("a/b/seed1"):
        progress = EpochProgress(state, epochs, 100, 100, Watch(file, silent=silent))
        assert not progress.is_due()
        clock[0] += 100  # 2 s an update
        assert progress.is_due()
        state.batch += 50
        state.updates += 50
        state.tokens += 4000
        state.loss += 10_000.0
        progress.advance(0.25)
        progress.bar.close()
    said = capsys.readouterr().err
    says(said, *words)
    assert bool(said) == bool(words)
    assert ("\r" in said) == terminal, "a bar is for terminals"
    found = written(tmp_path)
    expected = {"phase": "training", "epoch": epoch, "epochs": epochs, "batch": 60}
    expected |= {"batches": 100, "updates": 260, "loss": 2.5, "seconds_of_epoch": 80}
    assert expected.items() <= found.items()
    assert progress_module.LINE_SECONDS == 60


def test_a_training_that_begins_or_resumes_has_made_the_updates_of_its_state(
    tmp_path: Path,
) -> None:
    file = ProgressFile(tmp_path)
    file.start("process 1 on here", "0123")
    counts = ("epoch", "batch", "batches", "updates", "best_epoch")
    assert [written(tmp_path)[count] for count in counts] == [0] * 5
    schedule = Schedule(0.25, best_epoch=1)
    Watch(file).begin(TrainerState(schedule, 0.25, 2, 5, 35, history=[RECORD]))
    expected = {"updates": 35, "perplexity": 7.389, "best_epoch": 1}
    assert expected.items() <= written(tmp_path).items()


@pytest.mark.parametrize(
    ("owner", "step"), [(TrainingData, "check_checksums"), (Trainer, "result")]
)
def test_a_signal_before_and_after_the_updates_is_said(
    task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    step: str,
) -> None:
    def be_told(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    one = tiny.job(task, tmp_path / "model", tiny.settings(maximum_epochs=1))
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, be_told)
        with pytest.raises(Interrupted, match="SIGTERM"):
            train(one)
    said = written(tmp_path / "state")
    assert (said["phase"], said["why"]) == ("stopped", "Interrupted: SIGTERM")
    phases = []

    def note(*_: object) -> None:
        phases.append(written(tmp_path / "state")["phase"])

    monkeypatch.setattr(run, "export", note)
    train(one)
    assert phases == ["exporting"]


# ---- the log ----


def test_the_kept_log_grows_with_each_try_whoever_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept_in(tmp_path), speaking_as("a/b/seed1", quiet=True):
        log("try 1")
    assert capsys.readouterr() == ("", "")
    log("of nobody")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream, kept_in(tmp_path):
        monkeypatch.setattr(sys, "stderr", stream)
        log("try 2")
        log("more")
    kept = (tmp_path / LOG_NAME).read_text("utf-8")
    assert kept == "a/b/seed1: try 1\ntry 2\nmore\n"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (39.2, "40 s"),
        (59.2, "1 min"),
        (60, "1 min"),
        (720, "12 min"),
        (3569, "59 min"),
        (3571, "1 h 0 min"),
        (12_000, "3 h 20 min"),
        (86_369, "23 h 59 min"),
        (86_371, "1 d 0 h"),
        (187_200, "2 d 4 h"),
    ],
)
def test_durations_in_words(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_the_next_owner_of_a_lock_says_how_the_last_one_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = StateFolder(tmp_path / "state", {})
    lock = tmp_path / "state/lock"
    with folder.locked():
        owner = lock.read_bytes()
    assert capfd.readouterr().err == ""
    with pytest.raises(UserError), folder.locked():
        raise UserError("a fault that was said")
    with folder.locked():
        pass
    named = f"before: process {os.getpid()} on {os.uname().nodename}"
    assert capfd.readouterr().err == f"{named}: a fault that was said\n"
    # As a kill leaves it, and in another locale.
    for content, words in (
        (owner, f"{named} has ended without a word: killed"),
        (owner[:-1] + b": Jos\xe9\n", f"{named}: Jos\N{REPLACEMENT CHARACTER}\n"),
    ):
        lock.write_bytes(content)
        with folder.locked():
            says(capfd.readouterr().err, words)


# ---- TensorBoard ----


def scalars(folder: Path) -> list[tuple[str, int, float]]:
    """Every scalar that TensorBoard shows of a folder: its tag, step and value."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    shown = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    shown.Reload()
    found = []
    for tag in shown.Tags()["scalars"]:
        found += [(tag, event.step, event.value) for event in shown.Scalars(tag)]
    return found


def test_a_resumed_training_has_each_step_once(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    # Each update is noted.
    monkeypatch.setattr(state_folder, "SECONDS_BETWEEN_NOTES", 0.0)
    one = tiny.job(task, tmp_path / "model", tiny.settings(tensorboard=True))
    train_until(one, epoch=1)
    (last,) = tmp_path.rglob("last.safetensors")
    saved = last.read_bytes()
    train_until(one, epoch=2)
    last.write_bytes(saved)  # as if killed before the second epoch's state was written
    train(one)
    found = scalars(last.parent / EVENTS)
    assert max(Counter((tag, step) for tag, step, _ in found).values()) == 1
    steps: dict[str, set[int]] = {}
    for tag, step, _ in found:
        steps.setdefault(tag, set()).add(step)
    assert steps["epoch/valid_perplexity"] == steps["epoch/train_loss"] == {10, 20, 30}
    # The update that a training resumes after is shown by its epoch.
    assert steps["running/loss"] | {10} == set(range(1, 31))
    assert "running/gradient" in steps


def test_an_epoch_whose_events_a_kill_forestalled_gets_them_and_an_undone_update_none(
    tmp_path: Path,
) -> None:
    pytest.importorskip("tensorboard")
    for folder, state in (
        ("between", TrainerState(Schedule(0.25), 0.25, 2, 0, 30, history=[RECORD])),
        ("within", TrainerState(Schedule(0.25), 0.25, 2, 1, 31, history=[RECORD])),
    ):
        for loss in (2.5, 3.5):
            watch = Watch(ProgressFile(tmp_path), events=tmp_path / folder)
            watch.begin(state)
            for updates in (31, 32):
                watch.add_events(updates, "running", {"loss": loss})
    found = scalars(tmp_path / "between")
    assert ("epoch/valid_loss", 30, 2.0) in found
    assert len(found) == len(set(found)) == 7
    assert scalars(tmp_path / "within") == [
        ("running/loss", 31, 2.5),
        ("running/loss", 31, 3.5),
        ("running/loss", 32, 3.5),
    ]


def test_a_disk_that_fills_up_ends_no_training(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    refused = []

    def refuse(*event: object) -> None:
        refused.append(event)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SummaryWriter, "add_scalar", refuse)
    settings = tiny.settings(tensorboard=True, maximum_epochs=1)
    one = tiny.job(task, tmp_path / "model", settings)
    train(one)
    assert one.output.is_file()
    assert refused


def test_without_the_package_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An earlier test may have imported it.
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    watch = Watch(ProgressFile(tmp_path), events=tmp_path)
    with pytest.raises(UserError) as error:
        watch.begin(TrainerState(Schedule(0.25), 0.25, 1))
    says(str(error.value), "tensorboard is not installed", "convs2s[tensorboard]")
