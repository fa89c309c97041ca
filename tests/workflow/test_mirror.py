"""The three headline targets over the miniature mirror, from the archives to scores on newstest."""

import json
from pathlib import Path

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import Translator
from convs2s.files import read_lines
from convs2s.text.truecase import read_truecaser
from tests.support import own_pair
from tests.support.checkout import Checkout

# Task -> its test set and the lines of it.
TARGETS = {
    "wmt14_en_fr": ("newstest2014", 3003),
    "wmt14_en_de": ("newstest2014", 3003),
    "wmt16_en_ro": ("newstest2016", 1999),
}
RESULTS = "results/scales/mirror"


def beside(shared: Path, checkout: Checkout) -> Checkout:
    """Put the shared folder beside the checkout; its mirror stands for the network."""
    (checkout.folder.parent / "shared").symlink_to(shared)
    return checkout


def targets(results: str) -> list[str]:
    return [f"{results}/{task}/bleu.txt" for task in TARGETS]


@pytest.mark.parametrize("scale", ["paper", "mirror"])
def test_targets_are_planned_from_the_archives(
    checkout: Checkout, shared: Path, scale: str
) -> None:
    beside(shared, checkout).configure({"scale": scale})
    is_mirror = scale == "mirror"
    results = RESULTS if is_mirror else "results"
    done = checkout.snakemake("--dry-run", "--quiet", "reason", "--", *targets(results))
    assert done.code == 0, done.said[-3000:]
    # 6 archives of training text, 4 files for Romanian, test-full and dev; the mirror has no
    # test-filtered.
    assert done.planned["download_file"] == (11 if is_mirror else 12)
    assert done.planned["train_model"] == (6 if is_mirror else 9)
    assert done.planned["learn_truecaser"] == 2


def test_a_romanian_model_is_trained_on_truecased_text_and_given_the_truecaser(
    checkout: Checkout, shared: Path
) -> None:
    # The development set stands for the 14 times larger training text.
    dev = "http://data.statmt.org/wmt19/translation-task/dev.tgz#dev/newsdev2016-enro"
    sides = {"source": f"{dev}-src.en.sgm", "target": f"{dev}-ref.ro.sgm"}
    task = {"corpus": {"train": [sides]}, "vocabulary": {"merges": 300}}
    beside(shared, checkout).configure(
        {
            "scale": "mirror",
            "mirrors": ["../shared/mirror"],
            "shards": 1,
            "device": "cpu",
            "cores": 1,
            "overrides": {"models": {"small": own_pair.TINY}, "tasks": {"wmt16_en_ro": task}},
        }
    )
    model = f"{RESULTS}/wmt16_en_ro/models/small/seed1/model.safetensors"
    done = checkout.snakemake(model)
    assert done.code == 0, done.said[-3000:]
    corpus = checkout.folder / RESULTS / "wmt16_en_ro/corpus"
    for language, word in (("en", "the"), ("ro", "în")):
        first = [line.split()[0] for line in read_lines(corpus / f"truecased/train.{language}.zst")]
        assert word in first
        assert word.capitalize() not in first
    romanian = set("".join(read_lines(corpus / "truecased/train.ro.zst")))
    assert set("șțăâî") <= romanian
    assert not set("şţŞŢ") & romanian
    translator = Translator([checkout / model], DecodingSettings(minimum_length=3), "cpu")
    assert translator.description.truecasers == {
        language: read_truecaser(corpus / f"truecaser.{language}.tsv") for language in ("en", "ro")
    }
    upper, lower = translator.translate(["The vote is in Romania.", "the vote is in Romania."])
    assert upper.source_tokens == lower.source_tokens
    assert upper.text == upper.text[0].upper() + upper.text[1:]


@pytest.mark.slow
def test_from_the_archives_to_scores_on_newstest(checkout: Checkout, shared: Path) -> None:
    large_batches = {**own_pair.TINY["training"], "batch": {"sentences": 256}, "maximum_epochs": 1}
    few = {"headline": {"seeds": [1]}, "vocabulary": {"merges": 1000}}
    beside(shared, checkout).configure(
        {
            "scale": "mirror",
            "mirrors": ["../shared/mirror"],
            "device": "cpu",
            "cores": 1,
            "overrides": {
                "models": {"small": {**own_pair.TINY, "training": large_batches}},
                "tasks": dict.fromkeys(TARGETS, few),
            },
        }
    )
    done = checkout.snakemake(*targets(RESULTS))
    assert done.code == 0, done.said[-3000:]
    for task, (testset, lines) in TARGETS.items():
        text = (checkout / f"{RESULTS}/{task}/bleu.txt").read_text("utf-8")
        assert text.startswith("STAND-IN DATA: a miniature mirror")
        assert f"{testset}: {lines} lines; one run (seed1)" in text
        report = json.loads((checkout / f"{RESULTS}/{task}/bleu.json").read_text("utf-8"))
        assert list(report["tests"]) == [testset]
        assert report["scale"] == "mirror"
    assert not (checkout / "results/downloads").exists()
