"""Few passes over the logits of the output layer: the loss of training, the best of a search.

A batch's logits are its largest tensor by far, and softmax, loss and their gradients each pass
over it from memory. In training a block of rows at a time is multiplied, turned into its gradient
in place while it is in the cache, and multiplied back, so that there never are all logits.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.kernels.matmul import linear

BLOCK = 1 << 22  # Logits of a block: 8 MB of bfloat16, at home in a CPU's last cache

BLOCK_OF_GPU = 1 << 28
"""Bytes of a block's logits on a GPU, where a block of a CPU's size is over before the next is
asked for. There are two copies of them, and gradients of the weight beside them: 1 GB at most."""

LEAST_ROWS = 1024
"""Rows of a block of a large vocabulary: each passes once over the gradient of the weight."""

GROUP = 32  # Numbers of which the largest stands for all in the first pass of ``topk_of_sums``


class _SummedCrossEntropy(torch.autograd.Function):
    """The loss; its gradients are computed in the forward pass, when the logits are at hand."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        smoothing: float,
        wanted: bool,
    ) -> Tensor:
        """Return the loss of ``summed_cross_entropy``; ``wanted``: keep its gradients as well."""
        d_features = torch.empty_like(features)
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        total = torch.zeros((), dtype=torch.float64, device=features.device)
        matrix = weight.to(features.dtype, copy=True).requires_grad_(wanted)
        offset = bias.to(features.dtype, copy=True).requires_grad_(wanted)
        on_cpu = features.device.type == "cpu"
        most = BLOCK if on_cpu else BLOCK_OF_GPU // features.element_size()
        step = max(LEAST_ROWS, most // len(weight))
        for start in range(0, len(features), step):
            rows = slice(start, start + step)
            if wanted:
                block = features[rows], matrix, offset
                # In a function, so that a block's logits are gone before the next one's come.
                loss, back = _block_gradients(*block, target[rows], smoothing, bias.dtype)
                total += loss
                d_features[rows] = back[0]
                d_weight += back[1]
                d_bias += back[2]
            else:
                logits = linear(features[rows], matrix, offset).to(bias.dtype)  # (r, V)
                total += functional.cross_entropy(
                    logits, target[rows], reduction="sum", label_smoothing=smoothing
                )
                del logits
        ctx.gradients = d_features, d_weight, d_bias
        return total.to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that are at hand."""
        (factor,) = gradients
        scaled = (gradient.mul_(factor.to(gradient.dtype)) for gradient in ctx.gradients)
        return *scaled, None, None, None


def _block_gradients(
    features: Tensor,
    matrix: Tensor,
    offset: Tensor,
    target: Tensor,
    smoothing: float,
    precision: torch.dtype,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the loss of some rows, and its gradients.

    Those of the features (r, f), of the weight (V, f) and of the bias (V,); ``precision`` as of
    ``_block_loss``.
    """
    inputs = features.detach().requires_grad_(), matrix, offset
    with torch.enable_grad():
        output = linear(*inputs)  # (r, V)
    logits = output.detach()
    shares = torch.softmax(logits, 1)
    loss = _block_loss(logits, shares, target, smoothing, precision)
    return loss, torch.autograd.grad(output, inputs, shares)


def _block_loss(
    logits: Tensor, shares: Tensor, target: Tensor, smoothing: float, precision: torch.dtype
) -> Tensor:
    """Return the summed loss of logits (r, V); their softmax ``shares`` becomes its gradient.

    That is the softmax minus the smoothed truth. The sums are in ``precision``.
    """
    types = logits.shape[1]
    truth = target + torch.arange(len(target), device=target.device) * types  # in the whole block
    # From the largest logit and its share, each found in a pass that a CPU makes in vectors.
    normalizer = logits.amax(1).to(precision) - shares.amax(1).to(precision).log()  # (r,)
    loss = normalizer.sum(dtype=torch.float64)
    loss -= (1.0 - smoothing) * logits.view(-1)[truth].sum(dtype=torch.float64)
    if smoothing:
        loss -= smoothing / types * logits.sum(dtype=precision).double()
        shares -= smoothing / types
    shares.view(-1)[truth] -= 1.0 - smoothing
    return loss


def summed_cross_entropy(
    features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Return the cross-entropy of a softmax layer, summed over its inputs, in nats.

    The layer's weight is (V, f), its bias (V,). The precision of the features (N, f) is that of the
    matrix products, where autocast does not say another. ``smoothing`` of the probability of the
    target (N,) is spread evenly over all types (section 4.2 has none).
    """
    device_type = features.device.type
    if torch.is_autocast_enabled(device_type):
        features = features.to(torch.get_autocast_dtype(device_type))
    with torch.autocast(device_type, enabled=False):
        loss: Tensor = _SummedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            features, weight, bias, target, smoothing, torch.is_grad_enabled()
        )
    return loss


def topk_of_sums(numbers: Tensor, offsets: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest of a sentence's numbers, each with its row's offset added.

    The largest lie in the groups with the largest maxima, and maxima of whole groups are what
    vector instructions are good at: one pass reads everything, what follows reads little.

    Numbers are (B, K, S), offsets (B, K). The sums (B, count) come the largest first, with their
    places (B, count) in K * S, which bounds the count.
    """
    _, rows, total = numbers.shape
    width = total // GROUP
    if width < 4 * count:
        return (numbers + offsets.unsqueeze(2)).flatten(1).topk(min(count, rows * total))
    whole = numbers[:, :, : width * GROUP].unflatten(2, (GROUP, width))
    maxima = whole.amax(2).add_(offsets.unsqueeze(2))  # (B, K, width)
    groups = maxima.flatten(1).topk(count).indices  # (B, count) in K * width
    first = groups + groups // width * (total - width)  # a group's first member in K * S
    members, rest = _places(rows, total, numbers.device)
    places = (first.unsqueeze(2) + members).flatten(1)
    if len(rest):
        places = torch.cat([places, rest.expand(len(places), -1)], 1)
    sums = numbers.flatten(1).gather(1, places).add_(offsets.gather(1, places // total))
    values, chosen = sums.topk(count)
    return values, places.gather(1, chosen)


@lru_cache(maxsize=8)
def _places(rows: int, total: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return where a group's members lie beside its first one, and the places in no group."""
    width = total // GROUP
    members = torch.arange(0, width * GROUP, width, device=device)
    rest = torch.arange(rows * total, device=device).view(rows, total)[:, width * GROUP :]
    return members, rest.flatten()
