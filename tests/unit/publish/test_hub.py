"""A model as a folder of the Hugging Face Hub: written, sent to a stand-in, brought back."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.cli.main import main
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json
from convs2s.model_file import describe_model, load_model, save_model
from convs2s.publish.hub import HUB_FILES, MODEL_NAME, USE, export_hub, pull, push
from tests.support.hub import REPOSITORY, Hub
from tests.unit.conftest import Terminal

OF_RUN = "models/small/seed1/model.safetensors"

needs_hub = pytest.mark.skipif(
    not find_spec("huggingface_hub"), reason="the extra hub is missing"
)


@pytest.fixture
def folder(results: Path, tmp_path: Path) -> Path:
    command = (
        "export",
        "hub",
        results / OF_RUN,
        tmp_path / "folder",
        "--license",
        "cc-by-4.0",
    )
    main(list(map(str, command)))
    return tmp_path / "folder"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    constants = pytest.importorskip("huggingface_hub.constants")
    server = Hub()
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(
        constants.ENDPOINT, server.address
    )
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no_token"))
    monkeypatch.setenv("HF_TOKEN", "hf_stand_in")
    yield server
    server.close()


def test_the_folder_has_what_the_model_file_says(results: Path, folder: Path) -> None:
    model = describe_model(results / OF_RUN)
    written = {path.name for path in folder.iterdir()}
    assert written == set(HUB_FILES) - {"bpe_codes.txt"}  # of words
    assert sha256(folder / MODEL_NAME) == sha256(results / OF_RUN)
    assert (folder / "vocabulary.source.txt").read_text(
        "utf-8"
    ).split() == model.source_types
    assert (folder / "vocabulary.target.txt").read_text(
        "utf-8"
    ).split() == model.target_types
    config = read_json(folder / "config.json")
    assert isinstance(config, dict)
    assert config["languages"] == {"source": "en", "target": "fr"}
    assert config["architecture"] == model.architecture.model_dump(mode="json")


def test_the_codes_are_those_that_split_the_words(model: Path, tmp_path: Path) -> None:
    (network, description), codes = load_model(model), "#version: 0.2\nw 1</w>\n"
    coded = tmp_path / "coded.safetensors"
    save_model(
        coded, network.state_dict(), description.model_copy(update={"bpe_codes": codes})
    )
    export_hub(coded, tmp_path / "folder", "mit")
    assert (tmp_path / "folder/bpe_codes.txt").read_text("utf-8") == codes
    card = (tmp_path / "folder/README.md").read_text("utf-8")
    assert f"{MODEL_NAME}, " in card
    assert coded.name not in card


def front_matter(folder: Path) -> dict[str, Any]:
    _, head, _ = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    stated: dict[str, Any] = yaml.safe_load(head)
    return stated


def test_the_card_states_each_score_with_its_test_set_and_signature(
    results: Path, folder: Path
) -> None:
    stated = front_matter(folder)
    assert stated["language"] == ["en", "fr"]
    assert stated["license"] == "cc-by-4.0"
    assert stated["pipeline_tag"] == "translation"
    assert stated["metrics"] == ["bleu", "chrf"]
    scores = read_json((results / OF_RUN).with_name("test.beam5.bleu.json"))
    assert isinstance(scores, dict)
    (index,) = stated["model-index"]
    (result,) = (
        row for row in index["results"] if "beam5" in row["metrics"][0]["name"]
    )
    assert result["dataset"] == {
        "name": "test of tiny, 3 lines",
        "type": "tiny",
        "split": "test",
    }
    tokenized = scores["bleu"]["tokenized"]
    assert result["metrics"][0] == {
        "type": "bleu",
        "name": "tokenized BLEU, beam5",
        "value": round(tokenized["score"], 2),
        "args": {"signature": tokenized["signature"]},
    }
    assert all(row["args"]["signature"] for row in result["metrics"])


@needs_hub
def test_the_hub_reads_the_card(folder: Path) -> None:
    from huggingface_hub import ModelCard

    data = ModelCard.load(folder / "README.md").data
    assert data.model_name == "tiny"
    assert data.eval_results is not None
    assert {result.metric_type for result in data.eval_results} == {"bleu", "chrf"}
    assert {result.dataset_split for result in data.eval_results} == {"test"}


def test_a_model_without_scores_claims_none(model: Path, tmp_path: Path) -> None:
    shutil.copy(model, tmp_path / "model.safetensors")
    export_hub(tmp_path / "model.safetensors", tmp_path / "folder", "unknown")
    stated = front_matter(tmp_path / "folder")
    assert "metrics" not in stated
    assert "model-index" not in stated


def test_the_cards_program_translates_without_snakemake(folder: Path) -> None:
    (program,) = re.findall(
        r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL
    )
    assert program in USE
    assert program.count("\n") <= 20
    check = "\nassert not {'snakemake', 'huggingface_hub'} & set(sys.modules)\n"
    done = subprocess.run(
        [sys.executable, "-c", program + check],
        cwd=folder,
        input="w1 w2\nw3\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 2


def test_no_folder_is_written_over_or_left_half_written(
    results: Path, folder: Path
) -> None:
    with pytest.raises(UserError, match="folder: exists already"):
        export_hub(results / OF_RUN, folder, "mit")
    damaged = results / "damaged.safetensors"
    damaged.write_bytes((results / OF_RUN).read_bytes()[:-1])
    with pytest.raises(UserError):
        export_hub(damaged, folder.with_name("other"), "mit")
    assert not folder.with_name("other").exists()


@needs_hub
def test_commands_as_typed(
    folder: Path, hub: Hub, tmp_path: Path, run: Terminal
) -> None:
    environment = os.environ | {
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(tmp_path / "home"),
    }

    def typed(*command: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "convs2s", *command],
            cwd=tmp_path,
            env=environment | {"HF_HUB_DISABLE_XET": "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    address = typed("push", "folder", REPOSITORY)
    assert address == f"{hub.address}/{REPOSITORY}/commit/{'c' * 40}\n"
    assert hub.files == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert hub.commits == ["A model of convs2s"]
    assert typed("pull", REPOSITORY) == "model/model.safetensors\n"
    copies = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    assert copies == hub.files
    said = run("translate", tmp_path / "model" / MODEL_NAME, text=b"w1 w2\nw3\n")
    assert said.count("\n") == 2


@needs_hub
def test_nothing_else_of_a_repository_is_fetched(
    folder: Path, hub: Hub, tmp_path: Path
) -> None:
    push(folder, REPOSITORY)
    hub.files["pytorch_model.bin"] = b"cos\nsystem\n(S'true'\ntR."
    pull(REPOSITORY, tmp_path / "copy")
    assert sorted(hub.asked) == sorted(
        path.name for path in (tmp_path / "copy").iterdir()
    )
    assert "pytorch_model.bin" not in hub.asked


@needs_hub
def test_codes_of_the_model_before_go(folder: Path, hub: Hub) -> None:
    hub.files |= {"bpe_codes.txt": b"#version: 0.2\n", "NOTES.md": b"somebody's"}
    push(folder, REPOSITORY)
    assert set(hub.files) == {"NOTES.md", *(path.name for path in folder.iterdir())}


@pytest.mark.parametrize("form", ["hub", "onnx"])
def test_a_file_that_is_no_model_is_named(
    tmp_path: Path, run: Terminal, form: str
) -> None:
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"no model")
    for path, said in (
        (tmp_path / "absent", "no such file"),
        (damaged, "not a model: "),
    ):
        with pytest.raises(SystemExit, match=f"{path}: {said}"):
            run("export", form, path, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@needs_hub
@pytest.mark.parametrize("name", [MODEL_NAME, "README.md"])
def test_a_wrong_checksum_leaves_nothing(
    folder: Path, hub: Hub, tmp_path: Path, name: str
) -> None:
    push(folder, REPOSITORY)
    hub.damaged.add(name)
    with pytest.raises(
        UserError, match=f"{REPOSITORY}: {name}: its checksum is not the one"
    ):
        pull(REPOSITORY, tmp_path / "copy")
    assert not list(tmp_path.glob("copy*"))


@needs_hub
def test_what_is_not_there(folder: Path, hub: Hub, tmp_path: Path) -> None:
    missing = (
        f"somebody/else: no such repository at {hub.address}, or none that you may use"
    )
    with pytest.raises(UserError, match=missing):
        pull("somebody/else", tmp_path / "copy")
    with pytest.raises(UserError, match=missing):
        push(folder, "somebody/else")
    with pytest.raises(
        UserError, match=f"{REPOSITORY}: has no model.safetensors: name a repo"
    ):
        pull(REPOSITORY, tmp_path / "copy")
    with pytest.raises(UserError, match=f"{REPOSITORY}: .*Revision Not Found"):
        pull(REPOSITORY, tmp_path / "copy", "no_such_tag")
    with pytest.raises(
        UserError, match=f"no name: request to {hub.address} failed: Repo id"
    ):
        pull("no name", tmp_path / "copy")
    with pytest.raises(UserError, match=r"model.safetensors: no such file"):
        push(tmp_path, REPOSITORY)
    assert not (tmp_path / "copy").exists()


@needs_hub
def test_a_hub_that_is_not_there(hub: Hub, tmp_path: Path) -> None:
    hub.close()
    refused = f"{REPOSITORY}: request to {hub.address} failed: .*refused"
    with pytest.raises(UserError, match=refused):
        pull(REPOSITORY, tmp_path / "copy")


@needs_hub
def test_a_damaged_model_is_not_sent(folder: Path, hub: Hub) -> None:
    (folder / MODEL_NAME).write_bytes((folder / MODEL_NAME).read_bytes()[:-1])
    with pytest.raises(UserError):
        push(folder, REPOSITORY)
    assert hub.files == {}


def test_without_the_extra_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, run: Terminal, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for command in (
        ("push", folder, REPOSITORY),
        ("pull", REPOSITORY, tmp_path / "copy"),
    ):
        with pytest.raises(SystemExit, match=r"pip install 'convs2s\[hub\]'"):
            run(*command)
    assert not (tmp_path / "copy").exists()
