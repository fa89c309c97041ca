"""What is removed of a training that has ended, and what never is."""

import fcntl
import json
import shutil
from pathlib import Path

import pytest

from convs2s.model_file import ModelDescription, save_model
from convs2s.models.build import build_network
from convs2s.training.identity import digest_of
from tests.support import tiny
from tests.support.limits import without_locks
from tests.unit.conftest import Terminal

IDENTITY: dict[str, object] = {"seed": 1, "recipe": {"clip": 0.1}}
MINE = digest_of(IDENTITY)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A finished run beside states of another recipe, and one that was stopped."""
    for run, digests in (("seed1", (MINE, "another")), ("seed2", (MINE,))):
        for digest in digests:
            folder = tmp_path / f"task/models/small/{run}/state/{digest}"
            folder.mkdir(parents=True)
            (folder / "last.safetensors").write_bytes(bytes(1_500_000))
    finished = tmp_path / "task/models/small/seed1"
    write_model(finished / "model.safetensors", IDENTITY)
    (finished / "training.json").write_text(
        json.dumps({"manifest": {"identity": IDENTITY}})
    )
    return tmp_path


def write_model(path: Path, identity: dict[str, object]) -> None:
    """Write a model file that was trained as an identity says."""
    settings = tiny.settings().architecture
    description = ModelDescription(
        task="tiny",
        languages={"source": "en", "target": "fr"},
        preparation="none",
        architecture=settings,
        source_types=["a"],
        target_types=["b"],
        bpe_codes=None,
        training={"identity": identity},
    )
    save_model(path, build_network(settings, 4, 4).state_dict(), description)


def test_results_on_another_disk_are_found_through_a_link(
    run: Terminal, results: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = (results / "task").rename(tmp_path_factory.mktemp("disk") / "task")
    (results / "task").symlink_to(elsewhere)
    (elsewhere / "again").symlink_to(results)
    assert MINE in run("remove-states", results)


def states(results: Path) -> list[str]:
    return sorted(path.parent.name for path in results.rglob("last.safetensors"))


def test_what_may_go_is_listed_and_nothing_is_removed(
    run: Terminal, results: Path
) -> None:
    said = run("remove-states", results).splitlines()
    assert said == [
        f"      1.5 MB  {results}/task/models/small/seed1/state/{MINE}",
        "      1.5 MB  of 1 trainings that have ended: may go: --yes removes them",
    ]
    assert states(results) == sorted([MINE, MINE, "another"])


def test_the_state_of_the_finished_model_alone_is_removed(
    run: Terminal, results: Path
) -> None:
    assert "1 trainings that have ended: removed" in run(
        "remove-states", results, "--yes"
    )
    assert states(results) == sorted([MINE, "another"])
    assert (results / "task/models/small/seed2/state" / MINE).is_dir()
    assert (results / "task/models/small/seed1/model.safetensors").is_file()
    assert "0 trainings" in run("remove-states", results, "--yes")


def test_what_a_kill_leaves_of_a_state_is_none(
    run: Terminal, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", kill)
    with pytest.raises(SystemExit, match="130"):
        run("remove-states", results, "--yes")
    assert not (
        results / f"task/models/small/seed1/state/{MINE}/last.safetensors"
    ).exists()


def test_a_training_that_runs_keeps_its_states(run: Terminal, results: Path) -> None:
    with (results / "task/models/small/seed1/state/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(
            SystemExit, match="seed1/state: another training is writing here"
        ):
            run("remove-states", results, "--yes")
    assert states(results) == sorted([MINE, MINE, "another"])


def test_where_there_are_no_locks_states_stay(
    run: Terminal, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", without_locks)
    with pytest.raises(
        SystemExit, match=r"seed1/state: cannot be locked \(No locks available\)"
    ):
        run("remove-states", results, "--yes")
    assert states(results) == sorted([MINE, MINE, "another"])


def test_beside_the_model_of_another_training_a_state_stays(
    run: Terminal, results: Path
) -> None:
    """The disk may have been full when the new one was to be written, or it was killed there."""
    finished = results / "task/models/small/seed1"
    write_model(finished / "model.safetensors", {"seed": 2})
    write_model(finished / "start.safetensors", {"seed": 3})
    assert "0 trainings" in run("remove-states", results, "--yes")
    assert states(results) == sorted([MINE, MINE, "another"])


def test_a_damaged_record_and_a_missing_folder_are_named(
    run: Terminal, results: Path
) -> None:
    record = results / "task/models/small/seed1/training.json"
    record.write_text("{}")
    with pytest.raises(SystemExit, match=r"training\.json: no record of a training"):
        run("remove-states", results)
    with pytest.raises(
        SystemExit, match="none: no such folder; name the folder of the results"
    ):
        run("remove-states", results / "none")
