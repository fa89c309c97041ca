"""A model's card: what a file says of itself, and what lies beside it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.task import RougeSettings
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.manifest import run_manifest
from convs2s.publish.card import model_card
from convs2s.scoring.evaluation import evaluate_rouge
from tests.conftest import Terminal
from tests.support.refusals import says

MODEL = "models/small/seed1/model.safetensors"
UNKNOWN = "not recorded here"


@pytest.fixture
def model_file(results: Path) -> Path:
    return results / MODEL


def sections(card: str) -> dict[str, str]:
    """Return title -> what stands below it."""
    _, *parts = re.split(r"^## (.*)\n", "## Model\n" + card, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def changed(model: Path, **training: object) -> str:
    """Return the card of the file with another record of its training; None removes a key."""
    weights, fields = load_tensors(model)
    record = fields["training"] | training
    fields["training"] = {key: one for key, one in record.items() if one is not None}
    save_tensors(model, weights, fields)
    return model_card(model)


def test_a_copied_model_file_alone_says_where_it_comes_from(
    results: Path, tmp_path: Path, run: Terminal
) -> None:
    alone = tmp_path / "copied.safetensors"
    shutil.copy(results / MODEL, alone)
    read = ("dataset/train.arrow", "dataset/valid.arrow", "vocabulary/en.tsv")
    digests = [f"- {file}: `{sha256(results / file)}`\n" for file in read]
    (state,) = (results / MODEL).parent.glob("state/*/")
    shutil.rmtree(results)
    found = sections(run("card", alone))
    says(found["Model"], f"SHA-256: {sha256(alone)}", "tiny: en to fr", "moses_test, t")
    says(
        found["Training"], "seed: 1\n", "updates: 30\n", f"fingerprint: {state.name}\n"
    )
    says(found["Recipe"], "learning_rate: 0.25")
    says(found["Architecture"], "embedding: 16")
    source = f"`{'a' * 64}`; license: LicenseRef-WMT"
    says(found["Files that the text came from"], source)
    says(found["Checksums (SHA-256) of what training read"], *digests)
    says(found["Scores"], UNKNOWN)
    says(found["Made with"], UNKNOWN)
    perplexities = (
        r"validation perplexity: \d+\.\d{4}\n(.*\n)*?"
        r".*the same with permuted sources: \d+\.\d{4}, \d\.\d\d times\n"
    )
    assert re.search(perplexities, found["Training"])


def test_scores_and_versions_are_those_beside_the_model(model_file: Path) -> None:
    rouge = model_file.with_name("test.beam5_minimum14.rouge.json")
    evaluate_rouge(
        translations=model_file.with_name("test.beam5.jsonl"),
        references=[model_file.parents[3] / "corpus/raw/test.target.zst"],
        exceptions=None,
        output=rouge,
        test_set="test",
        settings=RougeSettings(measure="recall"),
        manifest=run_manifest([str(model_file)]),
    )
    found = sections(model_card(model_file))
    bleu = model_file.with_name("test.beam5.bleu.json")
    scores: Any = json.loads(bleu.read_text("utf-8"))["bleu"]["tokenized"]
    signature = scores["signature"].replace("|", "\\|")
    recall = json.loads(rouge.read_text("utf-8"))["rouge"]["rouge_l"]["recall"]
    says(
        found["Scores"],
        f"test | 3 | beam5 | tokenized BLEU | {scores['score']:.2f} | `{signature}`",
        "detokenized BLEU",
        "chrF",
        f"| test | 3 | beam5_minimum14 | ROUGE-L recall | {recall['score']:.2f} | "
        "`ROUGE-1.5.5-equal\\|refs:1",
    )
    assert "- torch: " in found["Made with"]


def test_files_of_others_are_left_out(model_file: Path) -> None:
    before = model_card(model_file)
    digest = json.dumps({"manifest": {"sha256": {"m": sha256(model_file)}}})
    model_file.with_name("foreign.bleu.json").write_text('{"bleu": 34.1}')
    model_file.with_name("binary.bleu.json").write_bytes(b"\xff")
    model_file.with_name("test.beam5.rescored-by-a.bleu.json").write_text(digest)
    assert model_card(model_file) == before
    _, fields = load_tensors(model_file)
    identity = fields["training"]["identity"] | {"seed": 2}
    found = sections(changed(model_file, seed=2, identity=identity))
    assert "seed: 2" in found["Training"]
    assert UNKNOWN in found["Scores"]
    assert "torch" not in found["Made with"]


def test_what_an_old_or_imported_file_does_not_record_is_said(model_file: Path) -> None:
    card = changed(model_file, stand_in="a mirror")
    assert card.splitlines()[2] == "STAND-IN DATA: a mirror"
    old = changed(model_file, identity=None, sources=None, pairs=None, stand_in=None)
    found = sections(old)
    assert "seed: 1" in found["Training"]
    assert UNKNOWN in found["Recipe"]
    assert UNKNOWN in found["Checksums (SHA-256) of what training read"]
    imported = changed(model_file, imported_from="fairseq", checkpoint_sha256="b" * 64)
    says(sections(imported)["Training"], "imported from: fairseq", "b" * 64)
