"""From a mirror's archives of real text to a score on its 1,000 captions of 2016."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import own_pair
from tests.support.checkout import Checkout

TASK = "multi30k_en_de"
HEADLINE = {"seeds": [1], "tests": ["test_2016_flickr"]}


@pytest.fixture
def mirrored(checkout: Checkout, shared: Path) -> Checkout:
    """A checkout beside the shared folder, whose mirror stands for the network."""
    (checkout.folder.parent / "shared").symlink_to(shared)
    return checkout


def score(checkout: Checkout, task: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    """Run the task from download to score, and give back what it scored."""
    overrides = {"tasks": {TASK: {"headline": HEADLINE, **task}}, "models": {"small": model}}
    mirrors = {"mirrors": ["../shared/mirror"], "device": "cpu", "cores": 2}
    checkout.configure({**mirrors, "overrides": overrides})
    done = checkout.snakemake(f"results/{TASK}/bleu.txt")
    assert done.code == 0, done.said
    text = (checkout / f"results/{TASK}/bleu.txt").read_text("utf-8")
    assert "test_2016_flickr: 1000 lines" in text
    scores = json.loads((checkout / f"results/{TASK}/bleu.json").read_text("utf-8"))
    result: dict[str, Any] = scores["tests"]["test_2016_flickr"]
    return result


def test_from_download_to_a_score(mirrored: Checkout) -> None:
    # The captions of 2017 stand for the 29 times larger training text.
    base = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
    few = {
        side: f"{base}/test_2017_flickr.{lang}.gz"
        for side, lang in (("source", "en"), ("target", "de"))
    }
    task = {"corpus": {"train": [few]}, "vocabulary": {"merges": 300}}
    result = score(mirrored, task, own_pair.TINY)
    assert result["lines"] == 1000
    downloads = mirrored.files("results/downloads")
    assert len([name for name in downloads if name.endswith(".gz")]) == 6


@pytest.mark.slow
def test_one_epoch_over_all_captions(mirrored: Checkout) -> None:
    result = score(mirrored, {}, {"training": {"maximum_epochs": 1}})
    assert result["lines"] == 1000
