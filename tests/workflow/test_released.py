"""A released model's task, from the download of the authors' archive to a score."""

import json
from pathlib import Path

from tests.support.checkout import Checkout
from tests.support.mirror import DEVICE, RESULTS, add_mirror

TASK = "wmt14_en_fr_released"
MODELS = {TASK: "fconv_wmt_en_fr", "wmt14_en_de_released": "fconv_wmt_en_de"}


def test_from_the_archives_to_scores(checkout: Checkout, mirror: Path) -> None:
    add_mirror(mirror, checkout)
    checkout.write("data/test.en", "the red house\nin the\nthe unheard\n")
    checkout.write("data/test.other", "a b c\nd e\nf\n")
    test = {"newstest2014": [{"source": "data/test.en", "target": "data/test.other"}]}
    texts = {
        text: {"corpus": {"tests": test}} for text in ("wmt14_en_fr", "wmt14_en_de")
    }
    headlines = {task: {"headline": {"tests": list(test)}} for task in MODELS}
    checkout.configure({**DEVICE, "overrides": {"tasks": {**texts, **headlines}}})
    done = checkout.snakemake(
        *(f"{RESULTS}/{task}/bleu.txt" for task in MODELS)
    ).succeeded()
    assert done.planned["import_released"] == done.planned["download_file"] == 2
    assert not {"train_model", "build_vocabulary", "learn_bpe"} & done.planned.keys()
    for task, model in MODELS.items():
        headline = (checkout / f"{RESULTS}/{task}/bleu.txt").read_text("utf-8")
        assert headline.startswith("STAND-IN DATA: ")
        assert "newstest2014: 3 lines; one run (released)" in headline
        folder = f"{RESULTS}/{task}/models/{model}/released"
        assert checkout.files(folder)[0] == f"{folder}/model.safetensors"
        path = checkout / f"{folder}/newstest2014.beam5_fairseq.jsonl"
        rows = path.read_text("utf-8").splitlines()
        _, known, unknown = (json.loads(row)["source_tokens"] for row in rows)
        assert known == ["in", "the"]
        assert len(unknown) > 2
        assert unknown[1].endswith("@@")


def test_stage_targets_of_a_released_model_train_nothing(checkout: Checkout) -> None:
    checkout.configure({"tasks": [TASK, "wmt14_en_de_released"]})
    targets = ["download", "prepare", "align", "train", "evaluate", "figures"]
    done = checkout.snakemake(
        "--dry-run", "--quiet", "reason", "--", *targets
    ).succeeded()
    assert done.planned["import_released"] == 2
    assert done.planned["evaluate_bleu"] == 3
    trained = {"train_model", "binarize", "align_words", "plot_learning_curve"}
    assert not trained & done.planned.keys()
    downloads = {"test-full.tgz", "test-filtered.tgz", "fconv-py.tar.bz2"}
    assert all(any(name in done.said for name in downloads) for name in downloads)
    assert "training-parallel" not in done.said
