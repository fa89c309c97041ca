"""The matrix products of training, and the windows that make a convolution one of them.

float32 products on a CPU are computed by the kernel that ``choice`` finds the fastest.
"""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

Kernel = Literal["blas", "onednn"]
"""The library of float32 products where they are learned from: torch's library for matrices (MKL on
x86), or oneDNN, as convolutions of width 1. Which one is faster depends on the processor."""

IMAGES = 16
"""Images from which on torch hands a convolution of width 1 to oneDNN with a single thread, too."""

_kernel: Kernel = "blas"


def use(kernel: Kernel) -> None:
    """Compute the products of this process by a kernel from now on."""
    global _kernel
    _kernel = kernel


def in_use() -> Kernel:
    """Return the kernel that this process computes products by."""
    return _kernel


def kernels() -> list[Kernel]:
    """Return the kernels that this machine has."""
    return ["blas", "onednn"] if torch.backends.mkldnn.is_available() else ["blas"]


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Map x (..., inputs) by a weight (outputs, inputs) and a bias (outputs,) that are learned."""
    is_exact = x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    learns = is_exact and x.device.type == "cpu" and torch.is_grad_enabled()
    if _kernel == "blas" or not learns:
        return functional.linear(x, weight, bias)
    *before, inputs = x.shape
    count = x.numel() // inputs
    images = x  # (images, n, inputs)
    if x.dim() != 3 or len(x) < IMAGES:
        rows = x.reshape(-1, inputs)
        missing = -count % IMAGES
        if missing:
            rows = functional.pad(rows, (0, 0, 0, missing))
        images = rows.view(IMAGES, -1, inputs)
    # Channels come last in memory, so that these are views.
    image = images.unsqueeze(1)  # (images, 1, n, inputs)
    image = image.permute(0, 3, 1, 2)  # (images, inputs, 1, n)
    kernel = weight.unflatten(1, (1, 1, -1))  # (outputs, 1, 1, inputs)
    kernel = kernel.permute(0, 3, 1, 2)  # (outputs, inputs, 1, 1)
    out = functional.conv2d(image, kernel, bias)  # (images, outputs, 1, n)
    out = out.permute(0, 2, 3, 1)  # (images, 1, n, outputs)
    y = out.reshape(-1, len(weight))  # (rows, outputs)
    if len(y) > count:
        y = y[:count]
    return y.view(*before, -1)


class _Windows(torch.autograd.Function):
    """The gather, and the sum that is its gradient, in one pass over each."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int, left: int) -> Tensor:
        """Map (B, n, d) to (B, n, kernel * d)."""
        ctx.kernel = kernel
        ctx.left = left
        return _gather(x, kernel, left)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Add up, for each position (B, n, d), what all windows that hold it say."""
        (gradient,) = gradients
        batch, positions, _ = gradient.shape
        by_place = gradient.unflatten(2, (ctx.kernel, -1))  # (B, n, kernel, d)
        width = by_place.shape[3]
        summed = gradient.new_zeros(batch, positions + ctx.kernel - 1, width)
        for place in range(ctx.kernel):
            # += would copy it as well
            summed[:, place : place + positions].add_(by_place[:, :, place])
        return summed[:, ctx.left : ctx.left + positions], None, None


def _gather(x: Tensor, kernel: int, left: int) -> Tensor:
    padded = functional.pad(x, (0, 0, left, kernel - 1 - left))  # (B, n + kernel - 1, d)
    positions = x.shape[1]
    moved = [padded[:, place : place + positions] for place in range(kernel)]
    return torch.cat(moved, dim=2)


def windows(x: Tensor, kernel: int, left: int) -> Tensor:
    """Return the window (B, n, kernel * d) of each position of x (B, n, d), zeros past an end.

    ``left`` positions of it lie before the position: kernel - 1 for a causal convolution.
    """
    if kernel == 1:
        return x
    if x.device.type != "cpu":  # torch.compile makes a kernel of it, and several of a gather
        return _gather(x, kernel, left)
    unfolded: Tensor = _Windows.apply(x, kernel, left)  # type: ignore[no-untyped-call]
    return unfolded
