"""A model that the workflow trained starts a training on other text, with its own vocabulary.

Blanks in the name of a results folder are ordinary, and a shell would run what is in brackets.
"""

import os
import shutil
from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from convs2s.model_file import describe_model
from tests.support.checkout import Checkout

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
  extends: small_plateau
  description: small, tuned
  training: {{start: {{from: "{START}", as: initialise}}}}
"""
COMMAND = ("--config", "scale=blanks", "--", f"{TUNED}/model.safetensors")


@pytest.mark.slow
def test_a_task_takes_the_vocabulary_of_the_model_it_starts_from(
    finished: Checkout,
) -> None:
    (finished / "a b").mkdir()
    (finished / "results").rename(finished / RESULTS)
    start = Path(shutil.copy(finished / BASE, finished / START))
    finished.write("config/scales/blanks.yaml", SCALE)
    finished.write("config/tasks/mine_tuned.yaml", TASK)
    models = finished.read("config/models.yaml")
    finished.write("config/models.yaml", models + MODEL)
    done = finished.snakemake(*COMMAND).succeeded()
    assert done.planned["train_model"] == 1
    base = describe_model(finished / BASE)
    model = finished / TUNED / "model.safetensors"
    other = describe_model(model)
    assert other.task == "mine_tuned"
    for field in ("source_types", "target_types", "bpe_codes"):
        assert getattr(other, field) == getattr(base, field)
    records = finished.json(f"{TUNED}/training.json")
    stated = {"as": "initialise", "sha256": sha256(finished / BASE)}
    assert records["manifest"]["identity"]["start"] == stated
    # Paths are no part of a shell command.
    assert not list(finished.folder.rglob("ran"))
    log = finished / RESULTS / "logs/mine_tuned/small_tuned/seed1/train.log"
    assert log.stat().st_size
    # Another time is no other model, and one in its place is seen though it is older.
    start.touch()
    assert finished.snakemake("--dry-run", *COMMAND).nothing_to_do
    shutil.copy(model, start)
    os.utime(start, (1e9, 1e9))
    assert "train_model" in finished.snakemake("--dry-run", *COMMAND).planned
    shutil.rmtree(finished / RESULTS / "mine_tuned")
    misspelt = BASE.replace("mine_en_nl", "mine_en_n")
    finished.write("config/models.yaml", models + MODEL.replace(START, misspelt))
    (error,) = finished.snakemake("--dry-run", *COMMAND).errors
    place = "error: config/models.yaml: small_tuned: training.start.from"
    assert error.startswith(f"{place}: unknown task 'mine_en_n'; did you mean")
    finished.write("config/models.yaml", models + MODEL)
    finished.write("config/tasks/mine_tuned.yaml", TASK.replace(BASE, "data/other"))
    (error,) = finished.snakemake("--dry-run", *COMMAND).errors
    said = "vocabulary_of: data/other: no such file; name a model file"
    assert error.startswith(f"error: config/tasks/mine_tuned.yaml: {said}")
