"""A model as a folder of the Hugging Face Hub: its files, its card and the program of that."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.model_file import load_model, save_model
from convs2s.publish.hub import HUB_FILES, MODEL_NAME, export_hub
from tests.conftest import Terminal
from tests.contract.pages import fenced


def front_matter(folder: Path) -> dict[str, Any]:
    card = (folder / "README.md").read_text("utf-8")
    return next(yaml.safe_load_all(card))


def test_the_folder_has_what_the_model_file_says(model: Path, tmp_path: Path) -> None:
    network, description = load_model(model)
    codes = "#version: 0.2\nw 1</w>\n"
    coded, folder = tmp_path / "coded.safetensors", tmp_path / "folder"
    languages = {"source": "en", "target": "en_title"}
    with_codes = description.model_copy(
        update={"bpe_codes": codes, "languages": languages}
    )
    save_model(coded, network.state_dict(), with_codes)
    export_hub(coded, folder, "mit")
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert written.keys() == set(HUB_FILES)
    assert written[MODEL_NAME] == coded.read_bytes()
    assert written["bpe_codes.txt"].decode() == codes
    for side in ("source", "target"):
        types = written[f"vocabulary.{side}.txt"].decode().splitlines()
        assert types == getattr(description, f"{side}_types")
    config = json.loads(written["config.json"])
    assert config["languages"] == languages
    assert config["architecture"] == description.architecture.model_dump(mode="json")
    stated = front_matter(folder)
    assert stated["pipeline_tag"] == "summarization"
    # A model without scores claims none.
    assert not {"metrics", "model-index"} & stated.keys()


CARD = """
language: [en, fr]
license: cc-by-4.0
pipeline_tag: translation
metrics: [bleu, chrf]
"""


def test_the_card_states_each_score_and_a_program_that_translates(
    results: Path, tmp_path: Path, run: Terminal
) -> None:
    model = results / "models/small/seed1/model.safetensors"
    folder = tmp_path / "folder"
    run("export", "hub", model, folder, "--license", "cc-by-4.0")
    assert not (folder / "bpe_codes.txt").exists()  # of words
    stated = front_matter(folder)
    scores = json.loads(model.with_name("test.beam5.bleu.json").read_bytes())
    tokenized = scores["bleu"]["tokenized"]
    expected = yaml.safe_load(CARD)
    assert {key: stated[key] for key in expected} == expected
    ((result,),) = (index["results"] for index in stated["model-index"])
    assert result["dataset"]["name"] == "test of tiny, 3 lines"
    assert result["metrics"][0] == {
        "type": "bleu",
        "name": "tokenized BLEU, beam5",
        "value": round(tokenized["score"], 2),
        "args": {"signature": tokenized["signature"]},
    }
    (program,) = fenced(folder / "README.md", "python")
    check = "\nassert not {'snakemake', 'huggingface_hub'} & set(sys.modules)\n"
    command = [sys.executable, "-c", program + check]
    said = subprocess.check_output(command, cwd=folder, input="w1 w2\nw3\n", text=True)
    assert len(said.splitlines()) == 2
    read = pytest.importorskip("huggingface_hub").ModelCard.load(folder / "README.md")
    assert read.data.model_name == "tiny"
    assert {one.metric_type for one in read.data.eval_results} == {"bleu", "chrf"}
