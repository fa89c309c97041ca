"""The network against fairseq: forward, loss, gradients, over random weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.config.settings import Settings
from convs2s.files.text import read_json
from convs2s.interop.checkpoint import Checkpoint
from convs2s.interop.fairseq import architecture_of, their_name, to_our_layout
from convs2s.models.build import build_network
from tests.reference import fairseq


@pytest.mark.parametrize(
    ("file", "batch", "dtype", "tolerance"),
    [
        ("golden_forward.npz", "ragged", torch.float32, 1e-4),
        ("golden_forward.npz", "nopad", torch.float32, 1e-4),
        ("golden_forward_f64.npz", "nopad", torch.float64, 1e-9),
    ],
)
def test_forward_and_gradients(
    file: str, batch: str, dtype: torch.dtype, tolerance: float
) -> None:
    model = fairseq.load(dtype)
    golden = fairseq.part(np.load(fairseq.VECTORS / file), batch)
    source, previous, target = fairseq.inputs(batch)
    output = model(source, previous)
    fairseq.assert_same_output(output, source, previous, golden, tolerance)
    loss = fairseq.summed_loss(model, source, previous, target)
    key = "loss_sum" if dtype == torch.float64 else "ce.loss_sum"
    assert loss.item() == pytest.approx(float(golden[key]), rel=tolerance)
    loss.backward()
    for name, gradient in fairseq.gradients(model).items():
        fairseq.assert_same_gradient(name, gradient, golden)


def test_released_architectures_have_the_parameters_of_ours(
    shared: Path, settings: Settings
) -> None:
    """By name those of each imported one, and by shape those of the papers' settings."""
    known: Any = read_json(shared / "golden/fairseq/fconv_state_dict_keys.json")
    assert len(known) == 5
    for name, entry in known.items():
        with torch.device("meta"):
            weights = {
                key: torch.empty(shape) for key, shape in entry["state_dict"].items()
            }
            types = len(weights["encoder.embed_tokens.weight"])
            architecture = architecture_of(Checkpoint(entry["args"], weights), name)
            network = build_network(architecture, types, types)
            names = {their_name(ours) for ours, _ in network.named_parameters()}
            assert names == weights.keys() - set(entry["buffers"]), name
            if name in settings.models:
                architecture = settings.models[name].architecture
                network = build_network(architecture, types, types)
                for ours, parameter in network.named_parameters():
                    theirs = to_our_layout(ours, weights[their_name(ours)])
                    assert theirs.shape == parameter.shape
