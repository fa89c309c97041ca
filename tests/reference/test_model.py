"""The network against fairseq: forward, loss, gradients, over random weights, and its names."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.config.settings import Settings
from convs2s.interop.checkpoint import Checkpoint
from convs2s.interop.fairseq import architecture_of, their_name, to_our_layout
from convs2s.models.build import build_network, shapes_alone
from tests.reference import fairseq


def test_forward_and_gradients(folder: Path) -> None:
    """In float64, as exact as numbers are; float32 is in test_interop.py."""
    model = fairseq.load(folder, torch.float64)
    golden = fairseq.part(np.load(folder / "golden_forward_f64.npz"), "nopad")
    source, previous, target = fairseq.inputs(folder, "nopad")
    output = model(source, previous)
    fairseq.assert_same_output(output, source, previous, golden, 1e-9)
    loss = fairseq.summed_loss(model, source, previous, target)
    assert loss.item() == pytest.approx(float(golden["loss_sum"]), rel=1e-9)
    loss.backward()
    for name, gradient in fairseq.gradients(model).items():
        fairseq.assert_same_gradient(name, gradient, golden)


def test_released_architectures_have_the_parameters_of_ours(
    shared: Path, settings: Settings
) -> None:
    """By name those of each imported one, and by shape those of the papers' settings."""
    path = shared / "golden/fairseq/fconv_state_dict_keys.json"
    known = json.loads(path.read_text("utf-8"))
    assert len(known) == 5
    for name, entry in known.items():
        with shapes_alone():
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
