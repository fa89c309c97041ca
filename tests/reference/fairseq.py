"""fairseq's tiny models in our layout, and what it found (tests/reference/data)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import yaml
from torch import Tensor, nn

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.decoding import DecodingSettings
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import PADDING
from convs2s.files.text import read_json
from convs2s.interop import fairseq as layout
from convs2s.models.convs2s import ConvS2S
from convs2s.models.kernels.logits import summed_cross_entropy
from tests.support.golden import DATA
from tests.support.networks import options

VECTORS = DATA / "fairseq_random"
"""fairseq's outputs over random weights."""

ARCHITECTURE = ConvS2SArchitecture.model_validate(
    yaml.safe_load("""
    encoder: &stack
    - {layers: 1, width: 32, kernel: 3}
    - {layers: 1, width: 32, kernel: 3}
    - {layers: 1, width: 24, kernel: 1}
    decoder: *stack
    embedding: 16
    output_embedding: 16
    positions: {maximum: 20}
    dropout: 0.0
    gradient_scaling: fairseq
    """)
)
TYPES = 48

Arrays = Mapping[str, npt.NDArray[Any]]

_SPECIAL = torch.argsort(layout.our_order(layout.FAIRSEQ_SPECIAL_TOKENS))


def our_indices(array: npt.NDArray[Any]) -> Tensor:
    """Return the indices that we have for fairseq's; only special tokens have others."""
    theirs = torch.from_numpy(array)
    return torch.where(theirs < len(_SPECIAL), _SPECIAL[theirs.clamp(max=3)], theirs)


def by_our_types(array: npt.NDArray[Any]) -> Tensor:
    """Return what fairseq gives each type (..., V), such as logits, in the order of ours."""
    return torch.from_numpy(array)[..., layout.our_order(array.shape[-1])]


