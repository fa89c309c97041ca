"""Matrix products for training, and the windows that turn a convolution into a matrix product.

On a CPU, products in float32 are computed by the kernel that ``use`` sets. ``choice`` finds the
fastest kernel.
"""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

Kernel = Literal["blas", "onednn"]
"""The library that computes float32 products in training.

``blas`` is torch's library for matrices (MKL on x86). ``onednn`` computes products as convolutions
of width 1. Which one is faster depends on the processor.
"""

IMAGES = 16
"""Minimum number of images with which torch uses oneDNN for a convolution of width 1.

With fewer images and a single thread, torch uses another library.
"""

_kernel: Kernel = "blas"


def use(kernel: Kernel) -> None:
    """Set the kernel for the products of this process."""
    global _kernel
    _kernel = kernel


def in_use() -> Kernel:
    """Return the kernel that this process uses for products."""
    return _kernel


def kernels() -> list[Kernel]:
    """Return the kernels that this machine can use."""
    if torch.backends.mkldnn.is_available():
        return ["blas", "onednn"]
    return ["blas"]


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
) -> Tensor:
    """Map x (..., inputs) by a weight (outputs, inputs) and a bias (outputs,).

    The kernel ``onednn`` is only used on a CPU, in float32, and if gradients are enabled.
    """
    is_on_cpu = x.device.type == "cpu"
    is_fp32 = x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    has_gradients = torch.is_grad_enabled()
    uses_onednn = _kernel == "onednn" and is_on_cpu and is_fp32 and has_gradients
    if not uses_onednn:
        return functional.linear(x, weight, bias)
    *before, inputs = x.shape
    count = x.numel() // inputs  # number of rows
    if x.dim() == 3 and len(x) >= IMAGES:
        images = x  # (images, n, inputs)
    else:
        # Pad the rows with rows of zeros, and divide them evenly into IMAGES images.
        rows = x.reshape(-1, inputs)
        missing = -count % IMAGES  # rows up to the next multiple of IMAGES
        if missing:
            rows = functional.pad(rows, (0, 0, 0, missing))
        images = rows.view(IMAGES, -1, inputs)  # (IMAGES, n, inputs)
    # A convolution of width 1 maps each position of an image by the weight. ``permute`` only
    # returns views: the channels stay last in memory, which oneDNN supports.
    image = images.unsqueeze(1)  # (images, 1, n, inputs)
    image = image.permute(0, 3, 1, 2)  # (images, inputs, 1, n)
    kernel = weight.unflatten(1, (1, 1, -1))  # (outputs, 1, 1, inputs)
    kernel = kernel.permute(0, 3, 1, 2)  # (outputs, inputs, 1, 1)
    out = functional.conv2d(image, kernel, bias)  # (images, outputs, 1, n)
    out = out.permute(0, 2, 3, 1)  # (images, 1, n, outputs)
    y = out.reshape(-1, len(weight))  # (rows, outputs)
    if len(y) > count:  # drop the rows that were added
        y = y[:count]
    return y.view(*before, -1)


def windows(
    x: Tensor,
    kernel: int,
    left: int,
) -> Tensor:
    """Return the window (B, n, kernel * d) of each position of x (B, n, d).

    A window begins ``left`` positions before its own position; for a causal convolution this is
    kernel - 1. Positions past the ends of x are zeros.
    """
    if kernel == 1:
        return x
    if x.device.type != "cpu":
        # torch.compile fuses these operations into one kernel, but makes several of ``_Windows``.
        return _gather(x, kernel, left)
    unfolded: Tensor = _Windows.apply(x, kernel, left)  # type: ignore[no-untyped-call]
    return unfolded


def _gather(
    x: Tensor,
    kernel: int,
    left: int,
) -> Tensor:
    """Return the windows of x; see ``windows``."""
    right = kernel - 1 - left
    padded = functional.pad(x, (0, 0, left, right))  # (B, n + kernel - 1, d)
    positions = x.shape[1]
    shifted = []
    for place in range(kernel):
        shifted.append(padded[:, place : place + positions])
    return torch.cat(shifted, dim=2)


class _Windows(torch.autograd.Function):
    """The same as ``_gather``, with a backward pass that reads memory only once."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        kernel: int,
        left: int,
    ) -> Tensor:
        """Map (B, n, d) to (B, n, kernel * d)."""
        ctx.kernel = kernel
        ctx.left = left
        return _gather(x, kernel, left)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient (B, n, d): for each position, the sum over all windows it is in."""
        (gradient,) = gradients  # (B, n, kernel * d)
        batch, positions, _ = gradient.shape
        by_place = gradient.unflatten(2, (ctx.kernel, -1))  # (B, n, kernel, d)
        width = by_place.shape[3]
        # The gradient of the padded input, (B, n + kernel - 1, d).
        summed = gradient.new_zeros(batch, positions + ctx.kernel - 1, width)
        for place in range(ctx.kernel):
            # With += Python would also assign the result to the slice, which copies it again.
            summed[:, place : place + positions].add_(by_place[:, :, place])
        return summed[:, ctx.left : ctx.left + positions], None, None
