"""fairseq's networks over random weights, and its checkpoints of every layout, imported.

What they compute is fairseq's: forward, loss and gradients.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.settings import Settings
from convs2s.data.vocabulary import PADDING
from convs2s.files.text import read_json
from convs2s.interop.checkpoint import Checkpoint, read_checkpoint
from convs2s.interop.fairseq import (
    FairseqFiles,
    architecture_of,
    convert,
    import_fairseq,
    their_name,
    to_our_layout,
)
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.models.convs2s import ConvS2S
from tests.reference import fairseq


@pytest.mark.parametrize(
    ("file", "batch", "dtype", "tolerance"),
    [
        ("golden_forward.npz", "ragged", torch.float32, 1e-4),
        ("golden_forward.npz", "nopad", torch.float32, 1e-4),
        ("golden_forward_f64.npz", "nopad", torch.float64, 1e-9),
    ],
)
def test_forward_and_gradients_are_fairseqs(
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


COMPARED = (
    "encoder.embedding.tokens",
    "encoder.blocks.0.convolution.weight_v",
    "decoder.embedding.tokens",
)


@pytest.mark.parametrize(
    ("checkpoint", "file", "key"),
    [
        ("checkpoint_tiny", "golden_forward", "ragged"),
        ("checkpoint_tiny_oldstyle", "golden_other_checkpoints", "oldstyle.ragged"),
        ("checkpoint_tiny_decoder_v1", "golden_other_checkpoints", "decoder_v1.ragged"),
    ],
)
def test_layouts_import_to_their_logits(
    tmp_path: Path, checkpoint: str, file: str, key: str
) -> None:
    source_types, target_types = (
        fairseq.VECTORS / f"dict.{side}.txt" for side in ("src", "tgt")
    )
    weights = fairseq.VECTORS / f"{checkpoint}.pt"
    files = FairseqFiles(weights, source_types, target_types, None)
    output = tmp_path / "model.safetensors"
    import_fairseq(files, output, task="tiny", languages=None, preparation="moses_test")
    model, description = load_model(output)
    assert description.languages == {"source": "src", "target": "tgt"}
    architecture = description.architecture
    assert isinstance(architecture, ConvS2SArchitecture)
    assert architecture.positions.maximum == 20
    assert architecture.gradient_scaling == "fairseq"
    first = ("<pad>", "</s>", "<unk>", "<s>", "s09")
    assert description.vocabularies()[0].tokens[:5] == first
    source, previous, _ = fairseq.inputs("ragged")
    real = previous != PADDING
    with torch.inference_mode():
        logits, _ = model.eval()(source, previous)
    expected = fairseq.by_our_types(
        np.load(fairseq.VECTORS / f"{file}.npz")[f"{key}.logits"]
    )
    torch.testing.assert_close(logits[real], expected[real], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "name",
    [
        "attn_TFT",
        "attn_last_only",
        "share_embed",
        "encoder_kernels_5_2_4",
        "decoder_kernels_5_2_4",
        "embed_ne_hidden",
    ],
)
def test_other_options_are_fairseqs(name: str) -> None:
    """Attention, kernels, widths and sharing: forward, loss and gradients.

    In float64, as one variant's logits are as large as 24: what differs is fairseq's rounding.
    """
    described: Any = read_json(fairseq.VECTORS / "golden_variants.json")
    golden = fairseq.part(np.load(fairseq.VECTORS / "golden_variants.npz"), name)
    base = read_checkpoint(fairseq.VECTORS / "checkpoint_tiny.pt").arguments
    weights = {
        key: torch.from_numpy(array)
        for key, array in fairseq.part(golden, "model").items()
    }
    checkpoint = Checkpoint(base | described[name]["options"], weights)
    architecture = architecture_of(checkpoint, name)
    model = build_network(architecture, fairseq.TYPES, fairseq.TYPES)
    assert isinstance(model, ConvS2S)
    model.load_state_dict(convert(weights, model, name))
    model.double().eval()
    source, previous, target = fairseq.inputs("ragged")
    logits, attentions = model(source, previous)
    # fairseq's mean over the attending blocks divides by the number of all blocks.
    share = len(attentions) / len(model.decoder.blocks)
    output = (logits, [attention * share for attention in attentions])
    fairseq.assert_same_output(output, source, previous, golden, 1e-4)
    loss = fairseq.summed_loss(model, source, previous, target)
    assert loss.item() == pytest.approx(float(golden["loss_sum"]), rel=1e-4)
    if name != "share_embed":  # its gradients are of two uses of one table
        loss.backward()
        found = fairseq.gradients(model)
        norm = float(golden["grad_norm_of_sum"])
        assert fairseq.norm(found) == pytest.approx(norm, rel=1e-4)
        for parameter in COMPARED:
            fairseq.assert_same_gradient(parameter, found[parameter], golden)


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
