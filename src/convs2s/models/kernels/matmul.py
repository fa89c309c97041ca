"""Matrix products of training by the kernel that is the fastest for them on this machine."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Kernel = Literal["blas", "onednn"]
"""Who computes float32 products where they are learned from: torch's library for matrices (MKL on
x86), or oneDNN, as convolutions of width 1. One is up to twice as fast, which depends on the
processor."""

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
    """Return ``x @ weight.t() + bias``, where it is learned from.

    In float32 on a CPU by the kernel in use; otherwise there is but one.

    Args:
        x: (..., inputs).
        weight: (outputs, inputs).
        bias: (outputs,).
    """
    kind = x.device.type
    plain = x.dtype != torch.float32 or kind != "cpu" or torch.is_autocast_enabled(kind)
    if plain or _kernel == "blas" or not torch.is_grad_enabled():
        return functional.linear(x, weight, bias)
    rows = x if x.dim() == 3 and len(x) >= IMAGES else _in_images(x)  # (images, n, inputs)
    # Channels come last in memory, so that these are views.
    image = rows.unsqueeze(1).permute(0, 3, 1, 2)  # (images, inputs, 1, n)
    kernel = weight.unflatten(1, (1, 1, -1)).permute(0, 3, 1, 2)  # (outputs, inputs, 1, 1)
    out = functional.conv2d(image, kernel, bias)  # (images, outputs, 1, n)
    flat = out.permute(0, 2, 3, 1).reshape(-1, len(weight))
    count = x.numel() // x.shape[-1]
    return (flat if len(flat) == count else flat[:count]).view(*x.shape[:-1], -1)


def _in_images(x: Tensor) -> Tensor:
    """Return the rows (..., inputs) of ``x`` as (IMAGES, n, inputs), zeros behind them."""
    rows = x.reshape(-1, x.shape[-1])
    missing = -len(rows) % IMAGES
    if missing:
        rows = functional.pad(rows, (0, 0, 0, missing))
    return rows.view(IMAGES, -1, x.shape[-1])
