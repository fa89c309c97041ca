"""The loss of the output layer, without ever holding all logits.

A batch's logits are its largest tensor by far, and softmax, loss and their gradients each pass
over it from memory. Here a block of rows at a time is multiplied, turned into its gradient in place
while it is in the cache, and multiplied back.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

BLOCK = 1 << 22
"""Logits of a block: 8 MB of bfloat16, at home in a CPU's last cache."""

ROWS = 1024
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
        matrix, offset = weight.to(features.dtype), bias.to(features.dtype)
        types = len(weight)
        step = max(ROWS, BLOCK // types)
        for start in range(0, len(features), step):
            block = features[start : start + step]  # (r, f)
            truth = target[start : start + step]  # (r,)
            truth = truth + torch.arange(len(truth), device=truth.device) * types  # of the block
            logits = functional.linear(block, matrix, offset)  # (r, V)
            if not wanted:
                normaliser = torch.logsumexp(logits.to(bias.dtype), 1)  # (r,)
                total += _summed_loss(logits, truth, normaliser, smoothing)
                continue
            shares = torch.softmax(logits, 1)
            # Of the largest logit and its share, each found in a pass that a CPU does in vectors.
            normaliser = logits.amax(1).to(bias.dtype) - shares.amax(1).to(bias.dtype).log()
            total += _summed_loss(logits, truth, normaliser, smoothing)
            # Softmax minus the smoothed truth: the gradient of the loss by the logits.
            if smoothing:
                shares -= smoothing / types
            shares.view(-1)[truth] -= 1.0 - smoothing
            d_bias += shares.sum(0)
            d_features[start : start + step] = shares @ matrix
            d_weight += shares.t() @ block
        ctx.gradients = d_features, d_weight, d_bias
        return total.to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that are at hand."""
        factor = gradients[0]
        d_features, d_weight, d_bias = (one.mul_(factor.to(one.dtype)) for one in ctx.gradients)
        return d_features, d_weight, d_bias, None, None, None


def _summed_loss(logits: Tensor, truth: Tensor, normaliser: Tensor, smoothing: float) -> Tensor:
    """Return the loss of a block of logits (r, V).

    Args:
        logits: in any precision.
        truth: (r,), where the true types are among all logits of the block.
        normaliser: (r,), log of the sum of the logits' exponentials.
        smoothing: probability mass spread evenly over all types.
    """
    loss = normaliser.sum(dtype=torch.float64)
    loss -= (1.0 - smoothing) * logits.view(-1)[truth].sum(dtype=torch.float64)
    if smoothing:
        loss -= smoothing / logits.shape[1] * logits.sum(dtype=normaliser.dtype).double()
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
