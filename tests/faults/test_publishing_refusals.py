"""What cannot be published: models, folders of the Hub, and results that change or have changed."""

import os
import shutil
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.files.atomic import whole_files
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.mirror.write import write_mirror
from convs2s.model_file import load_model, save_model
from convs2s.publish import results as publishing
from convs2s.publish.card import model_card
from convs2s.publish.hub import MODEL_NAME, export_hub, export_onnx, pull, push
from convs2s.publish.results import export_results
from convs2s.training.finished import finished_states, remove_state
from tests.conftest import Terminal
from tests.faults.campaign.samples import prepare_by_hand
from tests.faults.hub import COMMIT, REPOSITORY, Hub
from tests.support.refusals import refusal, refuses, rows, says


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    constants = pytest.importorskip("huggingface_hub.constants")
    server = Hub()
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE
    template = template.replace(constants.ENDPOINT, server.address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "hf_stand_in")
    yield server
    server.close()


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    export_hub(model, tmp_path / "folder", "mit")
    return tmp_path / "folder"


def test_a_card_holds_nothing_that_a_page_or_a_terminal_acts_on(
    model: Path, tmp_path: Path
) -> None:
    weights, fields = load_tensors(model)
    hostile = "<img src=x>\x1b[31m\n# heading\N{RIGHT-TO-LEFT OVERRIDE}![a](http://h)"
    fields["task"] = hostile
    fields["training"] |= {"stop_reason": hostile, "sources": [{"file": hostile}]}
    fields["training"]["identity"]["training"] = {"clip": hostile}
    save_tensors(tmp_path / "model.safetensors", weights, fields)
    card = model_card(tmp_path / "model.safetensors")
    assert "# &lt;img src=x>[31m# heading![a]\\(http://h): en to fr\n" in card
    for strange in ({"identity": "x"}, {"source_use": {"permuted_perplexity": 1.0}}):
        altered = fields | {"training": fields["training"] | strange}
        save_tensors(tmp_path / "strange.safetensors", weights, altered)
        said = refusal(model_card, tmp_path / "strange.safetensors")
        says(said, "strange.safetensors: its record of a training is not as expected")
    for line in card.splitlines():
        assert line.isprintable()
        assert line.startswith("    ") or not ("<" in line or "](" in line)
        assert line != "# heading"


def test_models_without_graphs_leave_nothing(
    model: Path, recurrent: Path, tmp_path: Path
) -> None:
    network, description = load_model(model)
    network.state_dict()["decoder.out_projection.bias"].fill_(float("nan"))
    broken = tmp_path / "nan.safetensors"
    save_model(broken, network.state_dict(), description)
    for path, word in (
        (broken, "out_projection.bias' contains NaN or infinity"),
        (recurrent, "its kind of network has no graphs"),
    ):
        says(refusal(export_onnx, path, tmp_path / "folder"), path.name, word)
    assert list(tmp_path.iterdir()) == [broken]


def test_a_wrong_checksum_leaves_nothing(
    folder: Path, hub: Hub, tmp_path: Path
) -> None:
    push(folder, REPOSITORY)
    for name in (MODEL_NAME, "README.md"):
        hub.damaged = {name}
        said = refusal(pull, REPOSITORY, tmp_path / "copy")
        says(said, f"{REPOSITORY}: {name}: its checksum is not the one", "pull it aga")
        assert not list(tmp_path.glob("copy*"))


