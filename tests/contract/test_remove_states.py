"""What ``convs2s remove-states`` removes of trainings that have ended, and what never."""

import errno
import fcntl
import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from convs2s.files.tensors import load_description, save_tensors
from convs2s.training.identity import digest_of
from tests.conftest import Terminal
from tests.support.refusals import says

IDENTITY: dict[str, object] = {"seed": 1, "recipe": {"clip": 0.1}}
MINE = digest_of(IDENTITY)
ALL = sorted([MINE, MINE, "another"])
RUN = Path("task/models/small/seed1")
REMOVE = ("remove-states", ".", "--yes")


def write_model(name: str, like: Path, identity: dict[str, object]) -> None:
    """Write a model file of the run that was trained as an identity says."""
    fields = load_description(like) | {"training": {"identity": identity}}
    save_tensors(RUN / name, {}, fields)


@pytest.fixture(autouse=True)
def finished(in_folder: None, model: Path) -> None:
    """A finished run beside states of another recipe, and one that was stopped."""
    for place in (f"seed1/state/{MINE}", "seed1/state/another", f"seed2/state/{MINE}"):
        folder = RUN.parent / place
        folder.mkdir(parents=True)
        (folder / "last.safetensors").write_bytes(bytes(1_500_000))
    write_model("model.safetensors", model, IDENTITY)
    (RUN / "training.json").write_text(json.dumps({"manifest": {"identity": IDENTITY}}))


def states() -> list[str]:
    return sorted(path.parent.name for path in Path().rglob("last.safetensors"))


def test_the_states_of_the_finished_model_alone_are_listed_and_then_removed(
    run: Terminal,
) -> None:
    said = run("remove-states", ".")
    says(said, f"      1.5 MB  {RUN}/state/{MINE}\n", "1.5 MB  of 1 trainings")
    assert states() == ALL
    assert "1 trainings that have ended: removed" in run(*REMOVE)
    assert states() == sorted([MINE, "another"])
    assert (RUN.parent / "seed2/state" / MINE).is_dir()
    assert (RUN / "model.safetensors").is_file()


def test_results_on_another_disk_are_found_through_a_link(
    run: Terminal, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = Path("task").rename(tmp_path_factory.mktemp("disk") / "task")
    Path("task").symlink_to(elsewhere)
    (elsewhere / "again").symlink_to(Path.cwd())
    assert MINE in run("remove-states", ".")


def test_beside_the_model_of_another_training_a_state_stays(
    run: Terminal, model: Path
) -> None:
    """The disk may have been full when the new one was to be written, or it was killed there."""
    write_model("model.safetensors", model, {"seed": 2})
    write_model("start.safetensors", model, {"seed": 3})
    assert "0 trainings" in run(*REMOVE)
    assert states() == ALL


def test_states_of_a_training_that_runs_or_may_run_stay(
    run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (RUN / "state/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="seed1/state: another training is writ"):
            run(*REMOVE)
    refuses = Mock(side_effect=OSError(errno.ENOLCK, "No locks available"))
    monkeypatch.setattr(fcntl, "flock", refuses)
    with pytest.raises(SystemExit, match="seed1/state: cannot be locked"):
        run(*REMOVE)
    assert states() == ALL


def test_a_damaged_record_and_a_missing_folder_are_named(run: Terminal) -> None:
    (RUN / "training.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"training\.json: not a record of a training"):
        run(*REMOVE)
    with pytest.raises(SystemExit, match="no such folder; name the folder of the res"):
        run("remove-states", "none")


def test_what_a_kill_leaves_of_a_state_is_none(
    run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", kill)
    with pytest.raises(SystemExit, match="130"):
        run(*REMOVE)
    assert not (RUN / "state" / MINE / "last.safetensors").exists()
