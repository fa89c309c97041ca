"""Trainings on fairseq's own tokens, with its settings, end where it ended.

A minute a seed on one core for ours, and twenty for Multi30k, so they are marked slow.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.config.decoding import DecodingSettings
from convs2s.config.model import ModelSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_json, read_lines, write_lines
from convs2s.models.kernels.matmul import Kernel
from convs2s.scoring.bleu import corpus_bleu
from convs2s.text.bpe import Bpe, join, read_codes
from convs2s.text.preparation import Preparation
from convs2s.training.history import read_history
from convs2s.training.run import train
from fairseq_task import prepare_fairseq_task
from tests.support import tiny
from tests.support.golden import DATA, TRAINED, golden_lines
from workloads import FAIRSEQ

PERPLEXITY = 14.98
"""Of fairseq's Multi30k model after eight epochs, without the six longest pairs."""

BAND: Any = read_json(TRAINED / "band.json")
TINY = yaml.safe_load("""
embedding: 64
output_embedding: 64
encoder: &blocks [{layers: 2, width: 64, kernel: 3}]
decoder: *blocks
positions: {maximum: 80}
dropout: 0.1
gradient_scaling: fairseq
""")
DEVIATIONS = 3


def settings(architecture: object, epochs: int, **training: Any) -> ModelSettings:
    stated = {"maximum_epochs": epochs, **training}
    content = {"description": "", "architecture": architecture, "training": stated}
    return ModelSettings.model_validate(content)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_three_epochs_stay_within_fairseqs_band(
    tmp_path: Path, seed: int, kernel: Kernel
) -> None:
    bpe = Bpe(read_codes(TRAINED / "tiny.codes.1000"))
    for language, name in (("en", "en"), ("fr", "de")):  # the task's target side
        lines = golden_lines(DATA / "bpe", f"train.tok.{language}")
        write_lines(tmp_path / f"train.{name}", map(bpe.split, lines))
        lines = golden_lines(DATA / "tok", f"tok-a.2017.{language}")
        write_lines(tmp_path / f"val.{name}", map(bpe.split, lines[500:1000]))
    task = prepare_fairseq_task(tmp_path, tmp_path / "task")
    given = settings(TINY, 3, schedule={"kind": "step", "hold": 3})
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, given, seed=seed, products=kernel))
    epochs = read_history(tmp_path / "history.jsonl").epochs
    assert [epoch.updates for epoch in epochs] == [188, 376, 564]
    for ours, theirs in zip(epochs, BAND["by_epoch"], strict=True):
        deviation = abs(ours.valid_perplexity - theirs["mean_perplexity"])
        assert deviation <= DEVIATIONS * theirs["deviation"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eight_epochs_on_multi30k_end_where_fairseqs_ended(
    shared: Path, tmp_path: Path, seed: int
) -> None:
    folder = shared / "golden/fairseq_multi30k"
    task = prepare_fairseq_task(folder / "bpe", tmp_path / "task")
    given = settings(
        FAIRSEQ["architecture"],
        8,
        # fairseq's 4000, less what it loses by rounding batches down to multiples of 8 sentences:
        # 134 updates an epoch for both.
        batch={"sentences": None, "tokens": 3930},
        # 0.25, and 0.025 in the eighth epoch.
        schedule={"kind": "step", "hold": 7, "every": 1, "divide_by": 10},
        velocity="rescale",
        threads=1,
        # Within 0.1% of fp32's perplexity (docs/notes/2026-11-21-multi30k.md), in half of its time.
        precision="bf16",
    )
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, given, seed=seed))
    translator = LineTranslator([model], DecodingSettings(), "cpu", pretokenized=True)
    restore = Preparation("moses_test", "de").restore
    found = translator.translate(read_lines(folder / "src.bpe.en"))
    texts = [restore(join(one.text)) for one in found]
    reference = list(read_lines(folder / "ref.raw.de"))
    score = corpus_bleu(texts, reference, form="13a").score
    summary: Any = read_json(tmp_path / "training.json")
    perplexity = summary["validation_perplexity"]
    print(f"seed {seed}: perplexity {perplexity:.2f}, BLEU {score}")
    theirs: Any = read_json(folder / "scores.json")
    assert perplexity <= 1.05 * PERPLEXITY
    assert score >= theirs["beam5.sacrebleu_detok"][0] - 0.5
