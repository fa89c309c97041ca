"""The loss of the output layer, without ever holding all logits.

A batch's logits are its largest tensor by far, and softmax, loss and their gradients each pass
over it from memory. Here a block of rows at a time is multiplied, turned into its gradient in place
while it is in the cache, and multiplied back.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.kernels.matmul import linear

BLOCK = 1 << 22
"""Logits of a block: 8 MB of bfloat16, at home in a CPU's last cache."""

BLOCK_OF_GPU = 1 << 27
"""Logits of a block on a GPU, where a block of a CPU's size is over before the next is asked for:
256 MB of bfloat16."""

LEAST_ROWS = 1024
"""Rows of a block of a large vocabulary: each passes once over the gradient of the weight."""


class _SummedCrossEntropy(torch.autograd.Function):
    """The loss; its gradients are computed on the way forth, when the logits are at hand."""

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
        most = BLOCK if features.device.type == "cpu" else BLOCK_OF_GPU
        step = max(LEAST_ROWS, most // len(weight))
        for start in range(0, len(features), step):
            rows = slice(start, start + step)
            block = features[rows].detach().requires_grad_(wanted)  # (r, f)
            with torch.set_grad_enabled(wanted):
                output = linear(block, matrix, offset)  # (r, V)
            logits = output.detach()
            if wanted:
                shares = torch.softmax(logits, 1)
                total += _block_loss(logits, shares, target[rows], smoothing, bias.dtype)
                back = torch.autograd.grad(output, (block, matrix, offset), shares)
                d_features[rows] = back[0]
                d_weight += back[1]
                d_bias += back[2]
            else:
                total += functional.cross_entropy(
                    logits.to(bias.dtype), target[rows], reduction="sum", label_smoothing=smoothing
                )
        ctx.gradients = d_features, d_weight, d_bias
        return total.to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that are at hand."""
        factor = gradients[0]
        d_features, d_weight, d_bias = (one.mul_(factor.to(one.dtype)) for one in ctx.gradients)
        return d_features, d_weight, d_bias, None, None, None


def _block_loss(
    logits: Tensor, shares: Tensor, target: Tensor, smoothing: float, precision: torch.dtype
) -> Tensor:
    """Return the summed loss of a block, and turn its softmax into the gradient by the logits.

    Args:
        logits: (r, V).
        shares: (r, V), their softmax; becomes itself minus the smoothed truth.
        target: (r,), the true types.
        smoothing: probability mass spread evenly over all types.
        precision: of the sums.
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

    Args:
        features: (N, f), what enters the output layer; its precision is that of the matrix
            products, where autocast does not say another.
        weight: (V, f).
        bias: (V,).
        target: (N,), the true types.
        smoothing: probability mass spread evenly over all types (section 4.2 has none).
    """
    kind = features.device.type
    if torch.is_autocast_enabled(kind):
        features = features.to(torch.get_autocast_dtype(kind))
    with torch.autocast(kind, enabled=False):
        loss: Tensor = _SummedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            features, weight, bias, target, smoothing, torch.is_grad_enabled()
        )
    return loss
