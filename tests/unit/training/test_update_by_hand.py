"""Updates against the papers' formulas: for each switch of a recipe, three updates by hand.

The network by hand is tests/support/plain_convs2s.py, whose gradients autograd gives; what becomes
of them is written out here, in float64.
"""

import math
from collections.abc import Callable
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
from convs2s.training.loading import LossInputs
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.plain_convs2s import PlainConvS2S, negative_log_likelihood
from tests.support.updates import make_update

ROWS = np.arange(8)
RATES = (0.1, 0.1, 0.02)
STACK = ("encoder.in_projection", "encoder.blocks", "encoder.out_projection")
ATTENTION_LAYERS = 2

Tensors = dict[str, Tensor]


@pytest.fixture(scope="module")
def data(task: Path) -> TrainingData:
    return TrainingData.read(task)


def made(data: TrainingData, scaling: str) -> Network:
    architecture = tiny.settings(
        {"dropout": 0.0, "gradient_scaling": scaling}
    ).architecture
    torch.manual_seed(3)
    sizes = (len(data.types[side]) + 3 for side in ("source", "target"))
    network = build_network(architecture, *sizes).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            # Else g is the norm of v, and the weight v itself.
            if name.endswith("weight_g"):
                parameter.mul_(1.3)
    return network


# ---- by hand ----


def loss_of(
    weights: Tensors, store: TokenStore, rows: Any, recipe: Recipe, scaling: str
) -> tuple[Tensor, int]:
    """Return the summed loss of some pairs, and their target tokens."""
    factor = 1.0 / (2 * ATTENTION_LAYERS) if scaling == "fairseq" else 1.0
    plain, total, tokens = (
        PlainConvS2S(weights, factor),
        torch.zeros((), dtype=torch.float64),
        0,
    )
    for row in rows:
        source, target = (
            torch.from_numpy(side.astype(np.int64)) for side in store[int(row)]
        )
        # </s>, and all but the last token.
        previous = torch.cat([target[-1:], target[:-1]])
        logits, _ = plain.logits(source, previous)
        total = total + negative_log_likelihood(logits, target, recipe.label_smoothing)
        tokens += len(target)
    return total, tokens


def gradients(weights: Tensors, loss: Tensor, divisor: int, scaling: str) -> Tensors:
    found = torch.autograd.grad(loss / divisor, list(weights.values()))
    by_name = dict(zip(weights, found, strict=True))
    if scaling == "paper":
        for name in by_name:
            if name.startswith(STACK):
                by_name[name] = by_name[name] / ATTENTION_LAYERS
    return by_name


def norm_of(tensors: Tensors) -> float:
    return math.sqrt(sum(tensor.square().sum().item() for tensor in tensors.values()))


Rule = Callable[[Tensor, Tensor, float, float, Tensors], None]
"""Changes a parameter: of it, its gradient, the rate, the one before, and what it remembers."""


def nesterov(momentum: float, velocity: str) -> Rule:
    """Return Nesterov's rule, the velocity in units of steps as in the authors' code."""

    def rule(p: Tensor, g: Tensor, rate: float, before: float, memory: Tensors) -> None:
        step = memory.setdefault("step", torch.zeros_like(p))
        if velocity == "rescale":
            step *= rate / before
        step *= momentum
        step += rate * g
        p -= momentum * step + rate * g

    return rule


def sgd(p: Tensor, g: Tensor, rate: float, before: float, memory: Tensors) -> None:
    p -= rate * g


def adam(p: Tensor, g: Tensor, rate: float, before: float, memory: Tensors) -> None:
    first = memory.setdefault("first", torch.zeros_like(p))
    second = memory.setdefault("second", torch.zeros_like(p))
    count = memory.setdefault("count", torch.zeros(()))
    count += 1
    first *= 0.9
    first += 0.1 * g
    second *= 0.98
    second += 0.02 * g**2
    corrected = first / (1 - 0.9 ** float(count)), second / (1 - 0.98 ** float(count))
    p -= rate * corrected[0] / (corrected[1].sqrt() + 1e-8)


# ---- each switch ----

PLAIN: dict[str, Any] = {"batch": {"sentences": 16}}
SPLIT = {"sentences": 16, "micro_batch_tokens": 24}
CASES: dict[str, tuple[dict[str, Any], Rule, str]] = {
    "the paper's recipe": ({}, nesterov(0.99, "keep"), "paper"),
    "momentum": ({"momentum": 0.5}, nesterov(0.5, "keep"), "paper"),
    "no momentum": ({"momentum": 0.0}, sgd, "paper"),
    "rescaled velocity": ({"velocity": "rescale"}, nesterov(0.99, "rescale"), "paper"),
    "sgd": ({"optimizer": "sgd"}, sgd, "paper"),
    "adam": ({"optimizer": "adam"}, adam, "paper"),
    "label smoothing": ({"label_smoothing": 0.2}, nesterov(0.99, "keep"), "paper"),
    "divided by sentences": (
        {"normalize": "sentences"},
        nesterov(0.99, "keep"),
        "paper",
    ),
    "no clipping": ({"clip": 1e9}, nesterov(0.99, "keep"), "paper"),
    "accumulated": ({"batch": SPLIT, "clip": 1e9}, nesterov(0.99, "keep"), "paper"),
    "accumulated by sentences": (
        {"batch": SPLIT, "normalize": "sentences", "label_smoothing": 0.1},
        nesterov(0.99, "keep"),
        "paper",
    ),
    "fairseq's scaling": ({"clip": 1e9}, nesterov(0.99, "keep"), "fairseq"),
    "no scaling": ({"clip": 1e9}, nesterov(0.99, "keep"), "none"),
}


