"""Training's updates against fairseq's rule, written anew, where the learning rate changes.

fairseq's own updates at one rate are in test_trained_model.py.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from convs2s.config.model import Recipe
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.reference import fairseq
from tests.support.tiny import make_update

MOMENTUM = 0.99
RATES = [0.25, 0.25, 0.025, 0.025, 0.0025]


@pytest.mark.parametrize(
    ("velocity", "least", "most"), [("rescale", 0.0, 1e-12), ("keep", 1e-3, 1.0)]
)
def test_a_rescaled_velocity_is_fairseqs_and_a_kept_one_the_authors(
    folder: Path,
    tmp_path: Path,
    velocity: Literal["rescale", "keep"],
    least: float,
    most: float,
) -> None:
    """fairseq's velocity v is in units of steps and is rescaled with the rate.

    Where r = rate / previous rate, p += momentum^2 r v - (1 + momentum) rate g, then
    v = momentum r v - rate g.
    """
    recipe = Recipe(velocity=velocity)
    assert (recipe.momentum, recipe.clip) == (MOMENTUM, 0.1)
    arrays = fairseq.part(np.load(folder / "golden_forward.npz"), "ragged")
    store = fairseq.write_pairs(tmp_path / "ragged.arrow", arrays)
    network = fairseq.load(folder, torch.float64)
    updater = Updater(network, recipe, seed=1, device="cpu")
    expected = {name: p.detach().clone() for name, p in network.named_parameters()}
    velocities = {name: torch.zeros_like(p) for name, p in expected.items()}
    previous = RATES[0]
    for number, rate in enumerate(RATES):
        make_update(updater, store, np.arange(6), Moment(1, number, rate))
        for name, gradient in fairseq.gradients(network).items():
            v = velocities[name] * (rate / previous)
            expected[name] += MOMENTUM**2 * v - (1 + MOMENTUM) * rate * gradient
            velocities[name] = MOMENTUM * v - rate * gradient
        previous = rate
    differences = [
        float((p.detach() - expected[name]).abs().max())
        for name, p in network.named_parameters()
    ]
    assert least <= max(differences) < most
