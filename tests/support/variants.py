"""fairseq's seven variants of the tiny model in our layout (golden_variants of fairseq_random).

Two of them are options that no architecture of the papers or of the released models has, and that
our network lacks: an output layer shared with the embeddings, and residuals from nowhere or from
two blocks below. They are put together here from a network of ours.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.models.convs2s import ConvDecoder, ConvS2S, Stack
from tests.support import fairseq
from tests.support.networks import convs2s

Layers = tuple[tuple[int, int], ...]
"""The width and kernel of each."""

KERNELS = ((32, 5), (32, 2), (24, 4))
RESIDUALS = ((32, 3), (24, 3), (32, 1))


def _variant(
    encoder: Layers = fairseq.LAYERS, decoder: Layers = fairseq.LAYERS, **others: Any
) -> ConvS2SArchitecture:
    """Return the tiny model's architecture but for what is stated."""
    common = fairseq.ARCHITECTURE.model_dump(
        mode="json", exclude={"encoder", "decoder"}
    )
    return convs2s(encoder, decoder, **(common | others))


ARCHITECTURES = {
    "attn_TFT": _variant(attention=[1, 3]),
    "attn_last_only": _variant(attention=[3]),
    "share_embed": fairseq.ARCHITECTURE,
    "encoder_kernels_5_2_4": _variant(encoder=KERNELS),
    "decoder_kernels_5_2_4": _variant(decoder=KERNELS),
    "residual_0_1_2": _variant(encoder=RESIDUALS, decoder=RESIDUALS),
    "embed_ne_hidden": _variant(
        encoder=((20, 3), (28, 3)),
        decoder=((12, 3), (20, 3), (20, 1)),
        output_embedding=10,
    ),
}


def load(arrays: fairseq.Arrays, name: str) -> ConvS2S:
    """Return the network of a variant, in float64.

    The large logits of ``share_embed`` move by 2e-4 with float32's rounding alone.
    """
    model = ConvS2S(ARCHITECTURES[name], fairseq.TYPES, fairseq.TYPES)
    if name == "share_embed":
        model.decoder.output = _SharedOutput(model.decoder)  # type: ignore[assignment]
    if name == "residual_0_1_2":
        for side in (model.encoder, model.decoder):
            _rewire_residuals(side.blocks)
    fairseq.load_weights(model, fairseq.part(arrays, "model"))
    with torch.no_grad():
        for parameter, factor in _factors(name, model).items():
            model.get_parameter(parameter).mul_(factor)
    return model.double()


def gradients(name: str, model: ConvS2S) -> dict[str, Tensor]:
    """Return the gradient of each parameter that the variant has."""
    found = fairseq.gradients(model)
    for parameter, factor in _factors(name, model).items():
        found[parameter] = found[parameter] * factor  # ours is factor x theirs
    return found


class _SharedOutput(nn.Module):
    """An output layer whose weight is the token embeddings', without normalization."""

    def __init__(self, decoder: ConvDecoder) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.empty(fairseq.TYPES))
        self._decoder = [decoder]  # in a list, so that it is no submodule

    def weight(self) -> Tensor:
        return self._decoder[0].embedding.tokens

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight(), self.bias)


class _Zero(nn.Module):
    """A residual from nowhere."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


class _Lower(nn.Module):
    """The input of the block below, for a residual from two blocks below."""

    def __init__(self, below: nn.Module) -> None:
        super().__init__()
        below.register_forward_pre_hook(self._keep)

    def _keep(self, _: nn.Module, arguments: tuple[Tensor]) -> None:
        self.kept = arguments[0]

    def forward(self, _: Tensor) -> Tensor:
        return self.kept


def _rewire_residuals(blocks: Stack) -> None:
    lowest, middle, highest = blocks
    lowest.residual = _Zero()  # type: ignore[assignment]
    highest.residual = _Lower(middle.residual)  # type: ignore[assignment]


def _factors(name: str, model: ConvS2S) -> dict[str, Tensor]:
    """Return what fairseq's parameters are multiplied by to be ours; the others are equal.

    A block whose residual is from nowhere is not scaled by sqrt(0.5) by fairseq, and is by us: so
    the half of its convolution that is not the gate gives sqrt(2) times as much.
    """
    if name != "residual_0_1_2":
        return {}
    root = math.sqrt(2.0)
    half = torch.cat([torch.full((32,), root), torch.ones(32)])
    found = {
        f"{side}.blocks.0.convolution.{part}": half
        for side in ("encoder", "decoder")
        for part in ("weight_g", "bias")
    }
    attention = "decoder.blocks.0.attention"
    found[f"{attention}.in_projection.weight_g"] = torch.tensor(1.0 / root)
    found[f"{attention}.out_projection.weight_g"] = found[
        f"{attention}.out_projection.bias"
    ] = torch.tensor(root)
    return found