@pytest.mark.parametrize("case", CASES)
def test_three_updates_are_those_by_hand(data: TrainingData, case: str) -> None:
    changes, rule, scaling = CASES[case]
    recipe = tiny.settings(**{**PLAIN, **changes}).training
    network = made(data, scaling)
    weights = {
        k: p.detach().clone().requires_grad_() for k, p in network.named_parameters()
    }
    memories: dict[str, Tensors] = {name: {} for name in weights}
    updater = Updater(network, recipe, seed=1, device="cpu")
    before, clipped = RATES[0], False
    for number, rate in enumerate(RATES):
        report = make_update(updater, data.train, ROWS, Moment(1, number, rate))
        loss, tokens = loss_of(weights, data.train, ROWS, recipe, scaling)
        divisor = tokens if recipe.normalize == "tokens" else len(ROWS)
        found = gradients(weights, loss, divisor, scaling)
        norm = norm_of(found)
        assert report.tokens == tokens
        assert report.loss == pytest.approx(loss.item(), rel=1e-9)
        assert report.norm == pytest.approx(norm, rel=1e-9)
        clipped |= norm > recipe.clip
        # torch adds 1e-6 to the norm.
        factor = min(1.0, recipe.clip / (norm + 1e-6))
        with torch.no_grad():
            for name, parameter in weights.items():
                rule(parameter, found[name] * factor, rate, before, memories[name])
        before = rate
        for name, parameter in network.named_parameters():
            torch.testing.assert_close(
                parameter.detach(), weights[name].detach(), atol=1e-9, rtol=0, msg=name
            )
    assert clipped == (recipe.clip < 1.0)


def test_validation_is_the_plain_loss_of_each_token(data: TrainingData) -> None:
    """Not smoothed, whatever the recipe says, and a mean over tokens."""
    recipe = tiny.settings(label_smoothing=0.3, normalize="sentences").training
    network = made(data, "paper")
    weights = {name: p.detach() for name, p in network.named_parameters()}
    plain = recipe.model_copy(update={"label_smoothing": 0.0})
    loss, tokens = loss_of(weights, data.valid, range(len(data.valid)), plain, "paper")
    found = Updater(network, recipe, seed=1, device="cpu").validate(data.valid)
    assert found == pytest.approx(loss.item() / tokens, rel=1e-9)


def test_the_tokens_of_the_validation_loss_are_the_targets(
    data: TrainingData, tmp_path: Path
) -> None:
    """The tiny task's sides have the same lengths, so the tokens of either would do there."""
    recipe = tiny.settings().training
    network = made(data, "paper")
    write_store(
        tmp_path / "valid.arrow",
        [([4, 5, 6, 7, 4, END], [5, END]), ([4, END], [6, 5, END])],
    )
    valid = TokenStore(tmp_path / "valid.arrow")
    weights = {name: p.detach() for name, p in network.named_parameters()}
    loss, tokens = loss_of(weights, valid, range(2), recipe, "paper")
    assert tokens == 5
    found = Updater(network, recipe, seed=1, device="cpu").validate(valid)
    assert found == pytest.approx(loss.item() / 5, rel=1e-9)


def test_a_try_that_fails_leaves_no_share_of_the_loss(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, network = tiny.settings(**PLAIN).training, made(data, "paper")
    weights = {name: p.detach() for name, p in network.named_parameters()}
    loss, _ = loss_of(weights, data.train, ROWS, recipe, "paper")
    updater = Updater(network, recipe, seed=1, device="cpu")
    # The whole, then each half.
    add, fits = updater._add_gradient, iter([False, True, False])

    def short_of_memory(inputs: LossInputs, divisor: int) -> Tensor | None:
        return add(inputs, divisor) if next(fits, True) else None

    monkeypatch.setattr(updater, "_add_gradient", short_of_memory)
    started = updater.start(updater.load(data.train, ROWS), Moment(1, 0, 0.1))
    assert next(fits, None) is None
    assert started.loss.dtype == torch.float64
    (report,) = updater.read([started])
    assert report.loss == pytest.approx(loss.item(), rel=1e-9)
