"""A model that the workflow trained starts a training on other text, with its own vocabulary."""

import json
import shutil

from convs2s.data.vocabulary import read_counts
from convs2s.files.checksums import sha256
from convs2s.model_file import describe_model
from tests.support.checkout import Checkout

BASE = "results/mine_en_nl/models/small/seed1/model.safetensors"
TUNED = "results/mine_tuned/models/small_tuned/seed1"
TASK = f"""\
description: a part of the text, with the vocabulary of a model
languages: {{source: en, target: nl}}
corpus:
  train: [{{source: data/mine/valid.en, target: data/mine/valid.nl}}]
  valid: [{{source: data/mine/test.en, target: data/mine/test.nl}}]
  tests:
    test: [{{source: data/mine/test.en, target: data/mine/test.nl}}]
vocabulary_of: {BASE}
headline: {{model: small_tuned, seeds: [1], tests: [test], decoding: beam5}}
"""
MODEL = f"""
small_tuned:
  extends: small
  description: small, tuned
  training: {{start: {{from: {BASE}, as: initialise}}}}
"""


def test_a_task_takes_the_vocabulary_of_the_model_it_starts_from(finished: Checkout) -> None:
    finished.write("config/tasks/mine_tuned.yaml", TASK)
    models = (finished / "config/models.yaml").read_text("utf-8")
    finished.write("config/models.yaml", models + MODEL)
    done = finished.snakemake(f"{TUNED}/model.safetensors")
    assert done.code == 0, done.said
    base, tuned = (describe_model(finished / path) for path in (BASE, f"{TUNED}/model.safetensors"))
    assert (tuned.source_types, tuned.target_types) == (base.source_types, base.target_types)
    assert tuned.bpe_codes == base.bpe_codes
    counts = dict(read_counts(finished / "results/mine_tuned/vocabulary/en.tsv"))
    assert list(counts) == base.source_types
    records = json.loads((finished / TUNED / "training.json").read_text("utf-8"))
    start = {"as": "initialise", "sha256": sha256(finished / BASE)}
    assert records["manifest"]["identity"]["start"] == start
    assert finished.snakemake("--dry-run", f"{TUNED}/model.safetensors").nothing_to_do


def test_paths_are_no_part_of_a_shell_command(finished: Checkout) -> None:
    """Blanks in the names of a results folder and of a model are ordinary, and nothing is run."""
    results, base = "a b/$(touch ran_1)", "data/s p $(touch ran_2).safetensors"
    (finished / "a b").mkdir()
    finished.folder.joinpath("results").rename(finished / results)
    shutil.copy(
        finished / results / "mine_en_nl/models/small/seed1/model.safetensors", finished / base
    )
    scale = f"description: a copy\nresults_dir: {results}\ndownloads_dir: d d\n"
    finished.write("config/scales/blanks.yaml", scale)
    models = (finished / "config/models.yaml").read_text("utf-8")
    finished.write("config/models.yaml", models + MODEL.replace(BASE, f'"{base}"'))
    finished.write("config/tasks/mine_tuned.yaml", TASK.replace(BASE, f'"{base}"'))
    model = f"{results}/mine_tuned/models/small_tuned/seed1/model.safetensors"
    done = finished.snakemake("--config", "scale=blanks", "shards=1", "--", model)
    assert done.code == 0, done.said
    assert not list(finished.folder.rglob("ran_*"))
    assert describe_model(finished / model).task == "mine_tuned"
    assert (finished / results / "logs/mine_tuned/small_tuned/seed1/train.log").stat().st_size
