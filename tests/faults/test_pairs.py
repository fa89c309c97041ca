"""A sample of the pairs of ``make faults``, and each fault that they have found."""

import os
import shutil
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.files.atomic import whole_files
from convs2s.publish import results as publishing
from convs2s.publish.card import model_card
from convs2s.publish.crate import Measurement
from convs2s.publish.results import export_results
from convs2s.training.finished import finished_states, remove_state
from tests.faults.pairs import prepare_by_hand, run


def test_two_commands_at_once() -> None:
    said: list[str] = []
    names = ("download", "published", "export folder", "remove-states", "translate")
    counts, faults = run(6, 1, names, said.append)
    assert (said, faults) == ([], 0)
    assert sum(counts.values()) == 6


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with a training that has kept its states."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare_by_hand(folder)
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the task's results, which the test may change."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results/tiny"


def test_of_two_exports_to_one_folder_one_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    def wait_for_the_other(model: Path) -> str:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return model_card(model)

    monkeypatch.setattr(publishing, "model_card", wait_for_the_other)
    with ThreadPoolExecutor(2) as pool:
        exports = [
            pool.submit(export_results, folder, tmp_path / "out") for _ in range(2)
        ]
    (error,) = filter(None, (export.exception() for export in exports))
    assert isinstance(error, UserError)
    assert "out: exists already: remove it, or give another name" in str(error)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_file_that_a_job_removes_meanwhile_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = publishing._find_start
    gone = folder / "gone.txt"
    gone.write_text("")

    def remove(folder: Path, measured: Collection[Measurement]) -> Path:
        gone.unlink()
        return placed(folder, measured)

    monkeypatch.setattr(publishing, "_find_start", remove)
    with pytest.raises(
        UserError, match=r"gone\.txt: was removed while it was exported"
    ):
        export_results(folder, tmp_path / "out")


def test_states_that_somebody_else_has_removed_are_gone(folder: Path) -> None:
    (state,) = finished_states(folder)
    remove_state(state)
    remove_state(state)
    assert finished_states(folder) == {}


def test_folders_that_vanish_end_no_search(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir, vanishing = os.scandir, folder / "vanishing"

    def removed_before(path: str | int | Path) -> object:
        if str(path) == str(vanishing):
            shutil.rmtree(vanishing, ignore_errors=True)
        return scandir(path)

    unfinished = folder / ".partial.abc/training.json"
    for path in (vanishing / "a.json", unfinished):
        path.parent.mkdir()
        path.write_text("{")
    monkeypatch.setattr("os.scandir", removed_before)
    assert len(finished_states(folder)) == 1
    assert unfinished not in {*whole_files(folder)}
    vanishing.mkdir()
    export_results(folder, folder.parent / "out.zip")
