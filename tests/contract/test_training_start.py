"""A training that begins with a model: what it takes of it, and which models it refuses."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.file_reference import Download
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import write_lines
from convs2s.model_file import describe_model, load_model, save_model
from convs2s.publish.card import model_card
from convs2s.training.data import TrainingData
from convs2s.training.identity import TrainingJob, digest_of, identity
from convs2s.training.run import initial_network, train
from convs2s.training.start import begin, fetched_start
from tests.support import tiny
from tests.support.interrupted import train_until
from tests.support.loopback import LoopbackServer, Served
from tests.support.trained import import_trained

RECIPE: dict[str, Any] = {"maximum_epochs": 2, "learning_rate": 0.05}


@pytest.fixture(scope="module")
def model(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    train(tiny.job(task, path, tiny.settings(**RECIPE)))
    return path


def job(
    task: Path,
    model: Path | str,
    output: Path,
    mode: str = "initialise",
    architecture: dict[str, Any] | None = None,
    **recipe: Any,
) -> TrainingJob:
    """Return a training that begins with a model."""
    stated = RECIPE | {"start": {"from": str(model), "as": mode}} | recipe
    return tiny.job(task, output, tiny.settings(architecture, **stated))


def refused(one: TrainingJob) -> str:
    """Return why a training does not begin with its model, in one line."""
    with pytest.raises(UserError) as error:
        train(one)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_it_begins_with_the_models_weights(
    task: Path, model: Path, tmp_path: Path
) -> None:
    one = job(
        task, model, tmp_path / "model.safetensors", architecture={"dropout": 0.3}
    )
    data = TrainingData.read(task)
    network = initial_network(one, data)
    assert begin(one, data, network) == 1
    expected = load_model(model)[0].state_dict()
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


def test_it_is_known_by_the_bytes_of_the_model_wherever_that_lies(
    task: Path, model: Path, tmp_path: Path
) -> None:
    data, copy = TrainingData.read(task), tmp_path / "copy.safetensors"
    copy.write_bytes(model.read_bytes())
    output = tmp_path / "model.safetensors"
    first, same = (
        identity(job(task, path, output), data.checksums) for path in (model, copy)
    )
    assert first["start"] == {"as": "initialise", "sha256": sha256(model)}
    assert digest_of(first) == digest_of(same)
    copy.write_bytes(b"another model")
    others = [
        identity(job(task, copy, output), data.checksums),
        identity(
            job(task, model, output, "continue", maximum_epochs=2), data.checksums
        ),
        identity(tiny.job(task, output, tiny.settings(**RECIPE)), data.checksums),
    ]
    assert len({digest_of(one) for one in (first, *others)}) == 4


def test_a_killed_training_ends_with_the_same_bytes(
    task: Path, model: Path, tmp_path: Path
) -> None:
    whole, parts = (
        tmp_path / name / "model.safetensors" for name in ("whole", "parts")
    )
    train(job(task, model, whole))
    train_until(job(task, model, parts), epoch=1)
    train(job(task, model, parts))
    assert sha256(whole) == sha256(parts)
    stated: Any = describe_model(parts).training["identity"]
    assert stated["start"]["sha256"] == sha256(model)
    assert f"started from: the model `{sha256(model)}`, initialise" in model_card(parts)


# ---- as: continue ----


def rows(model: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in model.with_name("history.jsonl").read_text().splitlines()
    ]


def test_continue_goes_on_after_the_best_epoch_and_says_whether_its_own_last_is_the_best(
    task: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = describe_model(model).training["best_epoch"]
    assert best == 2
    output = tmp_path / "model.safetensors"
    train(job(task, model, output, "continue", maximum_epochs=4, learning_rate=0.02))
    assert [row["epoch"] for row in rows(output)[:-1]] == [3, 4]
    assert describe_model(output).training["epochs"] == 4
    last = rows(model)[-2]["valid_loss"]
    assert rows(output)[0]["valid_loss"] < last  # not from the beginning
    said = "the last epoch was the best one" in capsys.readouterr().err
    assert said == (describe_model(output).training["best_epoch"] == 4)


@pytest.mark.parametrize(("recipe", "first"), [({}, 2), ({"average": 3}, 3)])
def test_it_goes_on_after_the_epoch_whose_weights_it_has(
    task: Path, tmp_path: Path, recipe: dict[str, Any], first: int
) -> None:
    """The best one, or the last one of a mean."""
    trained, changed = (
        tmp_path / "trained.safetensors",
        tmp_path / "changed.safetensors",
    )
    train(tiny.job(task, trained, tiny.settings(**RECIPE, **recipe)))
    network, description = load_model(trained)
    training = {**description.training, "best_epoch": 1}
    save_model(
        changed,
        network.state_dict(),
        description.model_copy(update={"training": training}),
    )
    output = tmp_path / "further" / "model.safetensors"
    train(job(task, changed, output, "continue", maximum_epochs=4, **recipe))
    assert [row["epoch"] for row in rows(output)[:-1]] == list(range(first, 5))


def test_continue_refuses_other_data_another_recipe_and_the_last_epoch(
    task: Path, model: Path, tmp_path: Path
) -> None:
    output = tmp_path / "model.safetensors"
    generator = random.Random(1)  # tiny.prepare's, so that the vocabulary is the same
    sources = [
        generator.choices(tiny.WORDS, k=generator.randint(1, 8)) for _ in range(180)
    ]
    backwards = [*sources[159::-1], *sources[160:]]
    other = tiny.prepare_pairs(tmp_path / "other", backwards, held_out=20, mark="x")
    assert TrainingData.read(other).types == TrainingData.read(task).types
    said = refused(job(other, model, output, "continue", maximum_epochs=4))
    assert (
        "cannot continue with other data or another recipe: data.dataset/train.arrow is"
        in said
    )
    said = refused(job(task, model, output, "continue", maximum_epochs=4, clip=0.5))
    assert "training.clip is 0.1, not 0.5; use the same" in said
    said = refused(
        job(task, model, output, "continue", {"dropout": 0.3}, maximum_epochs=4)
    )
    assert "another recipe: architecture.dropout is 0.1, not 0.3" in said
    said = refused(job(task, model, output, "continue"))
    assert "has the weights after epoch 2, but maximum_epochs is 2; raise" in said


def test_a_model_that_selects_its_vocabulary_goes_on(
    task: Path, tmp_path: Path
) -> None:
    candidates = tmp_path / "candidates.tsv"
    write_lines(candidates, ["source\ttargets", "w1\tw1x"])
    selects = {"vocabulary_selection": {"frequent": 10, "candidates": 2}}
    outputs = [tmp_path / name / "model.safetensors" for name in ("first", "further")]
    train(
        tiny.job(
            task, outputs[0], tiny.settings(selects, **RECIPE), candidates=candidates
        )
    )
    further = job(task, outputs[0], outputs[1], "continue", selects, maximum_epochs=4)
    train(replace(further, candidates=candidates))
    assert describe_model(outputs[1]).training["epochs"] == 4


# ---- what does not fit ----


@pytest.mark.parametrize("languages", [("en", "de"), ("de", "en")])
def test_the_models_own_truecasers_fit(
    tmp_path: Path, languages: tuple[str, str]
) -> None:
    task = tiny.prepare(tmp_path / "task", languages=languages)
    tables = [tmp_path / f"{language}.tsv" for language in languages]
    for table in tables:
        write_lines(table, ["word\tcount", f"{table.stem.capitalize()}\t3"])
    one = tmp_path / "one.safetensors"
    train(tiny.job(task, one, tiny.settings(**RECIPE), truecasers=tables))
    further = job(task, one, tmp_path / "further" / "model.safetensors")
    train(replace(further, truecasers=tables))
    write_lines(tables[0], ["word\tcount", "Another\t3"])
    assert "its truecaser differs" in refused(replace(further, truecasers=tables))


def test_the_other_direction_is_refused(
    task: Path, model: Path, tmp_path: Path
) -> None:
    network, description = load_model(model)
    source, target = description.languages.values()
    changed = tmp_path / "changed.safetensors"
    swapped = description.model_copy(
        update={"languages": {"source": target, "target": source}}
    )
    save_model(changed, network.state_dict(), swapped)
    said = refused(job(task, changed, tmp_path / "model.safetensors"))
    assert f"it translates from {target} to {source}, the task in reverse" in said


def test_a_changed_vocabulary_is_refused(
    task: Path, model: Path, tmp_path: Path
) -> None:
    sources = [[f"w{number % 12}", f"w{number % 7}"] for number in range(200)]
    other = tiny.prepare_pairs(tmp_path / "other", sources, held_out=20, mark="y")
    said = refused(job(other, model, tmp_path / "model.safetensors"))
    assert (
        f"{model}: this training cannot start from it: its source vocabulary differs"
        in said
    )
    assert "take the model's by `vocabulary_of`" in said
    fewer = tiny.prepare_pairs(tmp_path / "fewer", [["w1"]] * 40, held_out=20)
    assert "it has 12 types, the task 1;" in refused(
        job(fewer, model, tmp_path / "model")
    )


def test_another_network_is_refused_by_the_keys_that_differ(
    task: Path, model: Path, tmp_path: Path
) -> None:
    wider = {"output_embedding": 24, "positions": {"maximum": 32}}
    said = refused(job(task, model, tmp_path / "model.safetensors", architecture=wider))
    expected = (
        "differs (output_embedding is 16, not 24, positions.maximum is 16, not 32)"
    )
    assert expected in said


def test_other_words_and_codes_are_refused(task: Path, tmp_path: Path) -> None:
    imported = import_trained(tmp_path)
    said = refused(job(task, imported, tmp_path / "model.safetensors"))
    assert "it has 3,000 BPE merges (SHA-256 " in said
    assert "the task reads whole words; take the model's" in said


def test_all_merges_of_codes_without_a_version_line_are_counted(
    task: Path, model: Path, tmp_path: Path
) -> None:
    network, description = load_model(model)
    changed = tmp_path / "changed.safetensors"
    codes = replace(description, bpe_codes="w 1\nw 2\n")
    save_model(changed, network.state_dict(), codes)
    said = refused(job(task, changed, tmp_path / "model.safetensors"))
    assert "it has 2 BPE merges (SHA-256 " in said


def test_a_model_that_is_not_there_is_named(task: Path, tmp_path: Path) -> None:
    said = refused(job(task, "none.safetensors", tmp_path / "model.safetensors"))
    assert said == "none.safetensors: no such file, but training.start starts from it"


# ---- a model that lies elsewhere ----


def test_a_url_is_fetched_once_and_checked(
    task: Path, model: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    url = server.serve("/model.safetensors", Served(model.read_bytes()))
    output = tmp_path / "further" / "seed1" / "model.safetensors"
    one = job(task, url, output)
    known = {url: Download(url=url, sha256=sha256(model))}
    place = fetched_start(one.recipe, output, known)
    assert place is not None
    assert fetched_start(one.recipe, output, known) == place
    assert len(server.answers) == 1
    assert sha256(place) == sha256(model)
    wrong = {url: Download(url=url, sha256="0" * 64)}
    with pytest.raises(UserError, match="has sha256"):
        fetched_start(one.recipe, tmp_path / "other" / "model.safetensors", wrong)
    assert fetched_start(job(task, model, output).recipe, output, {}) is None


def test_another_url_or_checksum_is_fetched_anew(
    task: Path, model: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"another model")
    output = tmp_path / "further" / "model.safetensors"
    places = []
    for path in (model, other):
        url = server.serve(f"/{path.name}", Served(path.read_bytes()))
        place = fetched_start(job(task, url, output).recipe, output, {})
        assert place is not None
        assert sha256(place) == sha256(path)
        places.append(place)
    _, place = places
    place.write_bytes(b"what was there before")
    known = {url: Download(url=url, sha256=sha256(other))}
    assert fetched_start(job(task, url, output).recipe, output, known) == place
    assert sha256(place) == sha256(other)
