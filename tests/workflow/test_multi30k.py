"""Multi30k from its archives, generated or real, to a score on the captions of 2016."""

import json
from pathlib import Path
from typing import Any

import pytest

from mirror.sentences import TEST_PAIRS
from tests.support.checkout import Checkout
from tests.support.mirror import DEVICE, QUICK, RESULTS, add_mirror

TASK = "multi30k_en_de"
HEADLINE = {"seeds": [1], "tests": ["test_2016_flickr"]}


def overrides(model: dict[str, Any], **task: Any) -> dict[str, Any]:
    return {"tasks": {TASK: {"headline": HEADLINE, **task}}, "models": {"small": model}}


def score(checkout: Checkout, results: str, lines: int) -> None:
    """Run the task from download to score."""
    checkout.snakemake(f"{results}/{TASK}/bleu.txt").succeeded()
    text = (checkout / f"{results}/{TASK}/bleu.txt").read_text("utf-8")
    assert f"test_2016_flickr: {lines} lines" in text
    scores = json.loads((checkout / f"{results}/{TASK}/bleu.json").read_text("utf-8"))
    assert scores["tests"]["test_2016_flickr"]["lines"] == lines


def test_from_download_to_a_score(checkout: Checkout, mirror: Path) -> None:
    tiny = overrides(QUICK, vocabulary={"merges": 300})
    add_mirror(mirror, checkout).configure({**DEVICE, "overrides": tiny})
    score(checkout, RESULTS, TEST_PAIRS["test_2016_flickr"])
    downloads = checkout.files(f"{RESULTS}/downloads")
    assert len([name for name in downloads if name.endswith(".gz")]) == 6


@pytest.mark.slow
def test_one_epoch_over_all_captions(checkout: Checkout, shared: Path) -> None:
    (checkout.folder.parent / "shared").symlink_to(shared)
    one_epoch = overrides({"training": {"maximum_epochs": 1}})
    machine = {"mirrors": ["../shared/mirror"], "device": "cpu", "cores": 2}
    checkout.configure({**machine, "overrides": one_epoch})
    score(checkout, "results", 1000)
