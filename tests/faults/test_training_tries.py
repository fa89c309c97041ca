"""Tries that saved nothing are counted within a run of the workflow, by the training itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.errors import LastingError, UnfinishedError, UserError
from convs2s.pipeline.living import RUN
from convs2s.training.run import train
from convs2s.training.trainer import Trainer
from convs2s.training.tries import NOTE, counted
from tests.support import tiny
from tests.support.refusals import refusal, refuses, says

FAULT = UserError("the disk is full")


@pytest.fixture(autouse=True)
def _run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN, "@login:5:1")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the last state of a training will be."""
    folder = tmp_path / "state" / "0123"
    folder.mkdir(parents=True)
    return folder / "last.safetensors"


def fail(state: Path, *errors: BaseException, saves: int | None = None) -> None:
    """Make tries that end with an error each, after a state was saved at a time, or none."""

    def end(error: BaseException) -> None:
        if saves is not None:
            state.touch()
            os.utime(state, ns=(saves, saves))
        raise error

    for error in errors:
        with pytest.raises(type(error)), counted(state, "process 9 on n1"):
            end(error)


def begin(state: Path) -> None:
    """Begin a try that is good."""
    with counted(state, "process 9 on n1"):
        pass


def test_another_try_ends_at_once_and_says_how_the_others_ended(state: Path) -> None:
    """Until the note is removed, which the message says."""
    fail(state, FAULT, KeyError("x"), KeyboardInterrupt())
    note = state.with_name(NOTE)
    for _ in range(2):
        says(
            refusal(begin, state),
            "3 tries in a row of this run saved no state (",
            "process 9 on n1: the disk is full; ",
            "KeyError: 'x'; ",
            ": KeyboardInterrupt)",
            "train.log",
            f"remove {note}",
        )
    note.unlink()
    begin(state)


def test_what_would_fail_again_is_not_tried_again(state: Path) -> None:
    fail(state, LastingError("diverged"), saves=5)
    for _ in range(2):
        says(refusal(begin, state), "would only be repeated (", ": diverged)", NOTE)


def test_a_try_that_saves_a_state_or_ends_well_is_none_of_them(state: Path) -> None:
    for saves in range(1, 4):
        fail(state, FAULT, FAULT)
        fail(state, UnfinishedError("stopped"), saves=saves)
    fail(state, FAULT, FAULT)
    begin(state)
    assert [path.name for path in state.parent.iterdir()] == [state.name]
    fail(state, FAULT, FAULT, FAULT)
    refuses("3 tries", begin, state)


def test_another_run_of_the_workflow_begins_at_zero_and_by_hand_nothing_is_counted(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(state, FAULT, FAULT, FAULT)
    monkeypatch.delenv(RUN)
    fail(state, *[FAULT] * 4)
    monkeypatch.setenv(RUN, "@login:6:2")
    fail(state, FAULT, FAULT, FAULT)
    refuses("3 tries", begin, state)


def test_a_damaged_note_is_begun_anew(state: Path) -> None:
    for damaged in ("", "[]", '{"run": 1, "saved": 2, "tries": [{"a": 1}]}'):
        state.with_name(NOTE).write_text(damaged)
        fail(state, FAULT, FAULT, FAULT)
        refuses("3 tries", begin, state)


KILLED = """\
import os, signal, sys
from pathlib import Path
from convs2s.training.tries import counted
with counted(Path(sys.argv[1]), "process 9 on n1"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_killed_is_counted(state: Path) -> None:
    fail(state, FAULT, FAULT)
    done = subprocess.run([sys.executable, "-c", KILLED, state], check=False)
    assert done.returncode == -signal.SIGKILL
    refuses("n1: ended without a word: killed", begin, state)


def test_a_training_that_diverges_is_not_trained_again_in_its_run(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tiny.settings(learning_rate=1e30, clip=1e30)
    job = tiny.job(task, tmp_path / "model.safetensors", settings)
    refuses("training diverged in epoch 1", train, job)
    with monkeypatch.context() as patch:
        patch.delattr(Trainer, "run")
        refuses("would only be repeated ... training diverged", train, job)
    monkeypatch.setenv(RUN, "@login:6:2")
    assert "repeated" not in refusal(train, job)
