"""The golden vectors of tests/reference/data on a device: how far from fairseq's they are."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from convs2s.config.model import Recipe
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.search import beam_search
from convs2s.interop.fairseq import their_name
from convs2s.models.ensemble import Ensemble
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from workloads import ROOT

sys.path.insert(0, str(ROOT))  # the tests' own reading of the vectors
from tests.reference import fairseq

RATE = 0.25

BOUNDS = {"logits": 1e-4, "gradient": 2e-4, "updates": 1e-4, "scores": 1e-4}
"""What another order of sums may change in float32; updates magnify it."""


def golden_figures(device: str) -> dict[str, float | int | bool]:
    """Return the largest differences from fairseq's vectors in float32, without TF32.

    ``logits``, ``scores`` of hypotheses and parameters after three ``updates`` differ by numbers, a
    ``gradient`` by the share of its norm. ``hypotheses`` counts those that are fairseq's, of
    ``of_hypotheses``; ``holds`` says whether all are, and no difference is beyond ``BOUNDS``.
    """
    with without_tf32():
        logits, gradient = np.max(
            [forward(device, batch) for batch in fairseq.BATCHES], axis=0
        )
        found = {
            "logits": float(logits),
            "gradient": float(gradient),
            "updates": updates(device),
        }
        searched = [
            search(device, batch, name)
            for batch in fairseq.BATCHES
            for name in fairseq.SEARCHES
        ]
    same, total = (sum(column) for column in list(zip(*searched, strict=True))[:2])
    found["scores"] = max(difference for _, _, difference in searched)
    holds = same == total and all(
        found[name] <= bound for name, bound in BOUNDS.items()
    )
    return {**found, "hypotheses": same, "of_hypotheses": total, "holds": holds}


@contextmanager
def without_tf32() -> Iterator[None]:
    """Multiply float32 by all of its bits in the block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def forward(device: str, batch: str) -> tuple[float, float]:
    """Return the differences of a batch's logits and gradient."""
    arrays = fairseq.part(np.load(fairseq.VECTORS / "golden_forward.npz"), batch)
    model = fairseq.load().to(device)
    source, previous, target = (one.to(device) for one in fairseq.inputs(batch))
    real = (previous != PADDING).cpu()
    logits = model(source, previous)[0].detach().cpu()[real]
    difference = (logits - fairseq.by_our_types(arrays["logits"])[real]).abs().max()
    fairseq.summed_loss(model, source, previous, target).backward()
    shares = []
    for name, gradient in fairseq.gradients(model).items():
        theirs = fairseq.to_ours(name, arrays[f"grad.{their_name(name)}"])
        shares.append(float((gradient.cpu() - theirs).norm() / theirs.norm()))
    return float(difference), max(shares)


def updates(device: str) -> float:
    """Return the difference of the parameters after fairseq's three updates."""
    golden = np.load(fairseq.VECTORS / "golden_forward.npz")
    with tempfile.TemporaryDirectory() as folder:
        store = fairseq.write_pairs(
            Path(folder) / "pairs.arrow", fairseq.part(golden, "ragged")
        )
        updater = Updater(
            fairseq.load(), Recipe(velocity="rescale"), seed=1, device=device
        )
        for step in range(3):
            loaded = updater.load(store, np.arange(len(store)))
            updater.start(loaded, Moment(1, step, RATE))
    return max(
        float((parameter.detach().cpu() - moved(golden, name)).abs().max())
        for name, parameter in updater.network.named_parameters()
    )


def moved(golden: fairseq.Arrays, name: str) -> torch.Tensor:
    """Return a parameter after fairseq's third update."""
    return fairseq.to_ours(name, golden[f"nag.step3.{their_name(name)}"])


def search(device: str, batch: str, name: str) -> tuple[int, int, float]:
    """Return how many hypotheses are fairseq's, of how many, and the difference of the scores."""
    theirs = fairseq.generation(batch, name)
    model = fairseq.load().to(device).eval()
    found = beam_search(Ensemble([model]), theirs.source, theirs.settings)
    same = total = 0
    difference = 0.0
    for hypotheses, tokens, scores in zip(
        found, theirs.tokens, theirs.scores, strict=True
    ):
        total += len(tokens)
        same += sum(
            [*one.tokens, END] == other
            for one, other in zip(hypotheses, tokens, strict=False)
        )
        pairs = zip(hypotheses, scores, strict=False)
        difference = max(
            [difference, *(abs(one.score - score) for one, score in pairs)]
        )
    return same, total, float(difference)
