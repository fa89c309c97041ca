"""A model that the workflow trained starts a training on other text, with its own vocabulary.

Blanks in the name of a results folder are ordinary, and a shell would run what is in brackets.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from convs2s.data.vocabulary import read_counts
from convs2s.files.checksums import sha256
from convs2s.model_file import describe_model
from tests.support.checkout import Checkout, Done

pytestmark = pytest.mark.slow

RESULTS = "a b/$(touch ran)"
SCALE = f"description: a copy\nresults_dir: {RESULTS}\ndownloads_dir: d d\n"
BASE = f"{RESULTS}/mine_en_nl/models/small_plateau/seed1/model.safetensors"
START = "data/s p $(touch ran).safetensors"  # outside the results
TUNED = f"{RESULTS}/mine_tuned/models/small_tuned/seed1"
TASK = f"""\
description: a part of the text, with the vocabulary of a model
languages: {{source: en, target: nl}}
corpus:
  train: [{{source: data/mine/valid.en, target: data/mine/valid.nl}}]
  valid: [{{source: data/mine/test.en, target: data/mine/test.nl}}]
  tests:
    test: [{{source: data/mine/test.en, target: data/mine/test.nl}}]
vocabulary_of: "{BASE}"
headline: {{model: small_tuned, seeds: [1], tests: [test], decoding: beam5}}
"""
MODEL = f"""
small_tuned:
  extends: small
  description: small, tuned
  training: {{start: {{from: "{START}", as: initialise}}}}
"""
COMMAND = ("--config", "scale=blanks", "--", f"{TUNED}/model.safetensors")


@pytest.fixture(scope="module")
def tuned(
    first_run: tuple[Checkout, Done], tmp_path_factory: pytest.TempPathFactory
) -> Checkout:
    """The folder after the training on other text, with its results under that name."""
    original, done = first_run
    done.succeeded()
    checkout = original.copy(tmp_path_factory.mktemp("tuned"))
    (checkout / "a b").mkdir()
    (checkout / "results").rename(checkout / RESULTS)
    shutil.copy(checkout / BASE, checkout / START)
    checkout.write("config/scales/blanks.yaml", SCALE)
    checkout.write("config/tasks/mine_tuned.yaml", TASK)
    models = (checkout / "config/models.yaml").read_text("utf-8")
    checkout.write("config/models.yaml", models + MODEL)
    done = checkout.snakemake(*COMMAND).succeeded()
    assert done.planned["train_model"] == 1
    return checkout


def test_a_task_takes_the_vocabulary_of_the_model_it_starts_from(
    tuned: Checkout,
) -> None:
    base = describe_model(tuned / BASE)
    other = describe_model(tuned / TUNED / "model.safetensors")
    assert other.task == "mine_tuned"
    for field in ("source_types", "target_types", "bpe_codes"):
        assert getattr(other, field) == getattr(base, field)
    counts = dict(read_counts(tuned / RESULTS / "mine_tuned/vocabulary/en.tsv"))
    assert list(counts) == base.source_types
    records = json.loads((tuned / TUNED / "training.json").read_text("utf-8"))
    start = {"as": "initialise", "sha256": sha256(tuned / BASE)}
    assert records["manifest"]["identity"]["start"] == start
    assert tuned.snakemake("--dry-run", *COMMAND).nothing_to_do
    # Paths are no part of a shell command.
    assert not list(tuned.folder.rglob("ran"))
    log = tuned / RESULTS / "logs/mine_tuned/small_tuned/seed1/train.log"
    assert log.stat().st_size


@pytest.mark.parametrize(("seconds", "is_seen"), [(1e9, True), (None, False)])
def test_an_older_model_in_place_of_the_one_it_starts_from_is_seen(
    tuned: Checkout, tmp_path: Path, seconds: float | None, is_seen: bool
) -> None:
    checkout = tuned.copy(tmp_path)
    start = checkout / START
    if seconds is None:
        start.touch()
    else:
        shutil.copy(checkout / TUNED / "model.safetensors", start)
        os.utime(start, (seconds, seconds))
    done = checkout.snakemake("--dry-run", *COMMAND)
    assert ("train_model" in done.planned) == is_seen, done.said


@pytest.mark.parametrize(
    ("file", "before", "named", "said"),
    [
        (
            "config/models.yaml",
            START,
            BASE.replace("mine_en_nl", "mine_en_n"),
            "small_tuned: training.start.from: unknown task 'mine_en_n'; did you mean",
        ),
        (
            "config/tasks/mine_tuned.yaml",
            BASE,
            "data/other.safetensors",
            "vocabulary_of: data/other.safetensors: no such file; name a model file",
        ),
    ],
)
def test_a_model_that_is_misspelt_is_named_with_its_key(
    tuned: Checkout, tmp_path: Path, file: str, before: str, named: str, said: str
) -> None:
    checkout = tuned.copy(tmp_path)
    shutil.rmtree(checkout / RESULTS / "mine_tuned")
    stated = checkout / file
    stated.write_text(stated.read_text("utf-8").replace(before, named), "utf-8")
    done = checkout.snakemake("--dry-run", *COMMAND)
    assert done.code == 1
    (error,) = done.errors
    assert error.startswith(f"error: {file}: {said}")
