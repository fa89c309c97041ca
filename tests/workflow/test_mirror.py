"""The headline targets over the miniature mirror, from its archives to scores on newstest."""

import json
import re
from pathlib import Path

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_lines
from convs2s.text.truecase import read_truecaser
from mirror.sentences import TEST_PAIRS
from tests.support.checkout import Checkout
from tests.support.mirror import DEVICE, QUICK, RESULTS, add_mirror

FILTERED = TEST_PAIRS["newstest2014"] - TEST_PAIRS["newstest2014"] // 11

# Task -> its headline's test sets and the lines of each.
TARGETS = {
    "wmt14_en_fr": {"newstest2014": TEST_PAIRS["newstest2014"]},
    "wmt14_en_de": {
        "newstest2014_filtered": FILTERED,
        "newstest2014": TEST_PAIRS["newstest2014"],
    },
    "wmt16_en_ro": {"newstest2016": TEST_PAIRS["newstest2016"]},
}


def targets(results: str) -> list[str]:
    return [f"{results}/{task}/bleu.txt" for task in TARGETS]


def assert_scored(checkout: Checkout, task: str) -> None:
    """Assert that a task's headline is there, and says that it is none of WMT's."""
    text = (checkout / f"{RESULTS}/{task}/bleu.txt").read_text("utf-8")
    assert text.startswith("STAND-IN DATA: a miniature mirror")
    report = json.loads((checkout / f"{RESULTS}/{task}/bleu.json").read_text("utf-8"))
    assert list(report["tests"]) == list(TARGETS[task])
    assert report["scale"] == "mirror"
    for testset, lines in TARGETS[task].items():
        assert f"{testset}: {lines} lines; " in text


@pytest.mark.parametrize("scale", ["paper", "mirror"])
def test_targets_are_planned_from_the_archives(checkout: Checkout, scale: str) -> None:
    checkout.configure({"scale": scale})
    is_mirror = scale == "mirror"
    results = RESULTS if is_mirror else "results"
    done = checkout.snakemake(
        "--dry-run", "--quiet", "reason", "--", *targets(results)
    ).succeeded()
    # 6 archives of training text, 3 files for Romanian, test-full, test-filtered and dev.
    assert done.planned["download_file"] == 12
    assert done.planned.get("write_mirror", 0) == (1 if is_mirror else 0)
    assert done.planned["train_model"] == (6 if is_mirror else 9)
    assert done.planned["learn_truecaser"] == 2


@pytest.mark.slow
def test_english_romanian_from_nothing_to_a_score(checkout: Checkout) -> None:
    few = {"headline": {"seeds": [1]}, "vocabulary": {"merges": 300}}
    overrides = {"models": {"demo": QUICK}, "tasks": {"wmt16_en_ro": few}}
    checkout.configure({**DEVICE, "overrides": overrides})
    done = checkout.snakemake(f"{RESULTS}/wmt16_en_ro/bleu.txt").succeeded()
    assert done.planned["write_mirror"] == 1
    assert_scored(checkout, "wmt16_en_ro")
    assert not (checkout / "results/downloads").exists()
    assert_truecased(checkout)


def assert_truecased(checkout: Checkout) -> None:
    """Assert that a Romanian model was trained on truecased text and given the truecaser."""
    folder = checkout / RESULTS / "wmt16_en_ro"
    for side, word in (("source", "the"), ("target", "le")):
        text = list(read_lines(folder / f"corpus/truecased/train.{side}.zst"))
        first = {line.split()[0] for line in text}
        assert word in first
        assert word.capitalize() not in first
    romanian = {letter for line in text for letter in line}
    assert set("șțăâî") <= romanian
    assert not set("şţŞŢ") & romanian
    model = folder / "models/demo/seed1/model.safetensors"
    translator = LineTranslator([model], DecodingSettings(minimum_length=3), "cpu")
    assert translator.description.truecasers == {
        language: read_truecaser(folder / f"corpus/truecaser.{side}.tsv")
        for language, side in (("en", "source"), ("ro", "target"))
    }
    upper, lower = translator.translate(["The man is here.", "the man is here."])
    assert upper.source_tokens == lower.source_tokens
    assert upper.text == upper.text[0].upper() + upper.text[1:]


@pytest.mark.slow
def test_the_headlines_as_typed_in_a_fresh_clone(checkout: Checkout) -> None:
    checkout.snakemake("--config", "scale=mirror", "--", *targets(RESULTS)).succeeded()
    for task in TARGETS:
        assert_scored(checkout, task)
        report = json.loads(
            (checkout / f"{RESULTS}/{task}/bleu.json").read_text("utf-8")
        )
        scores = [one["bleu"]["tokenized"]["mean"] for one in report["tests"].values()]
        assert min(scores) > 40, report  # it is learned, if by no means well


def test_what_the_mirror_lacks_is_said_in_one_line(
    checkout: Checkout, mirror: Path
) -> None:
    add_mirror(mirror, checkout)
    checkout.write(
        "config/tasks/mine.yaml",
        "description: d\nlanguages: {source: en, target: fr}\ncorpus:\n"
        "  train: [{source: 'https://data.example/a.en', target: 'https://data.example/a.fr'}]\n"
        "  tests: {test: [{source: data/a.en, target: data/a.fr}]}\nhold_out: {every: 2}\n",
    )
    for name in ("data/a.en", "data/a.fr"):
        checkout.write(name, "a\n")
    done = checkout.snakemake(
        "--config", "scale=mirror", "--", f"{RESULTS}/mine/corpus/counts.txt"
    )
    assert done.code == 1
    assert done.errors
    for line in done.errors:
        assert re.search(
            r"SHA256SUMS: no checksum for data\.example/a\.(en|fr): ", line
        ), line
        assert line.endswith("this scale's mirror does not hold the file")
