"""Few passes over the logits of the output layer: the loss of training.

A batch's logits are its largest tensor by far, and softmax, loss and their gradients each pass
over it from memory. In training a block of rows at a time is multiplied, turned into its gradient
in place while it is in the cache, and multiplied back, so that there never are all logits.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.kernels.matmul import linear
from convs2s.models.layers import in_autocast

BLOCK = 1 << 22  # Logits of a block: 8 MB of bfloat16, at home in a CPU's last cache

MEMORY_OF_GPU = 950 * 10**6
"""Bytes that a loss takes at most on a GPU, where a block of a CPU's size is over before the next
is asked for: two copies of a block's logits, and the gradients of the weight and the features."""

LEAST_ROWS = 1024
"""Rows of a block of a large vocabulary: each passes once over the gradient of the weight."""

BlockLoss = Callable[[Tensor, Tensor, float, torch.dtype], tuple[Tensor, Tensor]]
"""``block_loss``, or what torch.compile makes of it."""


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
        loss_of: BlockLoss,
    ) -> Tensor:
        """Return the loss of ``summed_cross_entropy``, and keep its gradients."""
        d_features = torch.empty_like(features)
        d_weight = torch.zeros_like(weight)
        d_bias = torch.zeros_like(bias)
        total = torch.zeros((), dtype=torch.float64, device=features.device)
        matrix = weight.detach().to(features.dtype).requires_grad_()
        offset = bias.detach().to(features.dtype).requires_grad_()
        step = _rows_of_block(features, weight)
        for start in range(0, len(features), step):
            rows = slice(start, start + step)
            x = features[rows].detach().requires_grad_()  # (r, f)
            with torch.enable_grad():
                logits = linear(x, matrix, offset)  # (r, V)
            loss, d_logits = loss_of(logits.detach(), target[rows], smoothing, bias.dtype)
            d_x, d_matrix, d_offset = torch.autograd.grad(logits, (x, matrix, offset), d_logits)
            total += loss
            d_features[rows] = d_x
            d_weight += d_matrix
            d_bias += d_offset
            del logits, d_logits, d_x, d_matrix, d_offset  # before the next block's come
        ctx.gradients = (d_features, d_weight, d_bias)
        return total.to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (factor,) = gradients
        scaled = [gradient.mul_(factor.to(gradient.dtype)) for gradient in ctx.gradients]
        return *scaled, None, None, None


def _loss_alone(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    smoothing: float,
) -> Tensor:
    """Return the loss of ``summed_cross_entropy`` where nobody asks for gradients."""
    total = torch.zeros((), dtype=torch.float64, device=features.device)
    matrix = weight.detach().to(features.dtype)
    offset = bias.detach().to(features.dtype)
    step = _rows_of_block(features, weight)
    for start in range(0, len(features), step):
        rows = slice(start, start + step)
        logits = linear(features[rows], matrix, offset).to(bias.dtype)  # (r, V)
        total += functional.cross_entropy(
            logits,
            target[rows],
            reduction="sum",
            label_smoothing=smoothing,
        )
        del logits  # before the next block's come
    return total.to(bias.dtype)


def _rows_of_block(features: Tensor, weight: Tensor) -> int:
    """Return how many rows of the features (N, f) a weight (V, f) multiplies at a time."""
    types = len(weight)
    size = features.element_size()
    if features.device.type == "cpu":
        return max(LEAST_ROWS, BLOCK // types)
    both_features = 2 * features.numel() * size  # they and their gradient
    weights = weight.numel() * (weight.element_size() + 2 * size)
    room = MEMORY_OF_GPU - both_features - weights
    return max(LEAST_ROWS, room // (2 * types * size))


def block_loss(
    logits: Tensor,
    target: Tensor,
    smoothing: float,
    precision: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Return the summed loss of a block's logits (r, V), and its gradient (r, V).

    The gradient is the softmax minus the smoothed truth. The sums are in ``precision``.
    """
    shares = torch.softmax(logits, 1)
    types = logits.shape[1]
    truth = target + torch.arange(len(target), device=target.device) * types  # in the whole block
    # From the largest logit and its share, each found in a pass that a CPU makes in vectors.
    largest = logits.amax(1).to(precision)  # (r,)
    share = shares.amax(1).to(precision)  # (r,)
    normalizer = largest - share.log()
    loss = normalizer.sum(dtype=torch.float64)
    loss -= (1.0 - smoothing) * logits.view(-1)[truth].sum(dtype=torch.float64)
    if smoothing:
        loss -= smoothing / types * logits.sum(1).sum(dtype=torch.float64)
        shares -= smoothing / types
    shares.view(-1)[truth] -= 1.0 - smoothing
    return loss, shares


def summed_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    smoothing: float = 0.0,
    loss_of: BlockLoss = block_loss,
) -> Tensor:
    """Return the cross-entropy of a softmax layer, summed over its inputs, in nats.

    The layer's weight is (V, f), its bias (V,). The precision of the features (N, f) is that of the
    matrix products, where autocast does not say another. ``smoothing`` of the probability of the
    target (N,) is spread evenly over all types (section 4.2 has none).
    """
    features = in_autocast(features)
    with torch.autocast(features.device.type, enabled=False):
        if not torch.is_grad_enabled():
            return _loss_alone(features, weight, bias, target, smoothing)
        loss: Tensor = _SummedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            features, weight, bias, target, smoothing, loss_of
        )
    return loss
