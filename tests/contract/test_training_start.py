"""A training that begins with a model: what it takes of it, and how it is known."""

import hashlib
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.file_reference import Download
from convs2s.download import download
from convs2s.download.partial_file import PartialFile
from convs2s.files.checksums import sha256
from convs2s.files.text import write_lines
from convs2s.model_file import describe_model, load_model, save_model
from convs2s.publish.card import model_card
from convs2s.training.data import TrainingData
from convs2s.training.history import read_history
from convs2s.training.identity import TrainingJob, digest_of, identity
from convs2s.training.run import initial_network, train
from convs2s.training.start import begin, fetched_start
from tests.support import tiny
from tests.support.interrupted import train_until
from tests.support.refusals import says

RECIPE: dict[str, Any] = {"maximum_epochs": 2, "learning_rate": 0.05}


@pytest.fixture(scope="module")
def start(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("start") / "model.safetensors"
    train(tiny.job(task, path, tiny.settings(**RECIPE)))
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "further" / "model.safetensors"


def job(
    task: Path,
    start: Path | str,
    output: Path,
    mode: str = "initialise",
    architecture: dict[str, Any] | None = None,
    **recipe: Any,
) -> TrainingJob:
    stated = RECIPE | {"start": {"from": str(start), "as": mode}} | recipe
    return tiny.job(task, output, tiny.settings(architecture, **stated))


def test_it_begins_with_the_models_weights(
    task: Path, start: Path, output: Path
) -> None:
    one = job(task, start, output, architecture={"dropout": 0.3})
    data = TrainingData.read(task)
    network = initial_network(one, data)
    assert begin(one, data, network) == 1
    expected = load_model(start)[0].state_dict()
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


def test_it_is_known_by_the_bytes_of_the_model_wherever_that_lies(
    task: Path, start: Path, output: Path
) -> None:
    checksums = TrainingData.read(task).checksums
    copy = output.with_name("copy.safetensors")
    copy.parent.mkdir()
    copy.write_bytes(start.read_bytes())

    def known(one: TrainingJob) -> str:
        return digest_of(identity(one, checksums))

    first = known(job(task, start, output))
    assert known(job(task, copy, output)) == first
    copy.write_bytes(b"another model")
    others = [
        job(task, copy, output),
        job(task, start, output, "continue"),
        tiny.job(task, output, tiny.settings(**RECIPE)),
    ]
    assert len({first, *map(known, others)}) == 4


def test_a_killed_training_ends_with_the_same_bytes_and_its_card_names_the_start(
    task: Path, start: Path, output: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole" / "model.safetensors"
    train(job(task, start, whole))
    train_until(job(task, start, output), epoch=1)
    train(job(task, start, output))
    assert sha256(whole) == sha256(output)
    says(model_card(output), f"started from: the model `{sha256(start)}`, initialise")


@pytest.mark.parametrize(("recipe", "first"), [({}, 2), ({"average": 3}, 3)])
def test_continue_goes_on_after_the_epoch_whose_weights_it_has(
    task: Path, output: Path, tmp_path: Path, recipe: dict[str, Any], first: int
) -> None:
    """The best one, or the last one of a mean; here of a model that selects its vocabulary."""
    candidates = tmp_path / "candidates.tsv"
    write_lines(candidates, ["source\ttargets", "w1\tw1x"])
    selects = {"vocabulary_selection": {"frequent": 10, "candidates": 2}}
    trained = tmp_path / "trained.safetensors"
    settings = tiny.settings(selects, **RECIPE, **recipe)
    train(tiny.job(task, trained, settings, candidates=candidates))
    network, description = load_model(trained)
    training = {**description.training, "best_epoch": 1}
    changed = description.model_copy(update={"training": training})
    save_model(trained, network.state_dict(), changed)
    further = {"maximum_epochs": 4, "learning_rate": 0.02, **recipe}
    one = job(task, trained, output, "continue", selects, **further)
    train(replace(one, candidates=candidates))
    made = read_history(output.with_name("history.jsonl")).epochs
    assert [row.epoch for row in made] == list(range(first, 5))
    before = read_history(tmp_path / "history.jsonl").epochs[0]
    assert made[0].valid_loss < before.valid_loss
    assert describe_model(output).training["epochs"] == 4


@pytest.mark.parametrize("checksum", ["sha256", "md5", None])
def test_a_url_is_fetched_once_and_checked(
    task: Path,
    start: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    checksum: str | None,
) -> None:
    asked = []

    def fetch(source: str, part: PartialFile, _: object) -> None:
        asked.append(source)
        part.append(BytesIO(start.read_bytes()).read, None)

    monkeypatch.setattr(download, "fetch", fetch)
    url = "https://host.example/model.safetensors"
    recipe = job(task, url, output).recipe
    known = {}
    if checksum is not None:
        digest = hashlib.new(checksum, start.read_bytes()).hexdigest()
        known[url] = Download.model_validate({"url": url, checksum: digest})
    place = fetched_start(recipe, output, known)
    assert place is not None
    assert fetched_start(recipe, output, known) == place
    assert asked == [url]
    place.write_bytes(b"damaged")
    assert fetched_start(recipe, output, known) == place
    assert sha256(place) == sha256(start)
    assert asked == [url, url]
    other = "https://host.example/other.safetensors"
    assert fetched_start(job(task, other, output).recipe, output, {}) != place
    assert fetched_start(job(task, start, output).recipe, output, {}) is None
