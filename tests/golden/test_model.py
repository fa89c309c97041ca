"""The network against the peer implementation's forward pass and gradients (golden/fairseq)."""

from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.data.vocabulary import PADDING
from convs2s.training.cross_entropy import summed_cross_entropy
from tests.golden import peer

CASES = [
    ("golden_forward.npz", "ragged", torch.float32, 1e-4),
    ("golden_forward.npz", "nopad", torch.float32, 1e-4),
    ("golden_forward_f64.npz", "nopad", torch.float64, 1e-9),
]


@pytest.fixture
def folder(shared: Path) -> Path:
    return shared / "golden" / "fairseq"


@pytest.mark.parametrize(("file", "batch", "dtype", "tolerance"), CASES)
def test_forward_and_gradients(
    folder: Path, file: str, batch: str, dtype: torch.dtype, tolerance: float
) -> None:
    model = peer.load(folder, dtype)
    golden = np.load(folder / file)
    source, previous, target = peer.inputs(folder, batch)
    real = previous != PADDING
    logits, attentions = model(source, previous)

    expected = torch.from_numpy(golden[f"{batch}.logits"])[:, :, peer.PEER_INDEX]
    torch.testing.assert_close(logits[real], expected[real], atol=tolerance, rtol=0)

    mean_attention = torch.stack(attentions).mean(0)
    theirs = torch.from_numpy(golden[f"{batch}.avg_attn"])
    for row, words in enumerate((source != PADDING).sum(1).tolist()):
        torch.testing.assert_close(
            mean_attention[row, real[row], :words],
            theirs[row, real[row], theirs.shape[2] - words :],  # padded on the left
            atol=min(tolerance, 1e-5),
            rtol=0,
        )

    output = model.output
    loss = summed_cross_entropy(
        model.features(source, previous)[real], output.weight(), output.bias, target[real]
    )
    key = "loss_sum" if dtype == torch.float64 else "ce.loss_sum"
    assert loss.item() == pytest.approx(float(golden[f"{batch}.{key}"]), rel=tolerance)
    loss.backward()
    for name, their_name in peer.parameter_names().items():
        gradient = model.get_parameter(name).grad
        assert gradient is not None
        expected = peer.to_ours(name, golden[f"{batch}.grad.{their_name}"])
        if name.endswith("embedding.words"):
            gradient[PADDING] = expected[PADDING]  # the peer keeps this row at zero
        assert float((gradient - expected).norm()) <= 1e-4 * float(expected.norm()), name
