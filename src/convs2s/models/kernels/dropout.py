"""Dropout whose masks cost little on a CPU.

torch draws a CPU's masks one number at a time, a tenth of a training step. Here 16 bits from
numpy's SFC64 decide each value; its seed comes from torch's generator, so that
``torch.manual_seed`` fixes the masks as before. A GPU keeps torch's own kernel.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

_LEVELS = 1 << 16


class _Mask(torch.autograd.Function):
    """Multiplication by a mask, which alone is kept for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor, scale: float) -> Tensor:
        """Multiply what ``keep``, of x's shape, keeps by ``scale``, and the rest by 0."""
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (x * keep).mul_(scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep).mul_(ctx.scale), None, None


def dropout(
    x: Tensor,
    probability: float,
    training: bool,
    padding: Tensor | None = None,
) -> Tensor:
    """Zero each value with ``probability`` and divide the others by what is left of 1.

    On a CPU the probability is rounded to a multiple of 2^-16. Values of x (B, n, d) become zero
    where the padding (B, n) is True, in training and otherwise.
    """
    dropped = round(probability * _LEVELS)
    if not training or dropped == 0 or x.device.type != "cpu":
        if padding is not None:
            x = x.masked_fill(padding.unsqueeze(2), 0.0)
        return functional.dropout(x, probability) if training else x
    count = x.numel()
    bits = random_bits(count)  # signed: from -_LEVELS / 2 on
    # A mask of another type than x would be cast before each product with it.
    keep = x.new_empty(count)
    torch.ge(bits, dropped - _LEVELS // 2, out=keep)
    keep = keep.view(x.shape)
    if padding is not None:
        keep *= (~padding).to(x.dtype).unsqueeze(2)
    scale = _LEVELS / (_LEVELS - dropped)
    masked: Tensor = _Mask.apply(x, keep, scale)  # type: ignore[no-untyped-call]
    return masked


def random_bits(count: int) -> Tensor:
    """Return ``count`` uniform 16-bit integers, seeded by torch's generator."""
    seed = int(torch.randint(2**62, ()).numpy())
    generator = np.random.Generator(np.random.SFC64(seed))
    words = generator.integers(0, 2**64, math.ceil(count / 4), np.uint64)  # of four each
    return torch.from_numpy(words.view(np.int16))[:count]


def hide_masks_from_compiler() -> None:
    """Have torch.compile call ``random_bits``, which it cannot look into, as it stands.

    No decorator does it: ``torch.compiler.disable`` loads the compiler, two seconds of every job.
    """
    global random_bits
    random_bits = torch.compiler.disable(random_bits)
