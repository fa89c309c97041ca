"""Dropout with masks that are fast to draw on a CPU.

On a CPU, torch draws the numbers of a mask one by one, which takes a tenth of a training step. Here
each value of a mask is decided by 16 bits of numpy's generator SFC64. Its seed is drawn from
torch's generator, so that ``torch.manual_seed`` still determines the masks. On a GPU, torch's own
kernel is used.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

_LEVELS = 1 << 16
"""Number of different 16-bit integers."""


def dropout(
    x: Tensor,
    probability: float,
    training: bool,
    padding: Tensor | None = None,
) -> Tensor:
    """Set each value to zero with ``probability``, and divide the others by 1 - ``probability``.

    On a CPU the probability is rounded to a multiple of 2^-16. If ``padding`` (B, n) is given, the
    values of x (B, n, d) at padding become zero as well, also outside of training.
    """
    # A value is dropped if its integer is one of the lowest ``dropped`` of all _LEVELS integers.
    dropped = round(probability * _LEVELS)
    draws_mask = training and dropped > 0 and x.device.type == "cpu"
    if not draws_mask:
        if padding is not None:
            x = x.masked_fill(padding.unsqueeze(2), 0.0)
        return functional.dropout(x, probability) if training else x
    count = x.numel()
    bits = random_bits(count)  # signed: -_LEVELS / 2 to _LEVELS / 2 - 1
    # The mask has the type of x. Otherwise it would be cast before each product.
    keep = x.new_empty(count)
    torch.ge(bits, dropped - _LEVELS // 2, out=keep)
    keep = keep.view(x.shape)
    if padding is not None:
        present = (~padding).to(x.dtype)  # (B, n)
        keep *= present.unsqueeze(2)
    scale = _LEVELS / (_LEVELS - dropped)
    masked: Tensor = _Mask.apply(x, keep, scale)  # type: ignore[no-untyped-call]
    return masked


class _Mask(torch.autograd.Function):
    """Multiplication by a mask. Only the mask is kept for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        keep: Tensor,
        scale: float,
    ) -> Tensor:
        """Return x * keep * scale; ``keep``, in the shape of x, has ones and zeros."""
        ctx.save_for_backward(keep)
        ctx.scale = scale
        masked = x * keep
        return masked.mul_(scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        (gradient,) = gradients
        masked = gradient * keep
        return masked.mul_(ctx.scale), None, None


def random_bits(count: int) -> Tensor:
    """Return ``count`` uniform, signed 16-bit integers, with a seed from torch's generator."""
    drawn = torch.randint(2**62, ())
    seed = int(drawn.numpy())
    bit_generator = np.random.SFC64(seed)
    generator = np.random.Generator(bit_generator)
    # Each 64-bit word has four of the integers.
    word_count = math.ceil(count / 4)
    words = generator.integers(0, 2**64, word_count, np.uint64)
    bits = words.view(np.int16)
    return torch.from_numpy(bits)[:count]


def hide_masks_from_compiler() -> None:
    """Make torch.compile call ``random_bits`` unchanged, because it cannot compile numpy's draws.

    Only trainings that compile call this. ``torch.compiler.disable`` loads the compiler, so as a
    decorator it would cost each job two seconds.
    """
    global random_bits
    random_bits = torch.compiler.disable(random_bits)
