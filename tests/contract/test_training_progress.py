"""What a log, a terminal, progress.json and TensorBoard say of a running training."""

import errno
import json
import os
import signal
import sys
import time
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from convs2s.errors import UserError
from convs2s.files.interrupts import Interrupted
from convs2s.training import run, state_folder
from convs2s.training.data import TrainingData
from convs2s.training.history import EpochRecord
from convs2s.training.log import LOG_NAME, duration, kept_in, log, speaking_as
from convs2s.training.progress import EpochProgress, Watch
from convs2s.training.run import train
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.state_folder import ProgressFile, StateFolder
from convs2s.training.trainer import Trainer
from tests.contract.score_files import read
from tests.support import tiny
from tests.support.refusals import refusal, rows, says

RECORD = EpochRecord(1, 30, 0.25, 2.0, 2.0, 7.389, 100, 50)


# Two seconds an update: 40 are left of the epoch, and 4 epochs of 100.
SHOWN = r"""
3 => 7 => log => a/b/seed1: epoch 3/7, update 60/100, 40 tokens/s, loss 2.500, gradient 0.250
3 => 7 => log => , left: 1 min of the epoch, 15 min of the training\n
3 => null => log => epoch 3, update 60/100
3 => null => log => , left: 1 min of the epoch\n
1 => 0.9 => log => epoch 1/1,
3 => 7 => terminal => \ra/b/seed1: epoch 3/7:  10%
3 => 7 => nobody =>
"""


def test_a_line_or_a_bar_and_the_file_say_how_far_an_epoch_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for epoch, epochs, reader, words in rows(SHOWN):
        monkeypatch.setattr(
            sys.stderr, "isatty", Mock(return_value=reader == "terminal")
        )
        watch = Watch(ProgressFile(tmp_path), silent=reader == "nobody")
        watch.progress.start("process 1 on here", "0123")
        maximum = json.loads(epochs)
        # Ten updates were made before.
        state = TrainerState(Schedule(0.1), 0.1, int(epoch), 10, 210, 250.0, 100)
        with speaking_as("a/b/seed1"):
            progress = EpochProgress(state, maximum, 100, 100, watch)
            assert not progress.is_due()
            clock[0] += 100
            assert progress.is_due()
            state.batch += 50
            state.updates += 50
            state.tokens += 4000
            state.loss += 10_000.0
            progress.advance(0.25)
            progress.bar.close()
        said = capsys.readouterr().err
        assert words in said
        assert bool(said) == bool(words)
        assert ("\r" in said) == (reader == "terminal")
        expected = {"phase": "training", "epochs": maximum, "batch": 60, "batches": 100}
        expected |= {"updates": 260, "loss": 2.5, "seconds_of_epoch": 80}
        assert expected.items() <= read(tmp_path / "progress.json").items()


def test_a_signal_before_and_after_the_updates_is_said(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = []

    def note(*_: object) -> None:
        phases.append(read(tmp_path / "state/progress.json")["phase"])

    one = tiny.job(task, tmp_path / "model", tiny.settings(maximum_epochs=1))
    for owner, step in ((TrainingData, "check_checksums"), (Trainer, "result")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, lambda *_: signal.raise_signal(signal.SIGTERM))
            with pytest.raises(Interrupted, match="SIGTERM"):
                train(one)
        said = read(tmp_path / "state/progress.json")
        assert (said["phase"], said["why"]) == ("stopped", "Interrupted: SIGTERM")
    monkeypatch.setattr(run, "export", note)
    train(one)
    assert phases == ["exporting"]


# ---- the log ----


def test_the_kept_log_grows_with_each_try_whoever_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept_in(tmp_path), speaking_as("a/b/seed1", quiet=True):
        log("try 1")
    log("of nobody")
    assert capsys.readouterr() == ("", "of nobody\n")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream, kept_in(tmp_path):
        monkeypatch.setattr(sys, "stderr", stream)
        log("try 2")
        log("more")
    assert (tmp_path / LOG_NAME).read_text("utf-8") == "a/b/seed1: try 1\ntry 2\nmore\n"


DURATIONS = """
0 => 0 s
39.2 => 40 s
59.2 => 1 min
720 => 12 min
3569 => 59 min
3571 => 1 h 0 min
12000 => 3 h 20 min
86369 => 23 h 59 min
86371 => 1 d 0 h
187200 => 2 d 4 h
"""


def test_durations_in_words() -> None:
    for seconds, said in rows(DURATIONS):
        assert duration(float(seconds)) == said


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
    ended = lock.read_bytes()
    named = f"before: process {os.getpid()} on {os.uname().nodename}"
    for content, words in (
        (ended, f"{named}: a fault that was said\n"),
        (owner, f"{named} has ended without a word: killed"),
        # In another locale.
        (owner[:-1] + b": Jos\xe9\n", f"{named}: Jos\N{REPLACEMENT CHARACTER}\n"),
    ):
        lock.write_bytes(content)
        with folder.locked():
            says(capfd.readouterr().err, words)


# ---- TensorBoard ----


def test_an_epoch_whose_events_a_kill_forestalled_gets_them_and_an_undone_update_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorBoard hides what was written before of ``purge_step`` and later steps.

    Without the package it is one line.
    """
    package = Mock()
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", package)
    for batch, updates, purge_step in ((0, 30, 30), (1, 31, 32)):
        package.reset_mock()
        state = TrainerState(Schedule(0.25), 0.25, 2, batch, updates, history=[RECORD])
        watch = Watch(ProgressFile(tmp_path), events=tmp_path)
        watch.begin(state)
        package.SummaryWriter.assert_called_once_with(
            str(tmp_path), purge_step=purge_step
        )
        shown = package.SummaryWriter().add_scalar.call_args_list
        assert (call("epoch/valid_loss", 2.0, 30) in shown) == (batch == 0)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard")
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    said = refusal(watch.begin, state)
    says(said, "tensorboard is not installed", "convs2s[tensorboard]")


def test_a_training_shows_its_updates_and_epochs_and_no_full_disk_ends_it(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    monkeypatch.setattr(state_folder, "SECONDS_BETWEEN_NOTES", 0.0)
    add = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(SummaryWriter, "add_scalar", add)
    settings = tiny.settings(tensorboard=True, maximum_epochs=1)
    one = tiny.job(task, tmp_path / "model", settings)
    train(one)
    assert one.output.is_file()
    assert [call.args[2] for call in add.call_args_list] == [*range(1, 11), 10]
