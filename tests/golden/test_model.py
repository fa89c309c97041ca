"""The network against the peer implementation's forward pass and gradients (golden/fairseq)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from convs2s.models.architecture import Architecture, Layer
from convs2s.models.convs2s import ConvS2S

PEER_PADDING = 1
LAYERS = (Layer(32, 3), Layer(32, 3), Layer(24, 1))


def peer_architecture() -> Architecture:
    return Architecture(16, 16, LAYERS, LAYERS, (True,) * 3, 20, 20, 0.0, "py")


def our_names() -> dict[str, str]:
    """Our parameter's name -> the peer's."""
    names = {}
    for side, last in (("encoder", "fc2"), ("decoder", "fc2")):
        names[f"{side}.embedding.words"] = f"{side}.embed_tokens.weight"
        names[f"{side}.embedding.positions"] = f"{side}.embed_positions.weight"
        maps = {"enter": "fc1", "leave": last, "blocks.2.residual": "projections.2"}
        for block in range(3):
            maps[f"blocks.{block}.convolution"] = f"convolutions.{block}"
            if side == "decoder":
                for ours, theirs in (("enter", "in_projection"), ("leave", "out_projection")):
                    maps[f"blocks.{block}.attention.{ours}"] = f"attention.{block}.{theirs}"
        if side == "decoder":
            maps["output"] = "fc3"
        for ours, theirs in maps.items():
            for part, suffix in (
                ("direction", "weight_v"),
                ("gain", "weight_g"),
                ("bias", "bias"),
            ):
                names[f"{side}.{ours}.{part}"] = f"{side}.{theirs}.{suffix}"
    return names


def ours(name: str, array: np.ndarray) -> torch.Tensor:
    """Bring a parameter or gradient of the peer's into our layout."""
    tensor = torch.from_numpy(array)
    if name.endswith("positions"):
        return tensor[PEER_PADDING + 1 :]  # the peer numbers positions from padding + 1
    if name.endswith("gain"):
        return tensor.flatten()
    if "convolution.direction" in name:
        return tensor.permute(2, 0, 1)  # (k, inputs, outputs) -> (outputs, k, inputs)
    return tensor


@pytest.fixture
def peer(shared: Path) -> Path:
    return shared / "golden" / "fairseq"


def load(peer: Path, dtype: torch.dtype) -> ConvS2S:
    model = ConvS2S(peer_architecture(), 48, 48, PEER_PADDING).to(dtype)
    weights = np.load(peer / "checkpoint_tiny_weights.npz")
    state = {name: ours(name, weights[theirs]) for name, theirs in our_names().items()}
    model.load_state_dict(state)
    return model


@pytest.mark.parametrize(
    ("file", "batch", "dtype", "tolerance"),
    [
        ("golden_forward.npz", "ragged", torch.float32, 1e-4),
        ("golden_forward.npz", "nopad", torch.float32, 1e-4),
        ("golden_forward_f64.npz", "nopad", torch.float64, 1e-9),
    ],
)
def test_forward_and_gradients(
    peer: Path, file: str, batch: str, dtype: torch.dtype, tolerance: float
) -> None:
    model = load(peer, dtype)
    golden = {
        name.removeprefix(f"{batch}."): value
        for name, value in np.load(peer / file).items()
        if name.startswith(batch)
    }
    inputs = np.load(peer / "golden_forward.npz")
    source, previous, target = (
        torch.from_numpy(inputs[f"{batch}.{name}"])
        for name in ("src_tokens", "prev_output_tokens", "target")
    )
    real = previous != PEER_PADDING
    source = left_aligned(source)
    logits, attentions = model(source, previous)
    np.testing.assert_allclose(
        logits[real].detach(), golden["logits"][real], atol=tolerance, rtol=0
    )
    mean_attention = torch.stack(attentions).mean(0).detach()
    for row, (sentence, words) in enumerate(
        zip(inputs[f"{batch}.src_tokens"], source, strict=True)
    ):
        count = int((words != PEER_PADDING).sum())
        expected = golden["avg_attn"][row][real[row]][:, sentence != PEER_PADDING]
        np.testing.assert_allclose(
            mean_attention[row][real[row]][:, :count], expected, atol=min(tolerance, 1e-5), rtol=0
        )
    loss = functional.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PEER_PADDING, reduction="sum"
    )
    expected_loss = golden.get("ce.loss_sum", golden.get("loss_sum"))
    assert loss.item() == pytest.approx(float(expected_loss), rel=tolerance)
    loss.backward()
    for name, theirs in our_names().items():
        key = f"grad.{theirs}"
        if key in golden:
            gradient = model.get_parameter(name).grad
            expected = ours(name, golden[key])
            assert gradient is not None
            if name.endswith("embedding.words"):
                gradient[PEER_PADDING] = expected[PEER_PADDING]  # the peer fixes this row
            scale = float(expected.norm())
            assert float((gradient - expected).norm()) <= 1e-4 * scale, name


def left_aligned(source: torch.Tensor) -> torch.Tensor:
    """Move the peer's left padding to the right."""
    rows = [torch.cat([row[row != PEER_PADDING], row[row == PEER_PADDING]]) for row in source]
    return torch.stack(rows)
