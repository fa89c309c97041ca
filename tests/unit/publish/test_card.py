"""A model's card: what a file says of itself, and what lies beside it."""

import json
import re
import shutil
from pathlib import Path

import pytest

from convs2s.config.task import RougeSettings
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.files.text import read_json, write_json
from convs2s.manifest import run_manifest
from convs2s.model_file import describe_model, load_model
from convs2s.publish.card import model_card
from convs2s.scoring.evaluation import evaluate_rouge
from convs2s.training.run import train
from tests.support import tiny
from tests.unit.conftest import Terminal

MODEL = "models/small/seed1/model.safetensors"


def sections(card: str) -> dict[str, str]:
    """Return title -> what stands below it."""
    _, *parts = re.split(r"^## (.*)\n", "## Model\n" + card, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_what_is_no_evaluation_of_this_model_is_left_out(results: Path) -> None:
    before, own = (
        model_card(results / MODEL),
        (results / MODEL).with_name("test.beam5.bleu.json"),
    )
    for content in (b'{"bleu": 34.1}', b"\xff"):
        own.with_name("foreign.bleu.json").write_bytes(content)
        assert model_card(results / MODEL) == before
    own.write_text(own.read_text("utf-8").replace('"lines"', '"line"'), "utf-8")
    with pytest.raises(UserError, match="not an evaluation of this version"):
        model_card(results / MODEL)


def test_a_copied_model_file_alone_says_where_it_comes_from(
    results: Path, tmp_path: Path, run: Terminal
) -> None:
    alone = tmp_path / "copied.safetensors"
    shutil.copy(results / MODEL, alone)
    shutil.rmtree(results)
    found = sections(run("card", alone))
    assert f"SHA-256: {sha256(alone)}" in found["Model"]
    assert "tiny: en to fr" in found["Model"]
    assert "preparation: moses_test, then whole words" in found["Model"]
    assert "seed: 1" in found["Training"]
    assert "updates: 30" in found["Training"]
    assert re.search(r"best epoch: [123]\n", found["Training"])
    assert re.search(r"validation perplexity: \d+\.\d{4}\n", found["Training"])
    permuted = r"the same with permuted sources: \d+\.\d{4}, \d\.\d\d times\n"
    assert re.search(permuted, found["Training"])
    assert "learning_rate: 0.25" in found["Recipe"]
    assert "embedding: 16" in found["Architecture"]
    assert (
        f"train.en.gz: sha256 `{'a' * 64}`; license: LicenseRef-WMT"
        in found["Files that the text came from"]
    )
    assert found["Checksums (SHA-256) of what training read"].count("`") == 2 * 4
    assert found["Scores"].strip().startswith("not recorded here")
    assert found["Made with"].strip().startswith("not recorded here")


def test_the_checksums_are_those_of_the_prepared_files(results: Path) -> None:
    found = sections(model_card(results / MODEL))[
        "Checksums (SHA-256) of what training read"
    ]
    for file in ("dataset/train.arrow", "dataset/valid.arrow", "vocabulary/en.tsv"):
        assert f"- {file}: `{sha256(results / file)}`\n" in found


def test_the_fingerprint_names_the_trainings_state(results: Path) -> None:
    (state,) = (path.name for path in (results / MODEL).parent.glob("state/*/"))
    assert (
        f"fingerprint: {state}\n" in sections(model_card(results / MODEL))["Training"]
    )


def test_scores_and_versions_are_those_beside_the_model(results: Path) -> None:
    found = sections(model_card(results / MODEL))
    scores = read_json(
        results / MODEL.replace("model.safetensors", "test.beam5.bleu.json")
    )
    assert isinstance(scores, dict)
    tokenized = scores["bleu"]["tokenized"]
    signature = tokenized["signature"].replace("|", "\\|")
    row = f"| test | 3 | beam5 | tokenized BLEU | {tokenized['score']:.2f} | `{signature}` |"
    assert row in found["Scores"]
    assert "detokenized BLEU" in found["Scores"]
    assert "chrF" in found["Scores"]
    assert "- torch: " in found["Made with"]


def test_rouge_stands_there_in_the_headlines_measure(results: Path) -> None:
    path = (results / MODEL).with_name("test.beam5_minimum14.rouge.json")
    evaluate_rouge(
        translations=(results / MODEL).with_name("test.beam5.jsonl"),
        references=[results / "corpus/raw/test.target.zst"],
        exceptions=None,
        output=path,
        test_set="test",
        settings=RougeSettings(measure="recall"),
        manifest=run_manifest([str(results / MODEL)]),
    )
    found = sections(model_card(results / MODEL))["Scores"]
    stated = read_json(path)
    assert isinstance(stated, dict)
    score = stated["rouge"]["rouge_l"]["recall"]["score"]
    row = f"| test | 3 | beam5_minimum14 | ROUGE-L recall | {score:.2f} | "
    row += "`ROUGE-1.5.5-equal\\|refs:1"
    assert row in found
    assert "| test | 3 | beam5 | tokenized BLEU |" in found


def test_scores_and_records_of_another_model_are_left_out(results: Path) -> None:
    weights, fields = load_tensors(results / MODEL)
    fields["training"]["seed"] = fields["training"]["identity"]["seed"] = 2
    save_tensors(results / MODEL, weights, fields)
    found = sections(model_card(results / MODEL))
    assert "seed: 2" in found["Training"]
    assert "not recorded here" in found["Scores"]
    assert "not recorded here" in found["Made with"]


@pytest.mark.parametrize("lacks", ["revision", "threads", "packages", "manifest"])
def test_records_that_lack_something_say_so(results: Path, lacks: str) -> None:
    records = (results / MODEL).with_name("training.json")
    content = json.loads(records.read_text("utf-8"))
    del (content if lacks == "manifest" else content["manifest"])[lacks]
    records.write_text(json.dumps(content), "utf-8")
    found = sections(model_card(results / MODEL))["Made with"]
    assert ("not recorded here" in found) == (lacks != "packages")


@pytest.mark.parametrize(
    "name", ["test.rescored", "test.beam5.rescored-by-small-seed2"]
)
def test_scores_of_a_rescored_list_are_no_models(results: Path, name: str) -> None:
    before = model_card(results / MODEL)
    scores = {"bleu": {"average": {"tokenized": {"score": 30.0}}}}
    write_json((results / MODEL).with_name(f"{name}.bleu.json"), scores)
    assert model_card(results / MODEL) == before


def test_scoring_changes_no_byte_of_the_model(results: Path, tmp_path: Path) -> None:
    again = tiny.job(results, tmp_path / "model.safetensors")
    train(again)
    assert sha256(again.output) == sha256(results / MODEL)
    model_card(results / MODEL)
    assert sha256(again.output) == sha256(results / MODEL)


def test_a_model_on_stand_in_data_says_so_first(results: Path, tmp_path: Path) -> None:
    described = results / "dataset/train.json"
    stated = read_json(described)
    assert isinstance(stated, dict)
    write_json(described, stated | {"stand_in": "a mirror"})
    train(
        tiny.job(
            results, tmp_path / "model.safetensors", tiny.settings(maximum_epochs=1)
        )
    )
    card = model_card(tmp_path / "model.safetensors")
    assert card.splitlines()[2] == "STAND-IN DATA: a mirror"


def test_a_model_file_from_before_says_what_it_knows(
    results: Path, tmp_path: Path
) -> None:
    weights, fields = load_tensors(results / MODEL)
    for key in ("identity", "sources", "pairs", "stand_in"):
        del fields["training"][key]
    older = tmp_path / "model.safetensors"
    save_tensors(older, weights, fields)
    found = sections(model_card(older))
    assert "seed: 1" in found["Training"]
    assert "not recorded here" in found["Recipe"]
    assert "not recorded here" in found["Checksums (SHA-256) of what training read"]


def test_an_imported_model_says_what_it_was_imported_from(
    results: Path, tmp_path: Path
) -> None:
    weights, fields = load_tensors(results / MODEL)
    fields["training"] = {"imported_from": "fairseq", "checkpoint_sha256": "b" * 64}
    imported = tmp_path / "model.safetensors"
    save_tensors(imported, weights, fields)
    found = sections(model_card(imported))
    assert "imported from: fairseq" in found["Training"]
    assert "b" * 64 in found["Training"]
    assert "not recorded here" in found["Data"]


def test_a_description_without_its_weights_is_the_models(results: Path) -> None:
    assert describe_model(results / MODEL) == load_model(results / MODEL)[1]


def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path, run: Terminal) -> None:
    with pytest.raises(SystemExit, match=r"convs2s: error: nowhere: no such file"):
        run("card", "nowhere")
    text = tmp_path / "bleu.txt"
    text.write_text("BLEU 34.1")
    with pytest.raises(UserError, match="not a model"):
        model_card(text)


