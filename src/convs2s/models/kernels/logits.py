"""The output layer and the loss of training, block by block.

The logits are by far the largest tensor of a batch. Usually the softmax, the loss and their
gradients each read all of it from memory. Here, the logits of one block of rows at a time are
computed, replaced by their gradient while they are in the cache, and passed back through the output
layer. The logits of the whole batch are never in memory.

Shapes: N rows (target tokens of a batch), r rows of a block, f features, V target types.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.kernels.matmul import linear
from convs2s.models.layers import in_autocast

BLOCK = 1 << 22
"""Number of logits in a block on a CPU: 8 MB in bfloat16, which fit into its last-level cache."""

MEMORY_OF_GPU = 950 * 10**6
"""Maximum memory of a loss on a GPU, in bytes.

It holds two copies of a block's logits, and the gradients of the weight and of the features. A GPU
takes larger blocks than a CPU: it would finish small ones faster than they can be launched. A large
vocabulary needs more memory, because a block has at least ``LEAST_ROWS`` rows.
"""

LEAST_ROWS = 1024
"""Minimum number of rows in a block.

Each block reads and writes the whole gradient of the weight, however few rows the block has.
"""

NONE_IGNORED = -100
"""The ``ignore_index`` that ignores no row. This is torch's own default."""

BlockLoss = Callable[[Tensor, Tensor, float, torch.dtype, int], tuple[Tensor, Tensor]]
"""``block_loss``, or its compiled form."""


def block_loss(
    logits: Tensor,
    target: Tensor,
    smoothing: float,
    precision: torch.dtype,
    ignore_index: int,
) -> tuple[Tensor, Tensor]:
    """Return the summed loss of a block's logits (r, V), and its gradient (r, V).

    ``target`` (r,) are the indices of the correct types. The gradient is the softmax minus the
    smoothed distribution of the target, or zero where the target is ``ignore_index``. The
    normalizers are computed in ``precision``.
    """
    # (r, V). Below, the softmax is changed in place into the gradient.
    shares = torch.softmax(logits, 1)
    types = logits.shape[1]
    # (r,), indices of the target's logits in the flattened block
    rows = torch.arange(len(target), device=target.device)
    truth = target + rows * types
    # The normalizer of a row, log(sum(exp(logits))), is computed from its largest logit and the
    # softmax of that logit. A CPU finds both with vector instructions.
    largest = logits.amax(1).to(precision)  # (r,)
    share = shares.amax(1).to(precision)  # (r,)
    is_counted = target != ignore_index  # (r,)
    normalizer = (largest - share.log()) * is_counted  # (r,)
    loss = normalizer.sum(dtype=torch.float64)
    true_logits = logits.view(-1)[truth] * is_counted  # (r,)
    loss -= (1.0 - smoothing) * true_logits.sum(dtype=torch.float64)
    if smoothing:
        row_sums = logits.sum(1) * is_counted  # (r,)
        loss -= smoothing / types * row_sums.sum(dtype=torch.float64)
        shares -= smoothing / types
    shares.view(-1)[truth] -= 1.0 - smoothing
    if ignore_index != NONE_IGNORED:
        # Without the condition, this would often read and write the block for nothing.
        shares *= is_counted.unsqueeze(1)
    return loss, shares


def summed_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    smoothing: float = 0.0,
    loss_of: BlockLoss = block_loss,
    ignore_index: int = NONE_IGNORED,
) -> Tensor:
    """Return the cross-entropy of a softmax layer, summed over its N inputs, in nats.

    ``features`` (N, f) are the inputs, ``weight`` (V, f) and ``bias`` (V,) are the parameters, and
    ``target`` (N,) are the correct types. The matrix products are computed in the precision of
    autocast, or of the features without autocast. ``smoothing`` is the share of the target's
    probability that is spread evenly over all types (the paper does not smooth, section 4.2).
    Inputs whose target is ``ignore_index`` do not count, as in torch's cross-entropy.
    """
    features = in_autocast(features)
    with torch.autocast(features.device.type, enabled=False):
        if not torch.is_grad_enabled():
            return _loss_alone(features, weight, bias, target, smoothing, ignore_index)
        loss: Tensor = _SummedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            features, weight, bias, target, smoothing, loss_of, ignore_index
        )
    return loss


