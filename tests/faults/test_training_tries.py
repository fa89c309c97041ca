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

THREE = r"^3 tries in a row of this run saved no state \(.*\): see .*train\.log; not tried again: "


@pytest.fixture(autouse=True)
def _run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN, "@login:5:1")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the last state of a training will be."""
    folder = tmp_path / "state" / "0123"
    folder.mkdir(parents=True)
    return folder / "last.safetensors"


def fail(state: Path, error: BaseException, *, saves: int | None = None) -> None:
    """Make a try that ends with an error, after a state was saved at a time, or none."""

    def end() -> None:
        if saves is not None:
            state.touch()
            os.utime(state, ns=(saves, saves))
        raise error

    with pytest.raises(type(error)), counted(state, "process 9 on n1"):
        end()


def begin(state: Path) -> None:
    """Begin a try that is good."""
    with counted(state, "process 9 on n1"):
        pass


def test_the_fourth_try_in_a_row_ends_at_once_and_says_how_the_others_ended(
    state: Path,
) -> None:
    fail(state, UserError("the disk is full"))
    fail(state, KeyError("x"))
    fail(state, KeyboardInterrupt())
    with pytest.raises(UserError, match=THREE) as caught:
        begin(state)
    said = str(caught.value)
    ends = (
        "process 9 on n1: the disk is full; ",
        "KeyError: 'x'; ",
        ": KeyboardInterrupt)",
    )
    assert all(end in said for end in ends)
    assert said.endswith(
        f"run the same snakemake command again, or remove {state.with_name(NOTE)}"
    )
    with pytest.raises(UserError, match=THREE):
        begin(state)
    state.with_name(NOTE).unlink()
    begin(state)


def test_a_try_that_saves_a_state_is_none_of_them(state: Path) -> None:
    for saves in range(1, 6):
        fail(state, UserError("fault"))
        fail(state, UserError("fault"))
        fail(state, UnfinishedError("stopped"), saves=saves)
    for _ in range(3):
        fail(state, UserError("fault"))
    with pytest.raises(UserError, match=THREE):
        begin(state)


def test_another_run_of_the_workflow_begins_at_zero(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        fail(state, UserError("fault"))
    monkeypatch.setenv(RUN, "@login:6:2")
    for _ in range(3):
        fail(state, UserError("fault"))
    with pytest.raises(UserError, match=THREE):
        begin(state)


def test_by_hand_nothing_is_counted(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        fail(state, UserError("fault"))
    monkeypatch.delenv(RUN)
    for _ in range(4):
        fail(state, UserError("fault"))


def test_what_ends_well_leaves_no_note(state: Path) -> None:
    fail(state, UserError("fault"))
    begin(state)
    assert list(state.parent.iterdir()) == []


def test_a_failure_that_lasts_is_repeated_and_nothing_is_tried(state: Path) -> None:
    fail(state, LastingError("training diverged"), saves=5)
    said = r"^the last try of this run would only be repeated \(.*: training diverged\); not tried"
    for _ in range(2):
        with pytest.raises(UserError, match=said):
            begin(state)


@pytest.mark.parametrize(
    "damaged", ["", "[]", "{}", '{"run": 1, "saved": 2, "tries": [{"a": 1}]}']
)
def test_a_damaged_note_is_begun_anew(state: Path, damaged: str) -> None:
    state.with_name(NOTE).write_text(damaged)
    for _ in range(3):
        fail(state, UserError("fault"))
    with pytest.raises(UserError, match=THREE):
        begin(state)


KILLED = """\
import os, signal, sys
from pathlib import Path
from convs2s.training.tries import counted
with counted(Path(sys.argv[1]), "process 9 on n1"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_killed_is_counted(state: Path) -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", KILLED, state], check=False)
        assert done.returncode == -signal.SIGKILL
    with pytest.raises(
        UserError, match=r"n1: ended without a word: killed, or its machine went"
    ):
        begin(state)


def test_a_training_that_diverges_is_not_trained_again_in_its_run(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tiny.settings(learning_rate=1e30, clip=1e30, maximum_epochs=3)
    job = tiny.job(task, tmp_path / "model.safetensors", settings)
    with pytest.raises(LastingError, match="training diverged in epoch 1"):
        train(job)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run", lambda _: pytest.fail("trains"))
        with pytest.raises(
            UserError, match=r"would only be repeated .*: training diverged in epo"
        ):
            train(job)
    monkeypatch.setenv(RUN, "@login:6:2")
    with pytest.raises(LastingError, match="training diverged in epoch 1"):
        train(job)
