"""Matrix products by the kernel that is the fastest for them."""

import torch
from torch import Tensor
from torch.nn import functional


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``x @ weight.t() + bias``, where it is learned from.

    For float32 on a CPU it is a convolution of width 1, which oneDNN computes, forth and back: on
    some processors twice as fast as the product of matrices, which another library computes.

    Args:
        x: (..., inputs).
        weight: (outputs, inputs).
        bias: (outputs,).
    """
    kind = x.device.type
    plain = x.dtype != torch.float32 or kind != "cpu" or torch.is_autocast_enabled(kind)
    if plain or not torch.is_grad_enabled() or not torch.backends.mkldnn.is_available():
        return functional.linear(x, weight, bias)
    # Channels come last in memory, so that these are views.
    image = x.reshape(1, 1, -1, x.shape[-1]).permute(0, 3, 1, 2)  # (1, inputs, 1, N)
    kernel = weight.unflatten(1, (1, 1, -1)).permute(0, 3, 1, 2)  # (outputs, inputs, 1, 1)
    out = functional.conv2d(image, kernel, bias)  # (1, outputs, 1, N)
    return out.permute(0, 2, 3, 1).reshape(*x.shape[:-1], len(weight))
