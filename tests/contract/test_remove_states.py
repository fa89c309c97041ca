"""What ``convs2s remove-states`` removes of trainings that have ended, and what never."""

import errno
import fcntl
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.training.identity import digest_of
from tests.conftest import Terminal
from tests.support.refusals import says

IDENTITY: dict[str, object] = {"seed": 1, "recipe": {"clip": 0.1}}
MINE = digest_of(IDENTITY)
ALL = sorted([MINE, MINE, "another"])
RUN = "task/models/small/seed1"

Command = Callable[..., str]


@pytest.fixture
def remove(tmp_path: Path, run: Terminal) -> Command:
    return partial(run, "remove-states", tmp_path)


def write_model(path: Path, like: Path, identity: dict[str, object]) -> None:
    """Write a model file that was trained as an identity says."""
    weights, fields = load_tensors(like)
    save_tensors(path, weights, fields | {"training": {"identity": identity}})


@pytest.fixture(autouse=True)
def finished(tmp_path: Path, model: Path) -> Path:
    """A finished run beside states of another recipe, and one that was stopped."""
    for place in (f"seed1/state/{MINE}", "seed1/state/another", f"seed2/state/{MINE}"):
        folder = tmp_path / "task/models/small" / place
        folder.mkdir(parents=True)
        (folder / "last.safetensors").write_bytes(bytes(1_500_000))
    write_model(tmp_path / RUN / "model.safetensors", model, IDENTITY)
    record = {"manifest": {"identity": IDENTITY}}
    (tmp_path / RUN / "training.json").write_text(json.dumps(record))
    return tmp_path / RUN


def states(results: Path) -> list[str]:
    return sorted(path.parent.name for path in results.rglob("last.safetensors"))


def test_the_states_of_the_finished_model_alone_are_listed_and_then_removed(
    remove: Command, tmp_path: Path, finished: Path
) -> None:
    said = remove()
    says(said, f"      1.5 MB  {finished}/state/{MINE}\n", "1.5 MB  of 1 trainings")
    assert states(tmp_path) == ALL
    assert "1 trainings that have ended: removed" in remove("--yes")
    assert states(tmp_path) == sorted([MINE, "another"])
    assert (tmp_path / "task/models/small/seed2/state" / MINE).is_dir()
    assert (finished / "model.safetensors").is_file()


def test_results_on_another_disk_are_found_through_a_link(
    remove: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    disk = tmp_path_factory.mktemp("disk") / "task"
    elsewhere = (tmp_path / "task").rename(disk)
    (tmp_path / "task").symlink_to(elsewhere)
    (elsewhere / "again").symlink_to(tmp_path)
    assert MINE in remove()


def test_beside_the_model_of_another_training_a_state_stays(
    remove: Command, tmp_path: Path, finished: Path, model: Path
) -> None:
    """The disk may have been full when the new one was to be written, or it was killed there."""
    write_model(finished / "model.safetensors", model, {"seed": 2})
    write_model(finished / "start.safetensors", model, {"seed": 3})
    assert "0 trainings" in remove("--yes")
    assert states(tmp_path) == ALL


def test_states_of_a_training_that_runs_or_may_run_stay(
    remove: Command, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (finished / "state/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="seed1/state: another training is writ"):
            remove("--yes")
    refuses = Mock(side_effect=OSError(errno.ENOLCK, "No locks available"))
    monkeypatch.setattr(fcntl, "flock", refuses)
    with pytest.raises(SystemExit, match="seed1/state: cannot be locked"):
        remove("--yes")
    assert states(tmp_path) == ALL


def test_a_damaged_record_and_a_missing_folder_are_named(
    remove: Command, tmp_path: Path, finished: Path
) -> None:
    (finished / "training.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"training\.json: not a record of a training"):
        remove()
    shutil.rmtree(tmp_path)
    with pytest.raises(SystemExit, match="no such folder; name the folder of the res"):
        remove()


def test_what_a_kill_leaves_of_a_state_is_none(
    remove: Command, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", kill)
    with pytest.raises(SystemExit, match="130"):
        remove("--yes")
    assert not (finished / "state" / MINE / "last.safetensors").exists()