def test_a_card_holds_nothing_that_a_page_or_a_terminal_acts_on(
    results: Path, tmp_path: Path
) -> None:
    weights, fields = load_tensors(results / MODEL)
    hostile = "<img src=x>\x1b[31m\n# heading\N{RIGHT-TO-LEFT OVERRIDE}![a](http://h)"
    fields["task"] = hostile
    fields["training"] |= {"stop_reason": hostile, "sources": [{"file": hostile}]}
    fields["training"]["identity"]["training"] = {"clip": hostile}
    save_tensors(tmp_path / "model.safetensors", weights, fields)
    card = model_card(tmp_path / "model.safetensors")
    assert "# &lt;img src=x>[31m# heading![a]\\(http://h): en to fr\n" in card
    outside = [line for line in card.splitlines() if not line.startswith("    ")]
    for strange in ({"identity": "x"}, {"source_use": {"permuted_perplexity": 1.0}}):
        altered = fields | {"training": fields["training"] | strange}
        save_tensors(tmp_path / "strange.safetensors", weights, altered)
        with pytest.raises(
            UserError, match=r"strange\.safetensors: its record of a training is no"
        ):
            model_card(tmp_path / "strange.safetensors")
    assert not [
        line for line in outside if "<" in line or "](" in line or line == "# heading"
    ]
    assert not [sign for sign in card if sign != "\n" and not sign.isprintable()]
