"""Each example added to one and the same configuration, and run by one command."""

import json
import os
from pathlib import Path

import pytest
import yaml

from convs2s.config.extensions import VARIABLE
from convs2s.errors import UserError
from convs2s.model_file import describe_model
from tests.support import own_pair
from tests.support.checkout import Checkout, Done

MODEL = "results/mine_en_nl/models/transformer/seed1"
TOKENIZED = """
preparation: {train: characters, test: characters}
vocabulary: {kind: word}
alignment: {dictionary: identity}
clean: {ratio: null}
"""
SCORED = """
metrics: [WER]
headline: {model: transformer, decoding: greedy}
"""
TINY = {"architecture": {"layers": 1, "width": 16, "heads": 2}, "training": {"maximum_epochs": 2}}


@pytest.fixture(scope="module")
def run(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, Done]:
    """The data set with a tokenizer, a metric and a network of extensions; and the exhibit.

    The folder holds what a user adds, and else nothing.
    """
    folder = Checkout(tmp_path_factory.mktemp("examples"))
    own_pair.write_text(folder)
    text = {path.name: path.read_text("utf-8") for path in root.glob("examples/*.*")}
    folder.write("config/tasks/mine_en_nl.yaml", text["task.yaml"] + TOKENIZED + SCORED)
    exhibit = text["exhibit.yaml"]
    for old, new in (("wmt14_en_fr", "mine_en_nl"), ("newstest2014", "test"), ("beam5", "greedy")):
        exhibit = exhibit.replace(old, new)
    for file, more in (("models.yaml", text["models.yaml"]), ("paper.yaml", exhibit)):
        shipped = (root / f"config/{file}").read_text("utf-8")
        folder.write(f"config/{file}", f"{shipped}\n{more}")
    extensions = [f"examples/{name}" for name in text if name.endswith(".py")]
    for file in extensions:
        folder.write(file, text[Path(file).name])
    options = {"cores": 1, "device": "cpu", "shards": 1, "extensions": extensions}
    options["overrides"] = {"models": {"transformer": TINY}}
    folder.write("config.yaml", yaml.safe_dump(options))
    targets = "results/mine_en_nl/bleu.txt", "results/paper/vaswani_table2.md"
    return folder, folder.snakemake("--snakefile", str(root / "Snakefile"), *targets)


@pytest.fixture
def finished(run: tuple[Checkout, Done]) -> Checkout:
    folder, done = run
    assert done.code == 0, done.said
    return folder


def test_the_score_is_of_the_network_the_tokenizer_and_the_metric(finished: Checkout) -> None:
    report = (finished / "results/mine_en_nl/bleu.txt").read_text("utf-8")
    assert "model     transformer" in report
    assert "\ntest WER " in report
    assert " WER|code:" in report
    words = (finished / "results/mine_en_nl/vocabulary/en.tsv").read_text("utf-8").splitlines()
    assert {len(word.split("\t")[0]) for word in words[8:]} == {1}
    settings = json.loads((finished / f"{MODEL}/../settings.json").read_text("utf-8"))
    assert settings["architecture"]["kind"] == "transformer"
    training = json.loads((finished / f"{MODEL}/training.json").read_text("utf-8"))
    assert training["manifest"]["identity"]["code"] == settings["code"]


def test_the_exhibit_has_the_printed_values(finished: Checkout) -> None:
    table = (finished / "results/paper/vaswani_table2.md").read_text("utf-8")
    assert "Vaswani et al. (2017), Attention Is All You Need" in table
    assert "| ConvS2S | 40.46 |" in table
    assert "| Transformer (base) | 38.10 |" in table


def test_commands_find_the_extensions_of_the_folder(finished: Checkout) -> None:
    translate = f"head -2 data/mine/test.en | convs2s translate {MODEL}/model.safetensors --beam 1"
    score = "convs2s score bleu --metric WER --reference data/mine/test.nl < data/mine/test.nl"
    done = finished.shell(f"{translate} && {score}")
    *translated, scored = done.said.splitlines()
    assert translated == (finished / f"{MODEL}/test.greedy.txt").read_text().splitlines()[:2]
    assert scored.startswith("WER = 0.00  WER|code:")


def test_a_model_is_refused_where_its_extension_is_not_configured(
    finished: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    names = "unknown architecture 'transformer'; expected one of convs2s, lstm .*docs/extending.md"
    with pytest.raises(UserError, match=rf"model.safetensors: architecture: {names}"):
        describe_model(finished / f"{MODEL}/model.safetensors")
    monkeypatch.setenv(VARIABLE, os.fspath(finished / "examples/transformer.py"))
    with pytest.raises(UserError, match=r"model.safetensors: unknown preparation 'characters'"):
        describe_model(finished / f"{MODEL}/model.safetensors")
