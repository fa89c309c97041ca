"""Checkpoints of fairseq's of every layout, imported: what they compute is fairseq's."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.data.vocabulary import PADDING
from convs2s.interop.checkpoint import Checkpoint, read_checkpoint
from convs2s.interop.fairseq import (
    FairseqFiles,
    architecture_of,
    convert,
    import_fairseq,
)
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from tests.reference import fairseq


@pytest.mark.parametrize(
    ("checkpoint", "file", "key"),
    [
        ("checkpoint_tiny", "golden_forward", "ragged"),
        ("checkpoint_tiny_oldstyle", "golden_other_checkpoints", "oldstyle.ragged"),
        ("checkpoint_tiny_decoder_v1", "golden_other_checkpoints", "decoder_v1.ragged"),
    ],
)
def test_layouts_import_to_their_logits(
    folder: Path, tmp_path: Path, checkpoint: str, file: str, key: str
) -> None:
    dictionaries = folder / "dict.src.txt", folder / "dict.tgt.txt"
    files = FairseqFiles(folder / f"{checkpoint}.pt", *dictionaries, None)
    output = tmp_path / "model.safetensors"
    import_fairseq(files, output, task="tiny", languages=None, preparation="moses_test")
    model, description = load_model(output)
    assert description.languages == {"source": "src", "target": "tgt"}
    stated = description.architecture.model_dump()
    assert stated["positions"]["maximum"] == 20
    assert stated["gradient_scaling"] == "fairseq"
    first = ("<pad>", "</s>", "<unk>", "<s>", "s09")
    assert description.vocabularies()[0].tokens[:5] == first
    source, previous, _ = fairseq.inputs(folder, "ragged")
    real = previous != PADDING
    with torch.inference_mode():
        logits, _ = model.eval()(source, previous)
    expected = fairseq.by_our_types(np.load(folder / f"{file}.npz")[f"{key}.logits"])
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
def test_other_options_are_fairseqs(folder: Path, name: str) -> None:
    """Attention, kernels, widths and sharing.

    In float64, as one variant's logits are as large as 24: what differs is fairseq's rounding.
    """
    described = json.loads((folder / "golden_variants.json").read_text("utf-8"))
    golden = fairseq.part(np.load(folder / "golden_variants.npz"), name)
    base = read_checkpoint(folder / "checkpoint_tiny.pt").arguments
    arrays = fairseq.part(golden, "model")
    weights = {key: torch.from_numpy(array) for key, array in arrays.items()}
    checkpoint = Checkpoint(base | described[name]["options"], weights)
    architecture = architecture_of(checkpoint, name)
    model = build_network(architecture, fairseq.TYPES, fairseq.TYPES)
    model.load_state_dict(convert(weights, model, name))
    source, previous, _ = fairseq.inputs(folder, "ragged")
    real = previous != PADDING
    logits, _ = model.double().eval()(source, previous)
    expected = fairseq.by_our_types(golden["logits"]).double()
    torch.testing.assert_close(logits[real], expected[real], atol=1e-4, rtol=0)
