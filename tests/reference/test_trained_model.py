"""A trained network against fairseq: outputs, loss, gradients, updates, and a native checkpoint.

No parameter is near its start, and the types are those of real text: what a network of random
weights hides shows here.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.config.model import Recipe
from convs2s.data.vocabulary import PADDING
from convs2s.files.text import read_json
from convs2s.interop.fairseq import their_name
from convs2s.model_file import load_model
from convs2s.models.convs2s import ConvS2S
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.reference import fairseq
from tests.support.golden import TRAINED
from tests.support.tiny import make_update

GOLDEN = dict(np.load(TRAINED / "forward.npz"))
NORMS = read_json(TRAINED / "gradient_norms.json")
SOURCE, PREVIOUS, TARGET = fairseq.sides(GOLDEN)
REAL = PREVIOUS != PADDING
TYPES = 1592


@pytest.fixture
def model(trained: Path) -> ConvS2S:
    network, _ = load_model(trained)
    assert isinstance(network, ConvS2S)
    return network.train()


@torch.inference_mode()
def test_outputs(model: ConvS2S) -> None:
    logits, attentions = model.eval()(SOURCE, PREVIOUS)
    log_sums = logits.logsumexp(2)
    row = fairseq.by_our_types(GOLDEN["logits.row0"])
    chosen = logits.gather(2, TARGET.unsqueeze(2)).squeeze(2) - log_sums
    for ours, theirs in (
        (logits[0][REAL[0]], row[REAL[0]]),
        (log_sums[REAL], torch.from_numpy(GOLDEN["log_sum_exp"])[REAL]),
        (chosen[REAL], torch.from_numpy(GOLDEN["target_log_prob"])[REAL]),
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    best = fairseq.our_indices(GOLDEN["argmax"])
    assert torch.equal(logits.argmax(2)[REAL], best[REAL])
    fairseq.assert_same_attention(attentions, SOURCE, PREVIOUS, GOLDEN)


# fairseq takes the smoothing's mass for the other V - 1 types, we for all V.
@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("kind", "smoothing"), [("ce", 0.0), ("ls0.1", 0.1 * TYPES / (TYPES - 1))]
)
def test_loss_and_gradients(model: ConvS2S, kind: str, smoothing: float) -> None:
    loss = fairseq.summed_loss(model, SOURCE, PREVIOUS, TARGET, smoothing)
    loss.backward()
    gradients = fairseq.gradients(model)
    golden = fairseq.part(GOLDEN, kind)
    assert loss.item() == pytest.approx(float(golden["loss_sum"]), rel=1e-5)
    norm = float(golden["grad_norm_of_sum"])
    assert fairseq.norm(gradients) == pytest.approx(norm, rel=1e-4)
    if kind == "ce":
        norms = {their_name(name): float(one.norm()) for name, one in gradients.items()}
        assert norms == pytest.approx(NORMS, rel=1e-4)
        stored = fairseq.part(GOLDEN, "grad")
        assert len(stored) == 28
        for name, gradient in gradients.items():
            if their_name(name) in stored:
                fairseq.assert_same_gradient(name, gradient, GOLDEN)


@pytest.mark.usefixtures("kernel")
def test_three_updates_are_fairseqs(model: ConvS2S, tmp_path: Path) -> None:
    store = fairseq.write_pairs(tmp_path / "pairs.arrow", GOLDEN)
    golden = fairseq.part(GOLDEN, "nag")
    updater = Updater(model, Recipe(velocity="rescale"), seed=1, device="cpu")
    rows = np.arange(len(store))
    for step in range(3):
        report = make_update(updater, store, rows, Moment(1, step, 0.25))
        assert report.tokens == int(GOLDEN["ntokens"])
        assert report.loss == pytest.approx(float(golden["loss_sum"][step]), rel=1e-4)
        norm = float(golden["grad_norm_before_clip"][step])
        assert report.norm == pytest.approx(norm, rel=1e-3)
    moved = fairseq.part(golden, "step3")
    ours = {
        name: parameter.detach()
        for name, parameter in model.named_parameters()
        if their_name(name) in moved
    }
    theirs = {name: fairseq.to_ours(name, moved[their_name(name)]) for name in ours}
    assert len(ours) == len(moved) == 24
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    after = fairseq.summed_loss(model, SOURCE, PREVIOUS, TARGET).item()
    assert after == pytest.approx(float(golden["loss_sum_after"]), rel=1e-4)
