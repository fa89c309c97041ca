"""Updates against the papers' formulas: for each switch of a recipe, some updates by hand.

The network by hand is tests/reference/plain_convs2s.py, whose gradients autograd gives. What
becomes of them is written out here, in float64. fairseq's own updates at one rate are in
test_trained_model.py.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.config.model import Recipe
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END
from convs2s.models.build import build_network
from convs2s.models.network import Network
from convs2s.training.data import TrainingData
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.reference.plain_convs2s import (
    ENCODER_STACK,
    PlainConvS2S,
    negative_log_likelihood,
    weights_of,
)
from tests.support import tiny
from tests.support.tiny import make_update, short_of_memory

ROWS = np.arange(8)
RATES = (0.1, 0.1, 0.01, 0.01, 0.001)
ATTENTION_LAYERS = 2

Tensors = dict[str, Tensor]


@pytest.fixture(scope="module")
def train(task: Path) -> TokenStore:
    return TrainingData.read(task).train


def made(scaling: str = "paper") -> Network:
    changes = {"dropout": 0.0, "gradient_scaling": scaling}
    torch.manual_seed(3)
    network = build_network(tiny.settings(changes).architecture, 15, 15).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            # Else g is the norm of v, and the weight v itself.
            if name.endswith("weight_g"):
                parameter.mul_(1.3)
    return network


def loss_of(
    weights: Tensors,
    store: TokenStore,
    rows: Any,
    smoothing: float = 0.0,
    scaling: str = "paper",
) -> tuple[Tensor, int]:
    """Return the summed loss of some pairs, and their target tokens."""
    factor = 1.0 / (2 * ATTENTION_LAYERS) if scaling == "fairseq" else 1.0
    plain = PlainConvS2S(weights, factor)
    total = torch.zeros((), dtype=torch.float64)
    tokens = 0
    for row in rows:
        source, target = (
            torch.from_numpy(side.astype(np.int64)) for side in store[int(row)]
        )
        # </s>, and all but the last token.
        previous = torch.cat([target[-1:], target[:-1]])
        logits, _ = plain.logits(source, previous)
        total = total + negative_log_likelihood(logits, target, smoothing)
        tokens += len(target)
    return total, tokens


def change(
    p: Tensor, g: Tensor, rate: float, before: float, memory: Tensors, recipe: Recipe
) -> None:
    """Change a parameter by its gradient; ``before`` is the rate of the update before."""
    if recipe.optimizer == "sgd":
        p -= rate * g
    elif recipe.optimizer == "nesterov":
        # The velocity is in units of steps as in the authors' code. fairseq rescales it.
        step = memory.setdefault("step", torch.zeros_like(p))
        if recipe.velocity == "rescale":
            step *= rate / before
        step *= recipe.momentum
        step += rate * g
        p -= recipe.momentum * step + rate * g
    else:
        first = memory.setdefault("first", torch.zeros_like(p))
        second = memory.setdefault("second", torch.zeros_like(p))
        count = memory.setdefault("count", torch.zeros(()))
        count += 1
        first += 0.1 * (g - first)
        second += 0.02 * (g**2 - second)
        mean = first / (1 - 0.9 ** float(count))
        square = second / (1 - 0.98 ** float(count))
        p -= rate * mean / (square.sqrt() + 1e-8)


SPLIT = {"sentences": 16, "micro_batch_tokens": 24}


@pytest.mark.parametrize(
    ("changes", "scaling"),
    [
        ({}, "paper"),
        ({"momentum": 0.5}, "paper"),
        ({"velocity": "rescale"}, "paper"),
        ({"optimizer": "sgd"}, "paper"),
        ({"optimizer": "adam"}, "paper"),
        ({"label_smoothing": 0.2}, "paper"),
        ({"normalize": "sentences"}, "paper"),
        ({"normalize": "sentences", "label_smoothing": 0.1, "batch": SPLIT}, "paper"),
        ({"clip": 1e9}, "fairseq"),
        ({"clip": 1e9}, "none"),
    ],
)
def test_updates_are_those_by_hand(
    train: TokenStore, changes: dict[str, Any], scaling: str
) -> None:
    recipe = tiny.settings(**changes).training
    network = made(scaling)
    weights = weights_of(network)
    memories: dict[str, Tensors] = {name: {} for name in weights}
    updater = Updater(network, recipe, seed=1, device="cpu")
    before = RATES[0]
    clipped = False
    tolerance = 1e-9 if recipe.optimizer == "adam" else 1e-12
    for number, rate in enumerate(RATES):
        report = make_update(updater, train, ROWS, Moment(1, number, rate))
        loss, tokens = loss_of(weights, train, ROWS, recipe.label_smoothing, scaling)
        divisor = tokens if recipe.normalize == "tokens" else len(ROWS)
        gradients = torch.autograd.grad(loss / divisor, list(weights.values()))
        found = dict(zip(weights, gradients, strict=True))
        for name in found:
            if scaling == "paper" and name.startswith(ENCODER_STACK):
                found[name] = found[name] / ATTENTION_LAYERS
        norm = math.sqrt(sum(float(one.square().sum()) for one in found.values()))
        assert report.tokens == tokens
        assert report.loss == pytest.approx(loss.item(), rel=1e-9)
        assert report.norm == pytest.approx(norm, rel=1e-9)
        clipped |= norm > recipe.clip
        # torch adds 1e-6 to the norm.
        factor = min(1.0, recipe.clip / (norm + 1e-6))
        with torch.no_grad():
            for name, parameter in weights.items():
                gradient = found[name] * factor
                change(parameter, gradient, rate, before, memories[name], recipe)
        before = rate
        torch.testing.assert_close(
            dict(network.named_parameters()), weights, atol=tolerance, rtol=0
        )
    assert clipped == (recipe.clip < 1.0)


def test_validation_is_the_mean_loss_of_the_targets_tokens_without_smoothing(
    tmp_path: Path,
) -> None:
    recipe = tiny.settings(label_smoothing=0.3, normalize="sentences").training
    pairs = [([4, 5, 6, 7, 4, END], [5, END]), ([4, END], [6, 5, END])]
    write_store(tmp_path / "valid.arrow", pairs)
    valid = TokenStore(tmp_path / "valid.arrow")
    network = made()
    loss, _ = loss_of(weights_of(network), valid, range(2))
    found = Updater(network, recipe, seed=1, device="cpu").validate(valid)
    assert found == pytest.approx(loss.item() / 5, rel=1e-9)


def test_a_try_that_fails_leaves_no_share_of_the_loss(train: TokenStore) -> None:
    network = made()
    loss, _ = loss_of(weights_of(network), train, ROWS)
    updater = Updater(network, tiny.settings().training, seed=1, device="cpu")
    # The whole, then each half.
    with short_of_memory(False, True, False):
        report = make_update(updater, train, ROWS, Moment(1, 0, 0.1))
    assert report.loss == pytest.approx(loss.item(), rel=1e-9)