class _SummedCrossEntropy(torch.autograd.Function):
    """The loss. Its gradients are computed in the forward pass, while the logits are in memory."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        smoothing: float,
        loss_of: BlockLoss,
        ignore_index: int,
    ) -> Tensor:
        """Return the loss of ``summed_cross_entropy``, and keep its gradients for ``backward``."""
        d_features = torch.empty_like(features)
        d_weight = torch.zeros_like(weight)
        d_bias = torch.zeros_like(bias)
        total = torch.zeros((), dtype=torch.float64, device=features.device)
        # The parameters, in the precision of the matrix products.
        matrix = weight.detach().to(features.dtype).requires_grad_()
        offset = bias.detach().to(features.dtype).requires_grad_()
        rows_of_block = _rows_of_block(features, weight)
        for start in range(0, len(features), rows_of_block):
            rows = slice(start, start + rows_of_block)
            x = features[rows].detach().requires_grad_()  # (r, f)
            with torch.enable_grad():
                logits = linear(x, matrix, offset)  # (r, V)
            loss, d_logits = loss_of(
                logits.detach(), target[rows], smoothing, bias.dtype, ignore_index
            )
            d_x, d_matrix, d_offset = torch.autograd.grad(
                logits, (x, matrix, offset), d_logits
            )
            total += loss
            d_features[rows] = d_x
            d_weight += d_matrix
            d_bias += d_offset
            # Free the memory of this block before the next block needs its own.
            del logits, d_logits, d_x, d_matrix, d_offset
        ctx.gradients = (d_features, d_weight, d_bias)
        return total.to(bias.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Multiply the kept gradients, in place, by the gradient of the loss."""
        (factor,) = gradients
        scaled = []
        for gradient in ctx.gradients:
            scaled.append(gradient.mul_(factor.to(gradient.dtype)))
        return *scaled, None, None, None, None


def _loss_alone(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    smoothing: float,
    ignore_index: int,
) -> Tensor:
    """Return the loss of ``summed_cross_entropy`` without computing gradients."""
    total = torch.zeros((), dtype=torch.float64, device=features.device)
    matrix = weight.detach().to(features.dtype)
    offset = bias.detach().to(features.dtype)
    rows_of_block = _rows_of_block(features, weight)
    for start in range(0, len(features), rows_of_block):
        rows = slice(start, start + rows_of_block)
        logits = linear(features[rows], matrix, offset)  # (r, V)
        logits = logits.to(bias.dtype)
        total += functional.cross_entropy(
            logits,
            target[rows],
            reduction="sum",
            label_smoothing=smoothing,
            ignore_index=ignore_index,
        )
        del logits  # Free the memory of this block before the next block needs its own.
    return total.to(bias.dtype)


def _rows_of_block(features: Tensor, weight: Tensor) -> int:
    """Return the number of rows in a block of the features (N, f), for a weight (V, f)."""
    types = len(weight)
    if features.device.type == "cpu":
        return max(LEAST_ROWS, BLOCK // types)
    size = features.element_size()  # bytes of a number in the precision of the features
    features_bytes = 2 * features.numel() * size  # the features and their gradient
    # The gradient of the weight is in the weight's precision. A copy of the weight, and its
    # gradient of one block, are in the precision of the features.
    number_bytes = weight.element_size() + 2 * size
    weight_bytes = weight.numel() * number_bytes
    remaining = MEMORY_OF_GPU - features_bytes - weight_bytes
    row_bytes = 2 * types * size  # two copies of a row of logits
    return max(LEAST_ROWS, remaining // row_bytes)
