"""The last inputs of all convolutions, from which decoding computes their next outputs.

Shapes: B sentences, K hypotheses of each, R = B * K rows.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


class Windows:
    """The window of each convolution that ends in the newest input: R rows for each block.

    Windows of blocks of a width lie side by side, so that one operation moves all of them to the
    next position and puts their rows in another order.
    """

    def __init__(self, shapes: Sequence[tuple[int, int]], rows: int, like: Tensor) -> None:
        """Start with zeros, on the device and in the precision of ``like``.

        ``shapes`` are the kernel and the inputs of each block, ``rows`` is R.
        """
        self._shapes = shapes
        widths: dict[int, int] = {}  # inputs of a convolution -> columns of the buffer
        for kernel, inputs in shapes:
            widths[inputs] = widths.get(inputs, 0) + kernel * inputs
        self._buffers = {inputs: like.new_zeros(rows, width) for inputs, width in widths.items()}
        self.position = like.new_full((1,), -1, dtype=torch.long)  # of the newest inputs
        self._make_views()

    def _make_views(self) -> None:
        self._windows: list[Tensor] = []  # of each block (R, kernel * inputs)
        self._newest: list[Tensor] = []  # of each block its last input (R, inputs)
        ends = dict.fromkeys(self._buffers, 0)
        for kernel, inputs in self._shapes:
            start = ends[inputs]
            end = start + kernel * inputs
            ends[inputs] = end
            self._windows.append(self._buffers[inputs][:, start:end])
            self._newest.append(self._buffers[inputs][:, end - inputs : end])

    def add(self, block: int, x: Tensor) -> Tensor:
        """Write a block's newest input (B, K, inputs).

        Return its windows (B, K, kernel * inputs), which end in it.
        """
        self._newest[block].copy_(x.flatten(0, 1))
        return self._windows[block].view(*x.shape[:2], -1)

    def shift(self, order: Tensor | None) -> None:
        """Move all windows to the next position, to which ``add`` writes.

        ``order`` (R',) chooses the rows; None leaves them as they are.
        """
        self.position.add_(1)
        rows = len(self._newest[0])
        for inputs, buffer in self._buffers.items():
            later = buffer[:, inputs:]
            moved = later.clone() if order is None else later.index_select(0, order)
            if len(moved) != rows:
                buffer = buffer.new_empty(len(moved), buffer.shape[1])
                self._buffers[inputs] = buffer
            # Each window's first columns get the last of the window before; `add` writes over them.
            buffer[:, :-inputs].copy_(moved)
        if order is not None and len(order) != rows:
            self._make_views()

    def clear(self) -> None:
        """Start again with zeros, in the same places."""
        for buffer in self._buffers.values():
            buffer.zero_()
        self.position.fill_(-1)
