"""The windows of a convolution over positions, as rows of a matrix."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


class _Windows(torch.autograd.Function):
    """Writes each position where its windows want it, without a padded copy in between."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int, left: int) -> Tensor:
        """Map (B, n, d) to (B, n, kernel * d)."""
        ctx.kernel, ctx.left = kernel, left
        batch, positions, width = x.shape
        windows = x.new_empty(batch, positions, kernel * width)
        for columns, inside, read in _offsets(positions, width, kernel, left):
            block = windows[:, :, columns]
            block[:, inside] = x[:, read]
            block[:, : inside.start] = 0.0
            block[:, inside.stop :] = 0.0
        return windows

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Add up, for each position (B, n, d), what all windows that hold it say."""
        (gradient,) = gradients
        batch, positions, width = gradient.shape
        width //= ctx.kernel
        summed = gradient.new_zeros(batch, positions, width)
        for columns, inside, read in _offsets(positions, width, ctx.kernel, ctx.left):
            summed[:, read] += gradient[:, inside, columns]
        return summed, None, None


def _offsets(
    positions: int, width: int, kernel: int, left: int
) -> Iterator[tuple[slice, slice, slice]]:
    """Yield for each place of the window its columns, the windows where it is inside, its input."""
    for place in range(kernel):
        shift = place - left  # window i holds input i + shift
        start = min(max(0, -shift), positions)
        stop = max(min(positions, positions - shift), start)
        yield (
            slice(place * width, (place + 1) * width),
            slice(start, stop),
            slice(start + shift, stop + shift) if stop > start else slice(0, 0),
        )


def windows(x: Tensor, kernel: int, left: int) -> Tensor:
    """Return the window of each position, zeros where it reaches past an end.

    Args:
        x: (B, n, d).
        kernel: positions of a window.
        left: how many of them lie before the position: kernel - 1 for a causal convolution.

    Returns:
        (B, n, kernel * d), the window's positions in their order.
    """
    if kernel == 1:
        return x
    unfolded: Tensor = _Windows.apply(x, kernel, left)  # type: ignore[no-untyped-call]
    return unfolded
