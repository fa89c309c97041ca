"""Trainings on fairseq's own input, with its settings, end where it ended.

fairseq's figures are those of golden/fairseq_multi30k/scores.json: one run.
Twenty minutes on one core, so it is marked slow.
"""

import json
from pathlib import Path

import pytest
import torch

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.config.model import ModelSettings
from convs2s.data.batches import pad
from convs2s.decoding.search import beam_search
from convs2s.files.text import read_lines
from convs2s.model_file import load_model
from convs2s.models.ensemble import Ensemble
from convs2s.scoring.bleu import detokenized_bleu
from convs2s.text.bpe import join
from convs2s.text.preparation import Preparation
from convs2s.training.run import train
from fairseq_task import prepare_fairseq_task
from tests.support import tiny
from tests.support.fairseq import PERPLEXITY
from workloads import FAIRSEQ

FAIRSEQ_LIMIT = MaximumLength(factor=0.0, offset=200)
"""Of an output's length; how it scores is printed alone (docs/notes/2026-11-21-multi30k.md)."""

SETTINGS = {
    "description": "fairseq's settings",
    "architecture": FAIRSEQ["architecture"],
    "training": {
        # fairseq's 4000, less what it loses by rounding batches down to multiples of 8 sentences:
        # 134 updates an epoch for both.
        "batch": {"sentences": None, "tokens": 3930},
        # 0.25, and 0.025 in the eighth epoch.
        "schedule": {"kind": "step", "hold": 7, "every": 1, "divide_by": 10},
        "velocity": "rescale",
        "maximum_epochs": 8,
        "threads": 1,
        # Within 0.1% of fp32's perplexity (docs/notes/2026-11-21-multi30k.md), in half of its time.
        "precision": "bf16",
    },
}


@pytest.fixture(scope="module")
def task(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = shared / "golden" / "fairseq_multi30k" / "bpe"
    return prepare_fairseq_task(text, tmp_path_factory.mktemp("task"))


def translate(path: Path, sources: list[str], limit: MaximumLength) -> list[str]:
    """Translate tokens by beam 5 up to a length, and return text."""
    network, description = load_model(path)
    given, written = description.vocabularies()
    settings = DecodingSettings(maximum_length=limit)
    ensemble, german = Ensemble([network]), Preparation("moses_test", "de")
    texts = []
    for start in range(0, len(sources), 100):
        rows = [given.encode(line.split()) for line in sources[start : start + 100]]
        for found in beam_search(ensemble, torch.from_numpy(pad(rows)), settings):
            texts.append(
                german.restore(join(" ".join(written.decode(found[0].tokens))))
            )
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eight_epochs_end_where_fairseqs_ended(
    shared: Path, task: Path, tmp_path: Path, seed: int
) -> None:
    folder = shared / "golden" / "fairseq_multi30k"
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, ModelSettings.model_validate(SETTINGS), seed=seed))
    perplexity = json.loads((tmp_path / "training.json").read_text())[
        "validation_perplexity"
    ]
    sources, references = (
        list(read_lines(folder / n)) for n in ("src.bpe.en", "ref.raw.de")
    )
    score, with_fairseqs_limit = (
        detokenized_bleu(translate(model, sources, limit), references)
        for limit in (MaximumLength(), FAIRSEQ_LIMIT)
    )
    print(f"seed {seed}: validation perplexity {perplexity:.2f}, {score}")
    print(f"with fairseq's limit of the length: {with_fairseqs_limit}")
    theirs = json.loads((folder / "scores.json").read_text())["beam5.sacrebleu_detok"][
        0
    ]
    assert perplexity <= 1.05 * PERPLEXITY
    assert score.score >= theirs - 0.5
