"""Trainings on fairseq's own tokens, with its settings, end where it ended.

A minute on one core for ours, and twenty a seed for Multi30k, so they are marked slow.
"""

import json
from pathlib import Path

import pytest
import yaml

from convs2s.config.decoding import DecodingSettings
from convs2s.config.model import ModelSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_lines, write_lines
from convs2s.models.kernels.matmul import Kernel
from convs2s.scoring.bleu import corpus_bleu
from convs2s.text.bpe import Bpe, join, read_codes
from convs2s.text.preparation import Preparation
from convs2s.training.run import train
from fairseq_task import prepare_fairseq_task
from tests.support import tiny
from tests.support.golden import DATA, golden_lines
from tests.support.trained import TRAINED
from workloads import FAIRSEQ

PERPLEXITY = 14.98
"""Of fairseq's Multi30k model after eight epochs, without the six longest pairs."""

BAND = json.loads((TRAINED / "band.json").read_text("utf-8"))["by_epoch"]
DEVIATIONS = 3

TINY = yaml.safe_load("""
description: ""
architecture:
  embedding: 64
  output_embedding: 64
  encoder: [{layers: 2, width: 64, kernel: 3}]
  decoder: [{layers: 2, width: 64, kernel: 3}]
  positions: {maximum: 80}
  dropout: 0.1
  gradient_scaling: fairseq
training:
  maximum_epochs: 3
  schedule: {kind: step, hold: 3}
""")

# fairseq's 4000 tokens, less what it loses by rounding batches down to multiples of 8 sentences:
# 134 updates an epoch for both. The rate is 0.25, and 0.025 in the eighth epoch. bf16 is within
# 0.1% of fp32's perplexity (docs/notes/2026-11-21-multi30k.md), in half of its time.
MULTI30K = yaml.safe_load("""
maximum_epochs: 8
batch: {sentences: null, tokens: 3930}
schedule: {kind: step, hold: 7, every: 1, divide_by: 10}
velocity: rescale
threads: 1
precision: bf16
""")


@pytest.mark.slow
def test_three_epochs_stay_within_fairseqs_band(tmp_path: Path, kernel: Kernel) -> None:
    bpe = Bpe(read_codes(TRAINED / "tiny.codes.1000"))
    for language, name in (("en", "en"), ("fr", "de")):  # the task's target side
        lines = golden_lines(DATA / "bpe", f"train.tok.{language}")
        write_lines(tmp_path / f"train.{name}", map(bpe.split, lines))
        lines = golden_lines(DATA / "tok", f"tok-a.2017.{language}")
        write_lines(tmp_path / f"val.{name}", map(bpe.split, lines[500:1000]))
    task = prepare_fairseq_task(tmp_path, tmp_path / "task")
    given = ModelSettings.model_validate(TINY)
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, given, products=kernel))
    rows = map(json.loads, read_lines(tmp_path / "history.jsonl"))
    epochs = [row for row in rows if "epoch" in row]  # the last row says why it ended
    assert [epoch["updates"] for epoch in epochs] == [188, 376, 564]
    for ours, theirs in zip(epochs, BAND, strict=True):
        band = DEVIATIONS * theirs["deviation"]
        expected = pytest.approx(theirs["mean_perplexity"], abs=band)
        assert ours["valid_perplexity"] == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eight_epochs_on_multi30k_end_where_fairseqs_ended(
    shared: Path, tmp_path: Path, seed: int
) -> None:
    folder = shared / "golden" / "fairseq_multi30k"
    task = prepare_fairseq_task(folder / "bpe", tmp_path / "task")
    stated = {"description": "", "architecture": FAIRSEQ["architecture"]}
    given = ModelSettings.model_validate({**stated, "training": MULTI30K})
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, given, seed=seed))
    summary = json.loads((tmp_path / "training.json").read_text())
    perplexity = summary["validation_perplexity"]
    translator = LineTranslator([model], DecodingSettings(), "cpu", pretokenized=True)
    restore = Preparation("moses_test", "de").restore
    found = translator.translate(read_lines(folder / "src.bpe.en"))
    texts = [restore(join(one.text)) for one in found]
    reference = list(read_lines(folder / "ref.raw.de"))
    score = corpus_bleu(texts, reference, form="13a").score
    print(f"seed {seed}: perplexity {perplexity:.2f}, BLEU {score}")
    theirs = json.loads((folder / "scores.json").read_text())
    assert perplexity <= 1.05 * PERPLEXITY
    assert score >= theirs["beam5.sacrebleu_detok"][0] - 0.5
