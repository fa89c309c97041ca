"""The loss of the output layer, without ever holding all logits.

A batch's logits are its largest tensor by far, and softmax, loss and their gradients each pass
over it from memory. Here a block of rows at a time is multiplied, turned into its gradient in place
while it is in the cache, and multiplied back.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

BLOCK = 1 << 21
"""Logits of a block: 8 MB of float32, at home in a CPU's last cache."""


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
        d_features = torch.empty_like(features) if wanted else None
        d_weight = torch.zeros_like(weight) if wanted else None
        d_bias = torch.zeros_like(bias) if wanted else None
        precision = torch.promote_types(features.dtype, torch.float32)
        total = torch.zeros((), dtype=torch.float64, device=features.device)
        types = len(weight)
        for start in range(0, len(features), max(1, BLOCK // types)):
            rows = slice(start, start + max(1, BLOCK // types))
            block, truth = features[rows], target[rows].unsqueeze(1)  # (r, f), (r, 1)
            logits = functional.linear(block, weight, bias).to(precision)  # (r, V)
            logits -= torch.logsumexp(logits, 1, keepdim=True)
            total -= (1.0 - smoothing) * logits.gather(1, truth).sum(dtype=torch.float64)
            if smoothing:
                total -= smoothing / types * logits.sum(dtype=torch.float64)
            if d_features is None or d_weight is None or d_bias is None:
                continue
            # Softmax minus the smoothed truth: the gradient of the loss by the logits.
            gradient = logits.exp_()
            if smoothing:
                gradient -= smoothing / types
            gradient.scatter_add_(1, truth, gradient.new_full(truth.shape, smoothing - 1.0))
            d_bias += gradient.sum(0)
            d_features[rows] = gradient @ weight
            d_weight += gradient.t() @ block
        ctx.gradients = d_features, d_weight, d_bias
        return total.to(precision)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that are at hand."""
        factor = gradients[0]
        d_features, d_weight, d_bias = (one * factor.to(one.dtype) for one in ctx.gradients)
        return d_features, d_weight, d_bias, None, None, None


def summed_cross_entropy(
    features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Return the cross-entropy of a softmax layer, summed over its inputs, in nats.

    Args:
        features: (N, f), what enters the output layer.
        weight: (V, f).
        bias: (V,).
        target: (N,), the true types.
        smoothing: probability mass spread evenly over all types (section 4.2 has none).
    """
    loss: Tensor = _SummedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features, weight, bias, target, smoothing, torch.is_grad_enabled()
    )
    return loss
