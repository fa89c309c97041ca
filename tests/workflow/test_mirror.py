"""Tasks over the miniature mirror, from its archives to clean text and to scores."""

import json
from pathlib import Path

import pytest

from convs2s.download.download import listed_checksum
from convs2s.files.checksums import sha256
from convs2s.files.text import read_lines
from convs2s.model_file import describe_model
from convs2s.text.truecase import read_truecaser
from mirror.sentences import TEST_PAIRS
from tests.support.checkout import Checkout
from tests.support.refusals import refusal, says
from tests.workflow.mirror import DEVICE, RESULTS, add_mirror

NEWS = TEST_PAIRS["newstest2014"]

# Task -> its headline's test sets and the lines of each.
HEADLINES = {
    "wmt14_en_fr": {"newstest2014": NEWS},
    "wmt14_en_de": {"newstest2014_filtered": NEWS - NEWS // 11, "newstest2014": NEWS},
    "wmt16_en_ro": {"newstest2016": TEST_PAIRS["newstest2016"]},
}


@pytest.mark.slow
def test_the_headlines_as_typed_in_a_fresh_clone(checkout: Checkout) -> None:
    targets = [f"{RESULTS}/{task}/bleu.txt" for task in HEADLINES]
    command = ["--config", "scale=mirror", "--", *targets]
    done = checkout.snakemake(*command).succeeded()
    assert done.planned["write_mirror"] == 1
    for task, lines in HEADLINES.items():
        text = checkout.read(f"{RESULTS}/{task}/bleu.txt")
        assert text.startswith("STAND-IN DATA: a miniature mirror")
        report = checkout.json(f"{RESULTS}/{task}/bleu.json")
        assert report["scale"] == "mirror"
        tests = report["tests"]
        assert {name: test["lines"] for name, test in tests.items()} == lines
        # It is learned, if by no means well.
        assert all(test["bleu"]["tokenized"]["mean"] > 40 for test in tests.values())
    # Romanian is trained on truecased text, and its model has the truecaser.
    folder = checkout / RESULTS / "wmt16_en_ro"
    romanian = [*read_lines(folder / "corpus/truecased/train.target.zst")]
    assert "le" in {line.split()[0] for line in romanian}
    assert set("șțăâî") <= {*"".join(romanian)}
    assert not set("şţŞŢ") & {*"".join(romanian)}
    described = describe_model(folder / "models/demo/seed1/model.safetensors")
    target = read_truecaser(folder / "corpus/truecaser.target.tsv")
    assert described.truecasers["ro"] == target


RELEASED = {
    "wmt14_en_fr_released": "fconv_wmt_en_fr",
    "wmt14_en_de_released": "fconv_wmt_en_de",
}


# Three lines for both languages.
TESTED = """
scale: mirror
device: cpu
cores: 1
overrides:
  tasks:
    wmt14_en_fr: &three
      corpus:
        tests: {newstest2014: [{source: data/test.en, target: data/test.other}]}
    wmt14_en_de: *three
    wmt14_en_fr_released: &headline {headline: {tests: [newstest2014]}}
    wmt14_en_de_released: *headline
"""


@pytest.mark.slow
def test_released_models_are_scored_and_train_nothing(
    checkout: Checkout, mirror: Path
) -> None:
    add_mirror(mirror, checkout)
    checkout.write("data/test.en", "the red house\nin the\nthe unheard\n")
    checkout.write("data/test.other", "a b c\nd e\nf\n")
    checkout.write("config.local.yaml", TESTED)
    headlines = [f"{RESULTS}/{task}/bleu.txt" for task in RELEASED]
    done = checkout.snakemake(*headlines).succeeded()
    assert done.planned["import_released"] == done.planned["download_file"] == 2
    assert not {"train_model", "build_vocabulary", "learn_bpe"} & done.planned.keys()
    for task, model in RELEASED.items():
        headline = checkout.read(f"{RESULTS}/{task}/bleu.txt")
        assert headline.startswith("STAND-IN DATA: ")
        assert "newstest2014: 3 lines; one run (released)" in headline
        run = f"{RESULTS}/{task}/models/{model}/released"
        rows = read_lines(checkout / f"{run}/newstest2014.beam5_fairseq.jsonl")
        _, known, unknown = (json.loads(row)["source_tokens"] for row in rows)
        assert known == ["in", "the"]
        assert len(unknown) > 2
        assert unknown[1].endswith("@@")


# What stays of a preparation; everything in between is removed.
KEPT = """
corpus/counts.txt corpus/words/source.tsv.zst corpus/words/target.tsv.zst
corpus/raw/valid.source.zst corpus/raw/valid.target.zst
corpus/clean/train.source.zst corpus/clean/train.target.zst corpus/clean/train.json
corpus/clean/valid.source.zst corpus/clean/valid.target.zst corpus/clean/valid.json
dataset/train.arrow dataset/train.json dataset/valid.arrow dataset/valid.json
vocabulary/codes vocabulary/en.tsv vocabulary/fr.tsv
"""


@pytest.mark.slow
def test_at_once_and_in_3_parts_it_has_the_same_bytes(
    checkout: Checkout, mirror: Path, tmp_path: Path
) -> None:
    corpus = f"{RESULTS}/wmt14_en_fr"
    # Learning many merges is not what is looked at.
    few = {"wmt14_en_fr": {"vocabulary": {"merges": 500}}}
    add_mirror(mirror, checkout)
    made = ("dataset/train.arrow", "dataset/valid.arrow", "corpus/counts.txt")
    results = []
    for parts in (1, 3):
        copy = checkout.copy(tmp_path / str(parts))
        above = {} if parts == 1 else {"scatter_above": 0}
        copy.configure({**DEVICE, **above, "overrides": {"tasks": few}})
        asked = (f"{corpus}/{name}" for name in made)
        done = copy.snakemake("--set-scatter", f"parts={parts}", "--", *asked)
        done.succeeded()
        assert done.planned.get("tokenize_and_filter_part", 1) == parts
        results.append({name: sha256(copy / name) for name in copy.files(corpus)})
    assert {name.removeprefix(f"{corpus}/") for name in results[0]} == {*KEPT.split()}
    assert results[0] == results[1]


def test_what_the_mirror_lacks_is_said(mirror: Path) -> None:
    said = refusal(listed_checksum, str(mirror), "https://data.example/train.en")
    words = "SHA256SUMS: no checksum for data.example/train.en: this scale's mirror "
    says(said, f"{words}does not hold the file")
