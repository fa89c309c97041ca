"""Results that another process removes or writes while they are exported or looked through."""

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.files.atomic import whole_files
from convs2s.publish import results as publishing
from convs2s.publish.card import model_card
from convs2s.publish.results import export_results
from convs2s.training.finished import finished_states, remove_state
from tests.faults.campaign.pairs import prepare_by_hand
from tests.support.refusals import refusal, says


def test_of_two_exports_to_one_folder_one_is_refused(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    def wait_for_the_other(model: Path) -> str:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return model_card(model)

    monkeypatch.setattr(publishing, "model_card", wait_for_the_other)
    out = tmp_path / "out"
    with ThreadPoolExecutor(2) as pool:
        exports = [pool.submit(export_results, results, out) for _ in range(2)]
    (error,) = filter(None, (export.exception() for export in exports))
    assert isinstance(error, UserError)
    says(str(error), "out: exists already: remove it, or give another name")
    assert not list(tmp_path.glob(".*"))


def test_a_file_that_a_job_removes_meanwhile_is_named(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = results / "gone.txt"
    gone.write_text("")
    place = publishing.find_start

    def remove(*arguments: Any) -> Path:
        gone.unlink()
        return place(*arguments)

    monkeypatch.setattr(publishing, "find_start", remove)
    message = refusal(export_results, results, tmp_path / "out")
    says(message, "gone.txt: was removed while it was exported")


def test_what_vanishes_ends_no_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_by_hand(tmp_path)  # with a training that has kept its states
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results/tiny"
    scandir = os.scandir
    vanishing = folder / "vanishing/a.json"
    unfinished = folder / ".partial.abc/training.json"

    def removed_before(path: str | int | Path) -> object:
        if str(path) == str(vanishing.parent):
            shutil.rmtree(vanishing.parent, ignore_errors=True)
        return scandir(path)

    for path in (vanishing, unfinished):
        path.parent.mkdir()
        path.write_text("{")
    monkeypatch.setattr("os.scandir", removed_before)
    (state,) = finished_states(folder)
    assert unfinished not in {*whole_files(folder)}
    vanishing.parent.mkdir()
    export_results(folder, folder.parent / "out.zip")
    remove_state(state)
    remove_state(state)  # somebody else has
    assert finished_states(folder) == {}
