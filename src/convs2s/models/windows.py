"""The last inputs of all convolutions, from which decoding computes their next outputs.

Shapes: B sentences, K hypotheses of each, R = B * K rows.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


class Windows:
    """The last kernel - 1 inputs of each convolution, which it reads again at the next position.

    The inputs of all blocks are stored side by side in one tensor (R, width), those of the bottom
    block first. So one operation puts the rows of all blocks in another order.

    For each position call ``begin``, then ``add`` for each block from the bottom to the top, then
    ``end``.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        rows: int,
        like: Tensor,
    ) -> None:
        """Start with zeros, on the device and in the precision of ``like``.

        ``shapes`` are the kernel width and the number of inputs of each block, ``rows`` is R.
        """
        self._widths = [(kernel - 1) * inputs for kernel, inputs in shapes]
        self._earlier = like.new_zeros(rows, sum(self._widths))
        # The position of the newest inputs. Steps that are recorded as a CUDA graph
        # (``recorded_ensemble``) read this tensor, so it is changed in place.
        self.position = like.new_full((1,), -1, dtype=torch.long)
        # For each block: the inputs that it reads again in this step.
        self._earlier_by_block: Sequence[Tensor] = []
        # For each block: the inputs that it will read again in the next step.
        self._later_by_block: list[Tensor] = []

    def begin(self, order: Tensor) -> None:
        """Begin the step of the next position; ``order`` (R',) are the rows to continue."""
        self.position.add_(1)
        earlier = self._earlier.index_select(0, order)
        self._earlier_by_block = earlier.split(self._widths, dim=1)
        self._later_by_block = []

    def add(self, block: int, x: Tensor) -> Tensor:
        """Add the newest input (B, K, inputs) of a block, given by its number.

        Return the windows (B, K, kernel * inputs) that end with this input.
        """
        batch, hypotheses, inputs = x.shape
        newest = x.flatten(0, 1)  # (R, inputs)
        earlier = self._earlier_by_block[block]  # (R, (kernel - 1) * inputs)
        window = torch.cat([earlier, newest], dim=1)  # (R, kernel * inputs)
        self._later_by_block.append(window[:, inputs:])
        return window.view(batch, hypotheses, -1)

    def end(self) -> None:
        """Keep the inputs that the next step reads again.

        Unless the number of rows has changed, they are written to the same memory, because recorded
        steps read from there.
        """
        later = torch.cat(self._later_by_block, dim=1)
        if len(later) == len(self._earlier):
            self._earlier.copy_(later)
        else:
            self._earlier = later

    def clear(self) -> None:
        """Start again with zeros, in the same memory."""
        self._earlier.zero_()
        self.position.fill_(-1)
