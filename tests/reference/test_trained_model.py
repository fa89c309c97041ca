"""A trained network against fairseq: outputs, loss, gradients, updates, and a native checkpoint.

No parameter is near its start, and the types are those of real text: what a network of random
weights hides shows here.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.config.model import Recipe
from convs2s.data.vocabulary import PADDING
from convs2s.interop.fairseq import FairseqFiles, import_fairseq, their_name
from convs2s.model_file import load_model
from convs2s.models.convs2s import ConvS2S
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.support import fairseq
from tests.support.trained import TRAINED, import_trained
from tests.support.updates import make_update

GOLDEN = dict(np.load(TRAINED / "forward.npz"))
NORMS = json.loads((TRAINED / "gradient_norms.json").read_text("utf-8"))
SOURCE, PREVIOUS, TARGET = fairseq.sides(GOLDEN)
REAL = PREVIOUS != PADDING
TYPES = 1592


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file, without dropout, as fairseq computed all this."""
    return import_trained(tmp_path_factory.mktemp("trained"), dropout=0.0)


@pytest.fixture
def model(imported: Path) -> ConvS2S:
    network, _ = load_model(imported)
    assert isinstance(network, ConvS2S)
    return network.train()


@torch.inference_mode()
def test_outputs(model: ConvS2S) -> None:
    logits, attentions = model.eval()(SOURCE, PREVIOUS)
    assert logits.shape[2] == TYPES
    row = fairseq.by_our_types(GOLDEN["logits.row0"])
    torch.testing.assert_close(logits[0][REAL[0]], row[REAL[0]], atol=1e-4, rtol=0)
    sums = torch.from_numpy(GOLDEN["log_sum_exp"])
    torch.testing.assert_close(logits.logsumexp(2)[REAL], sums[REAL], atol=1e-4, rtol=0)
    predictions = logits.log_softmax(2).gather(2, TARGET.unsqueeze(2)).squeeze(2)
    expected = torch.from_numpy(GOLDEN["target_log_prob"])
    torch.testing.assert_close(predictions[REAL], expected[REAL], atol=1e-4, rtol=0)
    assert torch.equal(
        logits.argmax(2)[REAL], fairseq.our_indices(GOLDEN["argmax"])[REAL]
    )
    fairseq.assert_same_attention(
        attentions, SOURCE, PREVIOUS, GOLDEN["avg_attn"], 1e-5
    )


# fairseq takes the smoothing's mass for the other V - 1 types, we for all V.
@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("kind", "smoothing"), [("ce", 0.0), ("ls0.1", 0.1 * TYPES / (TYPES - 1))]
)
def test_loss_and_gradient_norm(model: ConvS2S, kind: str, smoothing: float) -> None:
    loss = fairseq.summed_loss(model, SOURCE, PREVIOUS, TARGET, smoothing)
    loss.backward()
    norm = fairseq.norm(fairseq.gradients(model))
    assert int((TARGET != PADDING).sum()) == int(GOLDEN["ntokens"])
    assert loss.item() == pytest.approx(float(GOLDEN[f"{kind}.loss_sum"]), rel=1e-5)
    assert norm == pytest.approx(float(GOLDEN[f"{kind}.grad_norm_of_sum"]), rel=1e-4)


def test_every_gradient_of_the_summed_loss(model: ConvS2S) -> None:
    fairseq.summed_loss(model, SOURCE, PREVIOUS, TARGET).backward()
    gradients = fairseq.gradients(model)
    norms = {
        their_name(name): float(gradient.norm()) for name, gradient in gradients.items()
    }
    assert norms == pytest.approx(NORMS, rel=1e-4)
    stored = fairseq.part(GOLDEN, "grad")
    assert len(stored) == 28
    for name, gradient in gradients.items():
        if their_name(name) in stored:
            fairseq.assert_same_gradient(name, gradient, GOLDEN)


@pytest.mark.usefixtures("kernel")
def test_three_updates_are_fairseqs(model: ConvS2S, tmp_path: Path) -> None:
    store = fairseq.write_pairs(tmp_path / "pairs.arrow", GOLDEN)
    recipe = Recipe(velocity="rescale")
    assert (recipe.momentum, recipe.clip) == (0.99, 0.1)
    updater = Updater(model, recipe, seed=1, device="cpu")
    for step in range(3):
        report = make_update(
            updater, store, np.arange(len(store)), Moment(1, step, 0.25)
        )
        assert report.tokens == int(GOLDEN["ntokens"])
        assert report.loss == pytest.approx(
            float(GOLDEN["nag.loss_sum"][step]), rel=1e-4
        )
        norm = float(GOLDEN["nag.grad_norm_before_clip"][step])
        assert report.norm == pytest.approx(norm, rel=1e-3)
    moved = fairseq.part(GOLDEN, "nag.step3")
    parameters = {their_name(name): name for name, _ in model.named_parameters()}
    assert len(moved) == 24
    for theirs, array in moved.items():
        ours = model.get_parameter(parameters[theirs]).detach()
        expected = fairseq.to_ours(parameters[theirs], array)
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)
    after = fairseq.summed_loss(model, SOURCE, PREVIOUS, TARGET).item()
    assert after == pytest.approx(float(GOLDEN["nag.loss_sum_after"]), rel=1e-4)


def test_a_checkpoint_of_fairseq_train_imports_to_its_logits(tmp_path: Path) -> None:
    files = FairseqFiles(
        TRAINED / "checkpoint_tiny.pt",
        TRAINED / "tiny.dict.en.txt",
        TRAINED / "tiny.dict.fr.txt",
        TRAINED / "tiny.codes.1000",
    )
    path = tmp_path / "model.safetensors"
    import_fairseq(files, path, task="demo", languages=None, preparation="moses_test")
    network, description = load_model(path)
    assert description.languages == {"source": "en", "target": "fr"}
    golden = dict(np.load(TRAINED / "tiny_forward.npz"))
    source, previous, _ = fairseq.sides(golden)
    with torch.inference_mode():
        output = network.eval()(source, previous)
    fairseq.assert_same_output(output, source, previous, golden, 1e-4)
