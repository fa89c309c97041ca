"""Trainings on fairseq's own input, with its settings, end where it ended.

fairseq's figures are those of golden/README.md and golden/fairseq_multi30k/scores.json: one run.
Twenty minutes on one core, so it is marked slow.
"""

import json
from pathlib import Path

import pytest
import torch

from convs2s.config import decoding_defaults
from convs2s.config_schema import schema, with_defaults
from convs2s.data.batches import pad
from convs2s.decoding.search import SearchOptions, beam_search
from convs2s.files import read_lines
from convs2s.model_file import load_model
from convs2s.models.ensemble import Ensemble
from convs2s.scoring.bleu import detokenized_bleu
from convs2s.text.bpe import join
from convs2s.text.preparation import Preparation
from convs2s.training.run import TrainingJob, train
from peer_task import prepare_peer
from tests.support.fairseq import PERPLEXITY
from workloads import PEER

PEER_LIMIT = {"factor": 0.0, "offset": 200}
"""Of an output's length; how it scores is printed alone (docs/benchmarks.md)."""

SETTINGS = {
    "description": "fairseq's settings",
    "architecture": PEER["architecture"],
    "training": {
        # fairseq's 4000, less what it loses by rounding batches down to multiples of 8 sentences:
        # 134 updates an epoch for both.
        "batch": {"sentences": None, "words": 3930},
        # 0.25, and 0.025 in the eighth epoch.
        "schedule": {"kind": "step", "hold": 7, "every": 1, "divide_by": 10},
        "velocity": "rescale",
        "maximum_epochs": 8,
        "threads": 1,
        # Within 0.1% of fp32's perplexity (docs/benchmarks.md), in half of its time.
        "precision": "bf16",
    },
}


@pytest.fixture(scope="module")
def task(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = shared / "golden" / "fairseq_multi30k" / "bpe"
    return prepare_peer(text, tmp_path_factory.mktemp("task"))


def translate(path: Path, sources: list[str], limit: dict[str, float]) -> list[str]:
    """Translate tokens by beam 5 up to a length, and return text."""
    network, description = load_model(path)
    given, written = description.source_vocabulary(), description.target_vocabulary()
    options = SearchOptions.from_settings(decoding_defaults() | {"maximum_length": limit})
    ensemble, german = Ensemble([network]), Preparation("moses_test", "de")
    texts = []
    for start in range(0, len(sources), 100):
        rows = [given.encode(line.split()) for line in sources[start : start + 100]]
        for found in beam_search(ensemble, torch.from_numpy(pad(rows)), options):
            texts.append(german.restore(join(" ".join(written.decode(found[0].tokens)))))
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eight_epochs_end_where_the_peers_ended(
    shared: Path, task: Path, tmp_path: Path, seed: int
) -> None:
    peer = shared / "golden" / "fairseq_multi30k"
    filled = with_defaults(SETTINGS, schema("model"))
    settings = {key: filled[key] for key in ("architecture", "training")}
    model = tmp_path / "model.safetensors"
    train(TrainingJob(task, settings, seed, model, None, "cpu", 1))
    perplexity = json.loads((tmp_path / "training.json").read_text())["validation_perplexity"]
    sources, references = (list(read_lines(peer / n)) for n in ("src.bpe.en", "ref.raw.de"))
    score, with_peers_limit = (
        detokenized_bleu(translate(model, sources, limit), references)
        for limit in (decoding_defaults()["maximum_length"], PEER_LIMIT)
    )
    print(f"seed {seed}: validation perplexity {perplexity:.2f}, {score}")
    print(f"with fairseq's limit of the length: {with_peers_limit}")
    theirs = json.loads((peer / "scores.json").read_text())["beam5.sacrebleu_detok"][0]
    assert perplexity <= 1.05 * PERPLEXITY
    assert score.score >= theirs - 0.5
