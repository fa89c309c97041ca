"""Training's updates against fairseq's over random weights."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from convs2s.config.model import Recipe
from convs2s.data.store import TokenStore
from convs2s.interop.fairseq import their_name
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.support import fairseq
from tests.support.updates import make_update

RATE, MOMENTUM, CLIP = 0.25, 0.99, 0.1
BATCH = np.arange(6)

Velocity = Literal["rescale", "keep"]
VELOCITIES: tuple[Velocity, ...] = ("rescale", "keep")


def updater(
    folder: Path, dtype: torch.dtype = torch.float32, velocity: Velocity = "rescale"
) -> Updater:
    """Return an updater of the tiny model by the paper's recipe."""
    recipe = Recipe(velocity=velocity)
    assert (recipe.momentum, recipe.clip) == (MOMENTUM, CLIP)
    return Updater(fairseq.load(folder, dtype), recipe, seed=1, device="cpu")


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> TokenStore:
    """The golden batch ``ragged``."""
    arrays = fairseq.part(np.load(folder / "golden_forward.npz"), "ragged")
    return fairseq.write_pairs(tmp_path / "ragged.arrow", arrays)


def first_step(
    golden: fairseq.Arrays, weights: fairseq.Arrays, theirs: str
) -> npt.NDArray[Any]:
    """Return a parameter of fairseq's after its first update, from fairseq's own gradients.

    ``nag.step1`` of the golden file cannot tell: it holds the arrays of ``nag.step3``.
    """
    gradient = golden[f"ragged.grad.{theirs}"] / golden["ragged.ntokens"]
    clipped = gradient * CLIP / golden["nag.grad_norm_before_clip"][0]
    moved: npt.NDArray[Any] = weights[theirs] - RATE * (1 + MOMENTUM) * clipped
    return moved


@pytest.mark.usefixtures("kernel")
def test_three_updates_are_fairseqs(folder: Path, store: TokenStore) -> None:
    golden = np.load(folder / "golden_forward.npz")
    weights = np.load(folder / "checkpoint_tiny_weights.npz")
    ours = updater(folder)
    for step in range(3):
        report = make_update(ours, store, BATCH, Moment(1, step, RATE))
        assert report.tokens == int(golden["ragged.ntokens"])
        assert report.loss == pytest.approx(
            float(golden["nag.loss_sum"][step]), rel=1e-4
        )
        # An update magnifies rounding: after one, float64 is 4e-5 to 3e-4 from fairseq's float32.
        expected_norm = float(golden["nag.grad_norm_before_clip"][step])
        assert report.norm == pytest.approx(expected_norm, rel=1e-3 if step else 1e-4)
        for name, parameter in ours.network.named_parameters():
            theirs = their_name(name)
            if step == 0:
                moved = first_step(golden, weights, theirs)
            elif step == 2:
                moved = golden[f"nag.step3.{theirs}"]
            else:
                continue
            expected = fairseq.to_ours(name, moved).to(parameter.dtype)
            torch.testing.assert_close(parameter.detach(), expected, atol=1e-5, rtol=0)


def fairseq_updates(
    gradients: list[dict[str, Tensor]], rates: list[float], start: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Return the parameters after fairseq's updates with these gradients and learning rates.

    Its velocity v is in units of steps and is rescaled with the rate: where r = rate / previous
    rate, p += momentum^2 r v - (1 + momentum) rate g, then v = momentum r v - rate g.
    """
    found = {name: tensor.clone() for name, tensor in start.items()}
    velocity = {name: torch.zeros_like(tensor) for name, tensor in start.items()}
    previous = rates[0]
    for gradient, rate in zip(gradients, rates, strict=True):
        for name, g in gradient.items():
            v = velocity[name] * (rate / previous)
            found[name] += MOMENTUM**2 * v - (1 + MOMENTUM) * rate * g
            velocity[name] = MOMENTUM * v - rate * g
        previous = rate
    return found


def test_rescaled_velocity_is_fairseqs_at_a_change_of_the_rate(
    folder: Path, store: TokenStore
) -> None:
    rates = [0.25, 0.25, 0.025, 0.025, 0.0025]
    differ = {}
    for velocity in VELOCITIES:
        ours = updater(folder, torch.float64, velocity)
        start = {
            name: p.detach().clone() for name, p in ours.network.named_parameters()
        }
        gradients = []
        for number, rate in enumerate(rates):
            make_update(ours, store, BATCH, Moment(1, number, rate))
            clipped = fairseq.gradients(ours.network)
            gradients.append({name: g.clone() for name, g in clipped.items()})
        expected = fairseq_updates(gradients, rates, start)
        differ[velocity] = max(
            float((tensor - expected[name]).abs().max())
            for name, tensor in ours.network.state_dict().items()
        )
    assert differ["rescale"] < 1e-12
    assert differ["keep"] > 1e-3  # the authors' code, and the paper's recipe here