def test_what_the_hub_has_not_or_refuses(
    folder: Path, hub: Hub, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    missing = (
        f"somebody/else: no such repository at {hub.address}, or none that you may"
    )
    refuses(missing, pull, "somebody/else", copy)
    refuses(missing, push, folder, "somebody/else")
    refuses(f"{REPOSITORY}: has no {MODEL_NAME}", pull, REPOSITORY, copy)
    says(refusal(pull, REPOSITORY, copy, "no_such_tag"), REPOSITORY, "Revision Not Fou")
    failed = f"no name: request to {hub.address} failed: Repo id"
    refuses(failed, pull, "no name", copy)
    refuses(f"{MODEL_NAME}: no such file", push, tmp_path, REPOSITORY)
    (folder / MODEL_NAME).write_bytes((folder / MODEL_NAME).read_bytes()[:-1])
    refuses(f"{MODEL_NAME}: not a model", push, folder, REPOSITORY)
    assert hub.files == {}
    assert not copy.exists()


def test_a_hub_that_is_not_there(hub: Hub, tmp_path: Path) -> None:
    hub.close()
    failed = f"{REPOSITORY}: request to {hub.address} failed: "
    says(refusal(pull, REPOSITORY, tmp_path / "copy"), failed, "refused")


def test_what_is_not_of_the_model_is_not_sent(folder: Path, hub: Hub) -> None:
    digest = sha256(folder / MODEL_NAME)
    (folder / "NOTES.md").write_text("mine")
    for name in ("vocabulary.target.txt", "config.json", "README.md"):
        path = folder / name
        content = path.read_text("utf-8")
        path.write_text(content.replace(digest, "0" * 64) if digest in content else "a")
        said = refusal(push, folder, REPOSITORY)
        says(said, f"{name}: is not of {MODEL_NAME} beside it", "export hub")
        path.write_text(
            f"{content}\n## My own words\n" if name == "README.md" else content
        )
    assert hub.files == {}
    push(folder, REPOSITORY)
    assert b"My own words" in hub.files["README.md"]
    assert "NOTES.md" not in hub.files


def test_a_model_is_sent_and_fetched_and_what_else_is_there_stays_there(
    folder: Path,
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Terminal,
) -> None:
    others = {"pytorch_model.bin": b"cos\nsystem\n(S'true'\ntR.", "NOTES.md": b"mine"}
    # The codes are of the model before.
    hub.files = {"bpe_codes.txt": b"#version: 0.2\n", **others}
    monkeypatch.chdir(tmp_path)
    address = f"{hub.address}/{REPOSITORY}/commit/{COMMIT}\n"
    assert run("push", "folder", REPOSITORY) == address
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert hub.files == written | others
    assert hub.commits == ["A model of convs2s"]
    assert run("pull", REPOSITORY) == "model/model.safetensors\n"
    copies = (tmp_path / "model").iterdir()
    assert {path.name: path.read_bytes() for path in copies} == written
    assert sorted(hub.asked) == sorted(written)


@pytest.mark.parametrize("last", ["", "SHA256SUMS"])
def test_a_folder_is_on_the_disk_before_it_has_its_name(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """After a power cut, what was renamed but not synced would be a folder of empty files.

    A mirror's list of checksums, which comes last, would name lost files.
    """
    output = tmp_path / "output"
    synced: set[int] = set()
    rename = os.rename

    def check_synced(source: Path, target: Path) -> None:
        if target == output / last:
            files = list(whole_files(output if last else source))
            assert len(files) > 3
            for path in (*files, *(file.parent for file in files)):
                assert path.stat().st_ino in synced, path
        rename(source, target)

    monkeypatch.setattr(os, "fsync", lambda file: synced.add(os.fstat(file).st_ino))
    monkeypatch.setattr(os, "rename", check_synced)
    monkeypatch.setattr(os, "replace", check_synced)
    if last:
        write_mirror(output)
    else:
        export_hub(model, output, "mit")
    assert (output / last).exists()


CHANGED = """
corpus/raw/test.target.zst => w1 => has changed since
corpus/tok/test.target.zst => REMOVED => it is missing
models/small/seed1/test.beam5.txt => REMOVED => is not the text of test.beam5.jsonl
models/small/seed1/test.beam5.txt => => is not the text of test.beam5.jsonl
models/small/seed1/test.beam5.bleu.json => {} => does not say what was scored
dataset/train.json => [] => no description of training text; prepare again
dataset/train.json => {"sources": 1} => no description of training text
dataset/train.json => {"sources": [{"a": 1}]} => no description of training text
"""


@pytest.mark.parametrize(("file", "content", "word"), rows(CHANGED))
def test_results_that_have_changed_are_not_exported(
    results: Path, tmp_path: Path, file: str, content: str, word: str
) -> None:
    (results / file).unlink()
    if content != "REMOVED":
        (results / file).write_text(content)
    says(refusal(export_results, results, tmp_path / "exported"), file, word)
    assert not list(tmp_path.glob("*exported*"))


PLACES = """
ran/results/tiny => there.zip => there.zip: exists already
ran/results/tiny => a.tar.gz => a.tar.gz: name a new folder, or an archive NAME.zip
nowhere => exported => nowhere: no such folder
empty => exported => empty: has no scores (*.bleu.json, *.rouge.json)
moved => exported => no folder above
"""


def test_where_no_results_are_and_no_archive_can_be(
    results: Path, tmp_path: Path
) -> None:
    (tmp_path / "there.zip").touch()
    (tmp_path / "empty").mkdir()
    shutil.copytree(results, tmp_path / "moved")
    for folder, output, words in rows(PLACES):
        refuses(words, export_results, tmp_path / folder, tmp_path / output)


def test_a_temporary_folder_that_stays_is_not_published(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails may keep what was to be removed."""
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    export_results(results, tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert ".partial." not in "".join(archive.namelist())
        for name in ("SHA256SUMS", "ro-crate-metadata.json"):
            assert b".partial." not in archive.read(name)


# ---- results that another process removes or writes meanwhile ----


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
