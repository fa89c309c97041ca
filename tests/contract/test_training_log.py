"""What a log and a terminal say of a running epoch."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from convs2s.training import progress as progress_module
from convs2s.training import state_folder
from convs2s.training.history import EpochRecord
from convs2s.training.log import LOG_NAME, duration, kept_in, log, speaking_as
from convs2s.training.progress import EpochProgress, Watch
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.state_folder import ProgressFile


def progress_of(
    watch: Watch, *, epochs: float | None = 7, epoch: int = 3, batches: int = 100
) -> EpochProgress:
    """Return the progress of an epoch, of whose updates ten were made before."""
    schedule = Schedule(0.1)
    state = TrainerState(
        schedule, 0.1, epoch, batch=10, updates=210, loss=250.0, tokens=100
    )
    return EpochProgress(state, epochs, batches, 100, watch)


def advance(progress: EpochProgress) -> None:
    """Make fifty updates of 4,000 tokens, all with a loss of 2.5 a token."""
    progress.state.batch += 50
    progress.state.updates += 50
    progress.state.tokens += 4000
    progress.state.loss += 10_000.0
    progress.advance(0.25)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(ProgressFile(tmp_path))


def test_a_log_has_a_line_with_all_that_was_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], watch: Watch
) -> None:
    monkeypatch.setattr(progress_module, "QUIET_SECONDS", 0.0)
    with speaking_as("task/model/seed1"):
        progress = progress_of(watch)
        assert progress.is_due()
        advance(progress)
    said = capsys.readouterr().err
    assert said.startswith("task/model/seed1: epoch 3/7, update 60/100, ")
    assert "loss 2.500, gradient 0.250, left: " in said
    assert said.endswith("of the training\n")
    assert "\r" not in said, "a bar is for terminals"


def test_a_log_has_a_line_a_minute(
    capsys: pytest.CaptureFixture[str], watch: Watch
) -> None:
    assert progress_module.QUIET_SECONDS == 60
    progress = progress_of(watch)
    assert not progress.is_due()
    advance(progress)
    assert capsys.readouterr().err == ""


def test_a_reader_that_has_gone_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream, kept_in(tmp_path):
        monkeypatch.setattr(sys, "stderr", stream)
        log("a line")
        log("another")
    assert (tmp_path / LOG_NAME).read_text("utf-8") == "a line\nanother\n"


def test_a_terminal_has_a_labelled_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], watch: Watch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with speaking_as("task/model/seed2"):
        progress = progress_of(watch)
        advance(progress)
    assert "\rtask/model/seed2: epoch 3/7:  10%" in capsys.readouterr().err


def test_the_time_left_is_that_of_all_epochs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], watch: Watch
) -> None:
    monkeypatch.setattr(progress_module, "QUIET_SECONDS", 60.0)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress = progress_of(watch)
    monkeypatch.setattr(time, "monotonic", lambda: now + 100)  # 2 s an update
    advance(progress)
    # 40 updates are left of this epoch, and 4 epochs of 100.
    assert "left: 1 min of the epoch, 15 min of the training" in capsys.readouterr().err


def test_nothing_is_said_of_an_end_that_validation_decides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], watch: Watch
) -> None:
    monkeypatch.setattr(progress_module, "QUIET_SECONDS", 0.0)
    advance(progress_of(watch, epochs=None))
    said = capsys.readouterr().err
    assert said.startswith("epoch 3, update 60/100, ")
    assert said.endswith(" of the epoch\n")


def test_a_silent_worker_is_due_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(progress_module, "QUIET_SECONDS", 0.0)
    progress = progress_of(Watch(ProgressFile(tmp_path), silent=True))
    assert progress.is_due()
    advance(progress)
    assert capsys.readouterr().err == ""


def test_a_training_that_starts_has_done_nothing(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path)
    file.start("process 1 on here", "0123")
    written = json.loads((tmp_path / "progress.json").read_bytes())
    counts = ("epoch", "batch", "batches", "updates", "best_epoch")
    assert [written[count] for count in counts] == [0] * len(counts)
    assert Schedule(0.25).best_epoch == 0


def test_the_file_says_how_far_an_epoch_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_folder, "SECONDS_BETWEEN_NOTES", 0.0)
    file = ProgressFile(tmp_path)
    file.start("process 1 on here", "0123")
    progress = progress_of(Watch(file))
    assert progress.is_due()
    advance(progress)
    written = json.loads((tmp_path / "progress.json").read_bytes())
    assert written["phase"] == "training"
    names = ("epoch", "epochs", "batch", "batches", "updates", "loss")
    assert [written[name] for name in names] == [3, 7, 60, 100, 260, 2.5]
    assert written["seconds"] > written["seconds_of_epoch"] > 0


def test_a_training_that_resumes_has_made_the_updates_of_its_state(
    tmp_path: Path,
) -> None:
    file = ProgressFile(tmp_path)
    file.start("process 1 on here", "0123")
    record = EpochRecord(1, 30, 0.25, 2.0, 2.0, 7.389, 100, 50)
    schedule = Schedule(0.25, best_epoch=1)
    Watch(file).begin(
        TrainerState(schedule, 0.25, 2, batch=5, updates=35, history=[record])
    )
    written = json.loads((tmp_path / "progress.json").read_bytes())
    assert (written["updates"], written["perplexity"], written["best_epoch"]) == (
        35,
        7.389,
        1,
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((0, "0 s"), (39.2, "40 s"), (60, "1 min"), (720, "12 min"), (3569, "59 min")),
        *((3571, "1 h 0 min"), (12_000, "3 h 20 min"), (86_369, "23 h 59 min")),
        *((86_371, "1 d 0 h"), (187_200, "2 d 4 h")),
    ],
)
def test_durations_in_words(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_an_epochs_line_has_its_place_among_all() -> None:
    line = EpochRecord(3, 30, 0.25, 2.0, 2.0, 7.389, 100, 50).line(7)
    assert line.startswith("epoch   3/7  updates     30  rate 0.25  ")


def test_a_quiet_training_speaks_in_its_log_alone(
    tmp_path: Path, watch: Watch, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept_in(tmp_path), speaking_as("a/b/seed1", quiet=True):
        log("a line")
        with progress_of(watch).bar:
            pass
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "train.log").read_text() == "a/b/seed1: a line\n"


def test_the_kept_log_grows_with_each_try(tmp_path: Path) -> None:
    for number in (1, 2):
        with kept_in(tmp_path), speaking_as("a/b/seed1"):
            log(f"try {number}")
    log("of nobody")
    assert (
        tmp_path / "train.log"
    ).read_text() == "a/b/seed1: try 1\na/b/seed1: try 2\n"


def test_a_last_epoch_that_is_cut_short_is_counted_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], watch: Watch
) -> None:
    monkeypatch.setattr(progress_module, "QUIET_SECONDS", 0.0)
    advance(progress_of(watch, epoch=1, epochs=0.9, batches=90))
    advance(progress_of(watch, epoch=2, epochs=2.5))
    said = capsys.readouterr().err
    assert "epoch 1/1, " in said
    assert "epoch 2/3, " in said
    assert "epoch   1/1 " in EpochRecord(1, 30, 0.25, 2.0, 2.0, 7.389, 100, 50).line(
        0.9
    )
