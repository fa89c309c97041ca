"""fairseq's parameters in this package's layout: names, order of dimensions, order of types.

fairseq numbers ``<s>``, ``<pad>``, ``</s>``, ``<unk>`` 0 to 3 and its dictionary from 4 on, here
``<pad>``, ``</s>``, ``<unk>`` are 0 to 2. ``<s>`` is kept, as an ordinary type: fairseq's softmax
gives it its share. Positions count from fairseq's padding index + 1, and from 0 here.
"""

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from convs2s.errors import UserError

FAIRSEQ_SPECIAL_TOKENS = 4
FIRST_POSITION = 2

_NAMES = (
    (r"embedding\.tokens", "embed_tokens.weight"),
    (r"embedding\.positions", "embed_positions.weight"),
    (r"coder\.in_projection", "coder.fc1"),
    (r"coder\.out_projection", "coder.fc2"),
    (r"coder\.output\b", "coder.fc3"),
    (r"blocks\.(\d+)\.convolution", r"convolutions.\1"),
    (r"blocks\.(\d+)\.residual", r"projections.\1"),
    (r"blocks\.(\d+)\.attention", r"attention.\1"),
)
# The version of the layout, which the shapes say as well, and a copy of each convolution's weight
# that some versions left behind (facebookresearch/fairseq issues 1903 and 1949).
_NO_PARAMETERS = re.compile(r"decoder\.version|.*\._linearized_weight")


def their_name(name: str) -> str:
    """Return fairseq's name of one of our parameters."""
    for ours, theirs in _NAMES:
        name = re.sub(ours, theirs, name)
    return name


def our_order(types: int) -> Tensor:
    """Return, for each of our indices, fairseq's index of the same type."""
    return torch.tensor([1, 2, 3, 0, *range(FAIRSEQ_SPECIAL_TOKENS, types)])


def to_our_layout(name: str, tensor: Tensor) -> Tensor:
    """Bring a parameter of fairseq's into the order of dimensions of ours named ``name``."""
    if name.endswith("weight_g"):
        return tensor.flatten()
    if name.endswith("convolution.weight_v"):
        return tensor.permute(2, 0, 1)  # (k, inputs, outputs) -> (outputs, k, inputs)
    return tensor


def to_ours(name: str, tensor: Tensor) -> Tensor:
    """Bring a parameter of fairseq's, or its gradient, into our layout, order and numbering."""
    tensor = to_our_layout(name, tensor)
    if name.endswith("positions"):
        return tensor[FIRST_POSITION:]
    if name.endswith("embedding.tokens") or name.startswith("decoder.output."):
        tensor = tensor[our_order(len(tensor))]
    return tensor


def upgraded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights as today's fairseq has them: each map normalized over its outputs.

    Changed are convolutions of the decoder's first version, normalized over the kernel's places,
    and an output layer that shares the target embeddings, which is not normalized at all.
    """
    result = {name: tensor.float() for name, tensor in weights.items()}
    for name in weights:
        module, _, part = name.rpartition(".")
        weight_v, weight_g = result.get(f"{module}.weight_v"), result.get(f"{module}.weight_g")
        if part != "weight_v" or weight_v is None or weight_g is None or weight_v.dim() != 3:
            continue
        if weight_g.shape == (len(weight_v), 1, 1):  # k; today's is (1, 1, outputs)
            weight = weight_v * (weight_g / weight_v.norm(dim=(1, 2), keepdim=True))
            norms = _normalized(weight.permute(2, 0, 1))[1]
            result |= {name: weight, f"{module}.weight_g": norms.view(1, 1, -1)}
    shared = result.pop("decoder.fc3.weight", None)
    if shared is not None:
        weight_v, weight_g = _normalized(shared)
        result |= {"decoder.fc3.weight_v": weight_v, "decoder.fc3.weight_g": weight_g}
    return result


def _normalized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return weight_v and weight_g, the norm of each output's weights, that make up a weight.

    An output without weights (padding's) gets any weight_v and the weight_g 0.
    """
    weight_g = weight.flatten(1).norm(dim=1)
    is_zero = (weight_g == 0).view(-1, *[1] * (weight.dim() - 1))
    return torch.where(is_zero, torch.ones_like(weight), weight), weight_g


def convert(weights: Mapping[str, Tensor], network: nn.Module, name: str) -> dict[str, Tensor]:
    """Return fairseq's weights under our names and in our layout.

    Args:
        weights: a checkpoint's, of any version.
        network: a network of the same architecture; its own weights are not read.
        name: what a message begins with.

    Raises:
        UserError: the weights are not those of such a network.
    """
    given = upgraded(weights)
    expected = {their_name(ours): ours for ours, _ in network.named_parameters()}
    for theirs in sorted(given.keys() ^ expected.keys()):
        if not _NO_PARAMETERS.fullmatch(theirs):
            found = "lacks" if theirs in expected else "has"
            raise UserError(
                f"{name}: not the network that its settings describe: it {found} {theirs!r}; only "
                "fconv networks for translation are read"
            )
    converted = {ours: to_ours(ours, given[theirs]) for theirs, ours in expected.items()}
    for ours, parameter in network.named_parameters():
        if converted[ours].shape != parameter.shape:
            raise UserError(
                f"{name}: not the network that its settings describe: {their_name(ours)!r} makes "
                f"{tuple(converted[ours].shape)} where {tuple(parameter.shape)} was expected"
            )
    return converted
