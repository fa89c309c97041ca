"""The last inputs of all convolutions, from which decoding computes their next outputs.

Shapes: B sentences, K hypotheses of each, R = B * K rows.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


class Windows:
    """What each convolution reads again at the next position: all but the oldest of its inputs.

    Those of all blocks lie side by side (R, width), the bottom one's first, so that one operation
    puts their rows in another order.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        rows: int,
        like: Tensor,
    ) -> None:
        """Start with zeros, on the device and in the precision of ``like``.

        ``shapes`` are the kernel and the inputs of each block, ``rows`` is R.
        """
        self._widths = [(kernel - 1) * inputs for kernel, inputs in shapes]
        self._earlier = like.new_zeros(rows, sum(self._widths))
        self.position = like.new_full((1,), -1, dtype=torch.long)  # of the newest inputs
        self._blocks: Sequence[Tensor] = []  # of each block, in this step
        self._later: list[Tensor] = []  # the same for the next one

    def begin(self, order: Tensor) -> None:
        """Begin the step of the next position; ``order`` (R',) chooses the rows."""
        self.position.add_(1)
        earlier = self._earlier.index_select(0, order)
        self._blocks = earlier.split(self._widths, dim=1)
        self._later = []

    def add(self, block: int, x: Tensor) -> Tensor:
        """Take a block's newest input (B, K, inputs).

        Return its windows (B, K, kernel * inputs), which end in it.
        """
        batch, hypotheses, inputs = x.shape
        newest = x.flatten(0, 1)  # (R, inputs)
        window = torch.cat([self._blocks[block], newest], dim=1)  # (R, kernel * inputs)
        self._later.append(window[:, inputs:])
        return window.view(batch, hypotheses, -1)

    def end(self) -> None:
        """Keep what the next step reads, in the same place unless there are fewer rows now."""
        later = torch.cat(self._later, dim=1)
        if len(later) == len(self._earlier):
            self._earlier.copy_(later)
        else:
            self._earlier = later

    def clear(self) -> None:
        """Start again with zeros, in the same places."""
        self._earlier.zero_()
        self.position.fill_(-1)
