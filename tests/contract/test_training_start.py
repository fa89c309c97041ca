"""A training that begins with a model: what it takes of it, and how it is known."""

from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from convs2s.config.file_reference import Download
from convs2s.download import download
from convs2s.download.partial_file import PartialFile
from convs2s.files.checksums import sha256
from convs2s.model_file import describe_model, load_model, save_model
from convs2s.publish.card import model_card
from convs2s.training.history import read_history
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.start import fetched_start
from tests.support import tiny
from tests.support.interrupted import train_until
from tests.support.refusals import says

RECIPE: dict[str, Any] = {"maximum_epochs": 2, "learning_rate": 0.05}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "further" / "model.safetensors"


def job(
    task: Path,
    start: Path | str,
    output: Path,
    mode: str = "initialise",
    **recipe: Any,
) -> TrainingJob:
    stated = RECIPE | {"start": {"from": str(start), "as": mode}} | recipe
    return tiny.job(task, output, tiny.settings(**stated))


def test_a_killed_training_ends_with_the_same_bytes_and_its_card_names_the_start(
    task: Path, model: Path, output: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole" / "model.safetensors"
    train(job(task, model, whole))
    train_until(job(task, model, output), epoch=1)
    train(job(task, model, output))
    assert sha256(whole) == sha256(output)
    says(model_card(output), f"started from: the model `{sha256(model)}`, initialise")


@pytest.mark.parametrize(("recipe", "first"), [({}, 2), ({"average": 3}, 3)])
def test_continue_goes_on_after_the_epoch_whose_weights_it_has(
    task: Path, output: Path, tmp_path: Path, recipe: dict[str, Any], first: int
) -> None:
    """The best one, or the last one of a mean."""
    trained = tmp_path / "trained.safetensors"
    train(tiny.job(task, trained, tiny.settings(**RECIPE, **recipe)))
    network, description = load_model(trained)
    training = {**description.training, "best_epoch": 1}
    changed = description.model_copy(update={"training": training})
    save_model(trained, network.state_dict(), changed)
    further = {"maximum_epochs": 4, "learning_rate": 0.02, **recipe}
    train(job(task, trained, output, "continue", **further))
    made = read_history(output.with_name("history.jsonl")).epochs
    assert [row.epoch for row in made] == list(range(first, 5))
    before = read_history(tmp_path / "history.jsonl").epochs[0]
    assert made[0].valid_loss < before.valid_loss
    assert describe_model(output).training["epochs"] == 4


def test_a_url_is_fetched_once_and_checked(
    task: Path, model: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_: str, part: PartialFile, __: object) -> None:
        part.append(BytesIO(model.read_bytes()).read, None)

    fetch = Mock(side_effect=fill)
    monkeypatch.setattr(download, "fetch", fetch)
    url = "https://host.example/model.safetensors"
    recipe = job(task, url, output).recipe
    known = {url: Download(url=url, sha256=sha256(model))}
    place = fetched_start(recipe, output, known)
    assert place is not None
    assert fetched_start(recipe, output, known) == place
    assert fetch.call_count == 1
    place.write_bytes(b"damaged")
    assert fetched_start(recipe, output, known) == place
    assert sha256(place) == sha256(model)
    assert fetch.call_count == 2
    other = job(task, "https://host.example/other.safetensors", output).recipe
    assert fetched_start(other, output, {}) != place
    assert fetched_start(job(task, model, output).recipe, output, {}) is None
