"""Trainings on the peer implementation's own input, with its settings, end where it ended.

The peer's figures are those of golden/README.md and golden/fairseq_multi30k/scores.json: one run.
As single runs lie more than 1 BLEU apart, by a few translations that repeat themselves without end,
the mean of three seeds is held to them. Half an hour on two cores, so it is marked slow.
"""

import json
from pathlib import Path
from statistics import fmean

import pytest
import torch

from convs2s.config_schema import schema, with_defaults
from convs2s.data.batches import pad
from convs2s.data.dataset import binarise, build_vocabulary
from convs2s.data.word_counts import count_words
from convs2s.decoding.search import SearchOptions, beam_search
from convs2s.files import read_lines
from convs2s.model_file import load_model
from convs2s.models.ensemble import Ensemble
from convs2s.scoring.bleu import detokenized_bleu
from convs2s.text.bpe import join
from convs2s.text.preparation import Preparation
from convs2s.training.run import TrainingJob, train

PEER_PERPLEXITY = 14.98
"""The peer's validation perplexity after its eight epochs."""

SETTINGS = {
    "description": "the peer's settings",
    "architecture": {
        "embedding": 256,
        "output_embedding": 256,
        "encoder": [{"layers": 4, "width": 256, "kernel": 3}],
        "decoder": [{"layers": 3, "width": 256, "kernel": 3}],
        "dropout": 0.2,
        "gradient_scaling": "py",
    },
    "training": {
        # The peer's 4000, less what it loses by rounding batches down to multiples of 8 sentences:
        # 134 updates an epoch for both.
        "batch": {"sentences": None, "words": 3880},
        # 0.25, and 0.025 in the eighth epoch.
        "schedule": {"kind": "step", "hold": 7, "every": 1, "divide_by": 10},
        "velocity": "rescale",
        "maximum_epochs": 8,
        "threads": 1,
        # Within 0.05% of fp32's perplexity (docs/benchmarks.md), in half of its time.
        "precision": "bf16",
    },
}

SEEDS = (1, 2, 3)


def prepare(text: Path, folder: Path) -> Path:
    """Make token stores of the peer's text, whose pieces are taken as words."""
    vocabulary = with_defaults({"kind": "word"}, schema("task")["properties"]["vocabulary"])
    languages = {"source": "en", "target": "de"}
    facts = {"task": "peer", "languages": languages, "preparation": "moses_test"}
    tables = folder / "vocabulary" / "en.tsv", folder / "vocabulary" / "de.tsv"
    for language, table in zip(("en", "de"), tables, strict=True):
        count_words(read_lines(text / f"train.{language}"), folder / "words.tsv")
        build_vocabulary(folder / "words.tsv", None, table, vocabulary, None)
    for split, name in (("train", "train"), ("valid", "val")):
        corpus = text / f"{name}.en", text / f"{name}.de"
        outputs = folder / "dataset" / f"{split}.arrow", folder / "dataset" / f"{split}.json"
        binarise(corpus, (None, None), tables, outputs, {**facts, "vocabulary": vocabulary})
    return folder


def translate(path: Path, sources: list[str]) -> list[str]:
    """Translate pieces by beam 5, and return text."""
    network, description = load_model(path)
    given, written = description.source_vocabulary(), description.target_vocabulary()
    options = SearchOptions.from_settings(with_defaults({}, schema("decoding")))
    ensemble, german = Ensemble([network]), Preparation("moses_test", "de")
    texts = []
    for start in range(0, len(sources), 100):
        rows = [given.encode(line.split()) for line in sources[start : start + 100]]
        for found in beam_search(ensemble, torch.from_numpy(pad(rows)), options):
            texts.append(german.restore(join(" ".join(written.decode(found[0].symbols)))))
    return texts


def train_and_score(task: Path, peer: Path, folder: Path, seed: int) -> tuple[float, float]:
    """Return a training's validation perplexity and its BLEU on the test set."""
    filled = with_defaults(SETTINGS, schema("model"))
    settings = {key: filled[key] for key in ("architecture", "training")}
    model = folder / "model.safetensors"
    train(TrainingJob(task, settings, seed, model, None, "cpu", 1))
    perplexity = json.loads((folder / "training.json").read_text())["validation_perplexity"]
    hypotheses = translate(model, list(read_lines(peer / "src.bpe.en")))
    score = detokenized_bleu(hypotheses, list(read_lines(peer / "ref.raw.de")))
    print(f"seed {seed}: validation perplexity {perplexity:.2f}, {score}")
    return perplexity, score.score


@pytest.mark.slow
def test_eight_epochs_end_where_the_peers_ended(shared: Path, tmp_path: Path) -> None:
    peer = shared / "golden" / "fairseq_multi30k"
    task = prepare(peer / "bpe", tmp_path / "task")
    runs = [train_and_score(task, peer, tmp_path / f"seed{seed}", seed) for seed in SEEDS]
    perplexity, bleu = (fmean(values) for values in zip(*runs, strict=True))
    theirs = json.loads((peer / "scores.json").read_text())["beam5.sacrebleu_detok"][0]
    assert perplexity <= 1.05 * PEER_PERPLEXITY
    assert bleu >= theirs - 0.5
