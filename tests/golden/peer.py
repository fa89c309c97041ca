"""The peer implementation's tiny model in our layout (golden/fairseq)."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from convs2s.data.vocabulary import PADDING
from convs2s.models.architecture import Architecture, Layer
from convs2s.models.convs2s import ConvS2S

LAYERS = (Layer(32, 3), Layer(32, 3), Layer(24, 1))
ARCHITECTURE = Architecture(16, 16, LAYERS, LAYERS, (True,) * 3, 20, 20, 0.0, "py")
TYPES = 48

# The peer numbers <s>, <pad>, </s>, <unk> 0 to 3; we number <pad>, </s>, <unk> 0 to 2.
PEER_INDEX = torch.tensor([1, 2, 3, 0, *range(4, TYPES)])
"""Our index -> the peer's."""
OUR_INDEX = torch.argsort(PEER_INDEX)
"""The peer's index -> ours."""


def parameter_names() -> dict[str, str]:
    """Our parameter's name -> the peer's."""
    names = {}
    for side in ("encoder", "decoder"):
        names[f"{side}.embedding.words"] = f"{side}.embed_tokens.weight"
        names[f"{side}.embedding.positions"] = f"{side}.embed_positions.weight"
        maps = {"enter": "fc1", "leave": "fc2", "blocks.2.residual": "projections.2"}
        for block in range(3):
            maps[f"blocks.{block}.convolution"] = f"convolutions.{block}"
            if side == "decoder":
                attention = f"blocks.{block}.attention"
                maps[f"{attention}.enter"] = f"attention.{block}.in_projection"
                maps[f"{attention}.leave"] = f"attention.{block}.out_projection"
        if side == "decoder":
            maps["output"] = "fc3"
        parts = {"direction": "weight_v", "gain": "weight_g", "bias": "bias"}
        for ours, theirs in maps.items():
            for part, suffix in parts.items():
                names[f"{side}.{ours}.{part}"] = f"{side}.{theirs}.{suffix}"
    return names


def to_ours(name: str, array: npt.NDArray[Any]) -> torch.Tensor:
    """Bring a parameter or gradient of the peer's into our layout."""
    tensor = torch.from_numpy(array)
    if name.endswith("positions"):
        return tensor[2:]  # the peer numbers positions from its padding index + 1
    if name.endswith("gain"):
        tensor = tensor.flatten()
    if "convolution.direction" in name:
        tensor = tensor.permute(2, 0, 1)  # (k, inputs, outputs) -> (outputs, k, inputs)
    if name.endswith("embedding.words") or name.startswith("decoder.output."):
        tensor = tensor[PEER_INDEX]
    return tensor


def load(folder: Path, dtype: torch.dtype = torch.float32) -> ConvS2S:
    """Return the tiny model."""
    model = ConvS2S(ARCHITECTURE, TYPES, TYPES, PADDING).to(dtype)
    weights = np.load(folder / "checkpoint_tiny_weights.npz")
    names = parameter_names()
    model.load_state_dict({ours: to_ours(ours, weights[name]) for ours, name in names.items()})
    return model


def inputs(folder: Path, batch: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return source, decoder input and target of a golden batch in our indices, padded right."""
    golden = np.load(folder / "golden_forward.npz")
    source, previous, target = (
        OUR_INDEX[torch.from_numpy(golden[f"{batch}.{name}"])]
        for name in ("src_tokens", "prev_output_tokens", "target")
    )
    aligned = [torch.cat([row[row != PADDING], row[row == PADDING]]) for row in source]
    return torch.stack(aligned), previous, target
