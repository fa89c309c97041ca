"""Checkpoints of fairseq's of every layout, imported: their logits are fairseq's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.data.vocabulary import PADDING
from convs2s.errors import UserError
from convs2s.interop.checkpoint import Checkpoint, read_checkpoint
from convs2s.interop.fairseq import (
    FairseqFiles,
    architecture_of,
    convert,
    import_fairseq,
)
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.models.network import Network
from tests.support import fairseq

LAYOUTS = [
    ("checkpoint_tiny.pt", "golden_forward.npz", "ragged.logits"),
    (
        "checkpoint_tiny_oldstyle.pt",
        "golden_other_checkpoints.npz",
        "oldstyle.ragged.logits",
    ),
    (
        "checkpoint_tiny_decoder_v1.pt",
        "golden_other_checkpoints.npz",
        "decoder_v1.ragged.logits",
    ),
]
VARIANTS = [
    "attn_TFT",
    "attn_last_only",
    "share_embed",
    "encoder_kernels_5_2_4",
    "decoder_kernels_5_2_4",
    "embed_ne_hidden",
]


def check_logits(
    model: Network, folder: Path, expected: npt.NDArray[np.float32]
) -> None:
    """Compare the logits of the batch ``ragged`` where there is a token to predict from."""
    source, previous, _ = fairseq.inputs(folder, "ragged")
    real = previous != PADDING
    with torch.inference_mode():
        logits, _ = model.eval()(source, previous)
    theirs = fairseq.by_our_types(expected).to(logits.dtype)
    torch.testing.assert_close(logits[real], theirs[real], atol=1e-4, rtol=0)


@pytest.mark.parametrize(("checkpoint", "file", "key"), LAYOUTS)
def test_layouts_import_to_their_logits(
    folder: Path, tmp_path: Path, checkpoint: str, file: str, key: str
) -> None:
    dictionaries = folder / "dict.src.txt", folder / "dict.tgt.txt"
    output = tmp_path / "model.safetensors"
    files = FairseqFiles(folder / checkpoint, *dictionaries, None)
    import_fairseq(files, output, task="tiny", languages=None, preparation="moses_test")
    model, description = load_model(output)
    assert description.languages == {"source": "src", "target": "tgt"}
    assert isinstance(description.architecture, ConvS2SArchitecture)
    assert description.architecture.positions.maximum == 20
    assert description.architecture.gradient_scaling == "fairseq"
    assert description.vocabularies()[0].tokens[:5] == (
        "<pad>",
        "</s>",
        "<unk>",
        "<s>",
        "s09",
    )
    check_logits(model, folder, np.load(folder / file)[key])


def test_codes_that_do_not_make_the_vocabulary_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    source, target = folder / "dict.src.txt", folder / "dict.tgt.txt"
    codes, output = tmp_path / "codes", tmp_path / "model.safetensors"
    codes.write_text("#version: 0.2\na b</w>\n")
    options: dict[str, Any] = {
        "task": "tiny",
        "languages": None,
        "preparation": "moses_test",
    }
    files = FairseqFiles(folder / "checkpoint_tiny.pt", source, target, codes)
    with pytest.raises(
        UserError, match=r"codes: cannot have made the vocabulary in .*dict\.src\.txt"
    ):
        import_fairseq(files, output, **options)
    parts = tmp_path / "dict.parts.txt"
    parts.write_text(source.read_text("utf-8").replace("s09 ", "s09@@ "))
    files = FairseqFiles(folder / "checkpoint_tiny.pt", parts, target, None)
    with pytest.raises(
        UserError, match=r"dict\.parts\.txt: has parts of words .@@.: give --bpe-codes"
    ):
        import_fairseq(files, output, **options)


def variant(folder: Path, name: str) -> tuple[Checkpoint, dict[str, Any]]:
    """Return a network of other options as a checkpoint, and what fairseq computed with it."""
    base = read_checkpoint(folder / "checkpoint_tiny.pt").arguments
    options = json.loads((folder / "golden_variants.json").read_text("utf-8"))[name][
        "options"
    ]
    arrays = fairseq.part(np.load(folder / "golden_variants.npz"), name)
    weights = {
        key: torch.from_numpy(array)
        for key, array in fairseq.part(arrays, "model").items()
    }
    return Checkpoint(base | options, weights), arrays


@pytest.mark.parametrize("name", VARIANTS)
def test_other_options_import_to_their_logits(folder: Path, name: str) -> None:
    checkpoint, arrays = variant(folder, name)
    model = build_network(
        architecture_of(checkpoint, name), fairseq.TYPES, fairseq.TYPES
    )
    model.load_state_dict(convert(checkpoint.weights, model, name))
    # In float64, as one variant's logits are as large as 24: what differs is fairseq's rounding.
    check_logits(model.double(), folder, arrays["logits"])


def test_residual_connections_that_skip_layers_are_refused(folder: Path) -> None:
    checkpoint, _ = variant(folder, "residual_0_1_2")
    with pytest.raises(
        UserError,
        match=r"layers: expected .* because layers without a residual connection",
    ):
        architecture_of(checkpoint, "model.pt")


def test_copies_of_weights_that_some_versions_left_behind_are_no_matter(
    folder: Path,
) -> None:
    checkpoint = read_checkpoint(folder / "checkpoint_tiny.pt")
    copy = {"decoder.convolutions.0._linearized_weight": torch.zeros(64, 96)}
    model = build_network(
        architecture_of(checkpoint, "tiny"), fairseq.TYPES, fairseq.TYPES
    )
    expected = convert(checkpoint.weights, model, "tiny")
    found = convert(checkpoint.weights | copy, model, "tiny")
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    with pytest.raises(UserError, match=r"it has 'decoder\.version2'"):
        convert(
            checkpoint.weights | {"decoder.version2": torch.zeros(1)}, model, "tiny"
        )