def part(arrays: Arrays, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays whose names start with ``prefix.``, without it."""
    start = f"{prefix}."
    return {
        name.removeprefix(start): arrays[name]
        for name in arrays
        if name.startswith(start)
    }


def to_ours(name: str, array: npt.NDArray[Any]) -> Tensor:
    """Bring a parameter or gradient of fairseq's into our layout and numbering."""
    return layout.to_ours(name, torch.from_numpy(array))


def load(dtype: torch.dtype = torch.float32) -> ConvS2S:
    """Return the tiny model."""
    model = ConvS2S(ARCHITECTURE, TYPES, TYPES).to(dtype)
    weights = np.load(VECTORS / "checkpoint_tiny_weights.npz")
    names = [name for name, _ in model.named_parameters()]
    model.load_state_dict(
        {name: to_ours(name, weights[layout.their_name(name)]) for name in names}
    )
    return model


def inputs(batch: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return source, decoder input and target of a batch of the tiny model's."""
    return sides(part(np.load(VECTORS / "golden_forward.npz"), batch))


def sides(arrays: Arrays) -> tuple[Tensor, Tensor, Tensor]:
    """Return source, decoder input and target of a batch in our indices, padded on the right."""
    source, previous, target = (
        our_indices(arrays[name])
        for name in ("src_tokens", "prev_output_tokens", "target")
    )
    aligned = [torch.cat([row[row != PADDING], row[row == PADDING]]) for row in source]
    return torch.stack(aligned), previous, target


def write_pairs(path: Path, arrays: Arrays) -> TokenStore:
    """Write a batch as a store to train on."""
    source, _, target = sides(arrays)
    rows = zip(source, target, strict=True)
    write_store(
        path, (tuple(side[side != PADDING].tolist() for side in row) for row in rows)
    )
    return TokenStore(path)


BATCHES = ("ragged", "nopad")
SEARCHES = (
    "beam5_lp1.0",
    "beam5_lp0.6",
    "beam5_lp1.0_unnormalized",
    "beam1_lp1.0",
    "beam5_lp1.0_maxlenb6",
    "beam5_lp1.0_minlen6",
    "beam2_lp1.3_unkpen2",
)
"""The names of golden_generate."""


@dataclass(frozen=True)
class Generation:
    """A batch translated by fairseq.

    Attributes:
        source: (B, m), padded on the right.
        settings: fairseq's as ours.
        tokens: of each sentence, its hypotheses, ``</s>`` among them, the best first.
        scores: of the same.
        attention: (B, K, padded m, padded n), the source padded on the left.
    """

    source: Tensor
    settings: DecodingSettings
    tokens: list[list[list[int]]]
    scores: npt.NDArray[Any]
    attention: npt.NDArray[Any]


def generation(batch: str, search: str) -> Generation:
    """Return what fairseq found, one of ``BATCHES`` by one of ``SEARCHES``."""
    name = f"{batch}.{search}"
    described: Any = read_json(VECTORS / "golden.json")
    arguments = described["generation_cases"][name]["args"]
    found = part(np.load(VECTORS / "golden_generate.npz"), name)
    tokens = []
    for rows, lengths in zip(found["tokens"], found["lengths"], strict=True):
        cut = [row[:length] for row, length in zip(rows, lengths, strict=True)]
        tokens.append([our_indices(row).tolist() for row in cut])
    settings = options(
        beam=arguments["beam"],
        length_penalty=0.0 if arguments["unnormalized"] else arguments["lenpen"],
        minimum_length=arguments["min_len"],
        maximum_length={
            "factor": arguments["max_len_a"],
            "offset": arguments["max_len_b"],
        },
        unknown_penalty=arguments["unkpen"],
    )
    source, _, _ = inputs(batch)
    return Generation(source, settings, tokens, found["scores"], found["attention"])


def summed_loss(
    model: ConvS2S,
    source: Tensor,
    previous: Tensor,
    target: Tensor,
    smoothing: float = 0.0,
) -> Tensor:
    """Return the loss of training, summed over the target tokens, in nats."""
    real = target != PADDING
    features = model.features(source, previous)[real]
    return summed_cross_entropy(
        features, model.output.weight(), model.output.bias, target[real], smoothing
    )


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Return the gradient of every parameter."""
    found = {}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        found[name] = parameter.grad
    return found


def norm(tensors: Mapping[str, Tensor]) -> float:
    """Return the norm over all tensors together."""
    return float(
        torch.stack([tensor.double().norm() for tensor in tensors.values()]).norm()
    )


def assert_same_output(
    output: tuple[Tensor, list[Tensor]],
    source: Tensor,
    previous: Tensor,
    arrays: Arrays,
    tolerance: float,
) -> None:
    """Compare logits and the attention's mean over blocks where nothing is padding."""
    logits, attentions = output
    real = previous != PADDING
    expected = by_our_types(arrays["logits"]).to(logits.dtype)
    torch.testing.assert_close(logits[real], expected[real], atol=tolerance, rtol=0)
    assert_same_attention(attentions, source, previous, arrays, min(tolerance, 1e-5))


def assert_same_attention(
    attentions: list[Tensor],
    source: Tensor,
    previous: Tensor,
    arrays: Arrays,
    tolerance: float = 1e-5,
) -> None:
    """Compare the attention's mean over blocks with fairseq's, whose source is padded left."""
    real = previous != PADDING
    ours = torch.stack(attentions).mean(0)
    theirs = torch.from_numpy(arrays["avg_attn"]).to(ours.dtype)
    for row, tokens in enumerate((source != PADDING).sum(1).tolist()):
        mine = ours[row, real[row], :tokens]
        expected = theirs[row, real[row], theirs.shape[2] - tokens :]
        torch.testing.assert_close(mine, expected, atol=tolerance, rtol=0)


def assert_same_gradient(name: str, gradient: Tensor, arrays: Arrays) -> None:
    """Compare the gradient of our parameter ``name`` to 1e-4 of fairseq's norm."""
    expected = to_ours(name, arrays[f"grad.{layout.their_name(name)}"])
    assert float((gradient - expected).norm()) <= 1e-4 * float(expected.norm()), name
