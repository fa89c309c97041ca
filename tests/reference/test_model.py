"""The network against fairseq: forward, loss, gradients, over random weights."""

from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.config.load import load
from convs2s.data.vocabulary import PADDING
from convs2s.models.build import build_network
from tests.support import fairseq

CASES = [
    ("golden_forward.npz", "ragged", torch.float32, 1e-4),
    ("golden_forward.npz", "nopad", torch.float32, 1e-4),
    ("golden_forward_f64.npz", "nopad", torch.float64, 1e-9),
]


@pytest.mark.parametrize(("file", "batch", "dtype", "tolerance"), CASES)
def test_forward_and_gradients(
    folder: Path, file: str, batch: str, dtype: torch.dtype, tolerance: float
) -> None:
    model = fairseq.load(folder, dtype)
    golden = fairseq.part(np.load(folder / file), batch)
    source, previous, target = fairseq.inputs(folder, batch)
    fairseq.assert_same_output(
        model(source, previous), source, previous, golden, tolerance
    )
    loss = fairseq.summed_loss(model, source, previous, target)
    key = "loss_sum" if dtype == torch.float64 else "ce.loss_sum"
    assert loss.item() == pytest.approx(float(golden[key]), rel=tolerance)
    loss.backward()
    for name, gradient in fairseq.gradients(model).items():
        fairseq.assert_same_gradient(name, gradient, golden)


@pytest.mark.parametrize("batch", ["ragged", "nopad"])
def test_smoothed_loss_and_its_gradients_norm(folder: Path, batch: str) -> None:
    # fairseq takes the smoothing's mass for the other V - 1 types, we for all V: its 0.1 is
    # our 0.1 V / (V - 1).
    smoothing = 0.1 * fairseq.TYPES / (fairseq.TYPES - 1)
    model = fairseq.load(folder)
    golden = fairseq.part(np.load(folder / "golden_forward.npz"), batch)
    source, previous, target = fairseq.inputs(folder, batch)
    loss = fairseq.summed_loss(model, source, previous, target, smoothing)
    loss.backward()
    norm = fairseq.norm(fairseq.gradients(model))
    tokens = int((target != PADDING).sum())
    assert loss.item() == pytest.approx(float(golden["ls0.1.loss_sum"]), rel=1e-4)
    for value, key in (norm, "grad_norm_of_sum"), (norm / tokens, "grad_norm_of_mean"):
        assert value == pytest.approx(float(golden[f"ls0.1.{key}"]), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("fconv_wmt_en_fr", 258_111_616),
        ("fconv_wmt_en_de", 209_569_920),
        ("fconv_wmt_en_ro", 137_144_448),
    ],
)
def test_number_of_parameters_of_the_released_architectures(
    root: Path, name: str, parameters: int
) -> None:
    types = 40_000  # fairseq's count is of as many on both sides
    with torch.device("meta"):
        model = build_network(load(root).model(name).architecture, types, types)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
