"""The network against fairseq's variants: attention, kernels, widths, residuals, sharing."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support import fairseq, variants


def test_every_variant_is_tested(folder: Path) -> None:
    described = json.loads((folder / "golden_variants.json").read_text())
    assert set(variants.ARCHITECTURES) == {
        k for k, v in described.items() if isinstance(v, dict)
    }
    assert len(variants.ARCHITECTURES) == 7


@pytest.mark.parametrize("name", variants.ARCHITECTURES)
def test_forward_and_gradients(folder: Path, name: str) -> None:
    golden = fairseq.part(np.load(folder / "golden_variants.npz"), name)
    model = variants.load(golden, name)
    source, previous, target = fairseq.inputs(folder, "ragged")
    logits, attentions = model(source, previous)
    # fairseq's mean over the attending blocks divides by the number of all blocks.
    blocks = len(variants.ARCHITECTURES[name].attends)
    summands = [attention * (len(attentions) / blocks) for attention in attentions]
    fairseq.assert_same_output((logits, summands), source, previous, golden, 1e-4)
    loss = fairseq.summed_loss(model, source, previous, target)
    assert loss.item() == pytest.approx(float(golden["loss_sum"]), rel=1e-4)
    loss.backward()
    found = variants.gradients(name, model)
    assert fairseq.norm(found) == pytest.approx(
        float(golden["grad_norm_of_sum"]), rel=1e-4
    )
    for parameter in (
        "encoder.embedding.tokens",
        "encoder.blocks.0.convolution.weight_v",
        "decoder.embedding.tokens",
    ):
        fairseq.assert_same_gradient(parameter, found[parameter], golden)
