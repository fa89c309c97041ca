"""Checkpoints and dictionaries of fairseq's that no model here can be."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.interop.checkpoint import Checkpoint, read_checkpoint
from convs2s.interop.fairseq import (
    FairseqFiles,
    architecture_of,
    convert,
    import_fairseq,
)
from tests.reference import fairseq
from tests.support.golden import DATA
from tests.support.refusals import refusal, says

FOLDER = DATA / "fairseq_random"
CHECKPOINT = FOLDER / "checkpoint_tiny.pt"


@pytest.mark.parametrize(
    ("codes", "word", "words"),
    [
        ("#version: 0.2\na b</w>\n", "s09 ", ["codes: cannot have made", "types"]),
        (None, "s09@@ ", ["types: has parts of words", "--bpe-codes"]),
    ],
)
def test_codes_that_do_not_make_the_vocabulary(
    tmp_path: Path, codes: str | None, word: str, words: list[str]
) -> None:
    types = (FOLDER / "dict.src.txt").read_text("utf-8")
    source = tmp_path / "types"
    source.write_text(types.replace("s09 ", word), "utf-8")
    path = None
    if codes:
        path = tmp_path / "codes"
        path.write_text(codes)
    files = FairseqFiles(CHECKPOINT, source, FOLDER / "dict.tgt.txt", path)
    stated = {"task": "tiny", "languages": None, "preparation": "moses_test"}
    says(refusal(import_fairseq, files, tmp_path / "model", **stated), *words)


def test_residual_connections_that_skip_layers() -> None:
    described = json.loads((FOLDER / "golden_variants.json").read_text("utf-8"))
    options = described["residual_0_1_2"]["options"]
    arrays = np.load(FOLDER / "golden_variants.npz")
    weights = {
        name: torch.from_numpy(array)
        for name, array in fairseq.part(arrays, "residual_0_1_2.model").items()
    }
    base = read_checkpoint(CHECKPOINT).arguments
    message = refusal(architecture_of, Checkpoint(base | options, weights), "model.pt")
    says(message, "layers: expected ", "without a residual connection")


def test_weights_that_are_no_parameter() -> None:
    """Copies that some versions left behind are no matter."""
    weights = read_checkpoint(CHECKPOINT).weights
    model = fairseq.load(FOLDER)
    copy = {"decoder.convolutions.0._linearized_weight": torch.zeros(64, 96)}
    assert convert(weights | copy, model, "tiny").keys() == model.state_dict().keys()
    other = {"decoder.version2": torch.zeros(1)}
    message = refusal(convert, weights | other, model, "tiny")
    says(message, "it has 'decoder.version2'")
