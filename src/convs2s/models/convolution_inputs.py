"""The last inputs of all convolutions of a stack that is computed a position at a time."""

from collections.abc import Sequence

from torch import Tensor


class ConvolutionInputs:
    """The windows of R rows, which lie side by side where blocks are as wide.

    So one operation moves all windows of a width to the next position and puts their rows in
    another order.

    Attributes:
        windows: for each block (R, kernel * inputs), a view.
        newest: for each block the last input of its window (R, inputs), a view, to be written.
    """

    windows: list[Tensor]
    newest: list[Tensor]

    def __init__(self, shapes: Sequence[tuple[int, int]], rows: int, like: Tensor) -> None:
        """Start with zeros, on a tensor's device and in its precision.

        Args:
            shapes: kernel and inputs of each block.
            rows: R.
            like: any tensor.
        """
        self._shapes = shapes
        widths: dict[int, int] = {}  # inputs of a convolution -> columns of all such windows
        for kernel, inputs in shapes:
            widths[inputs] = widths.get(inputs, 0) + kernel * inputs
        self._buffers = {inputs: like.new_zeros(rows, all) for inputs, all in widths.items()}
        self._divide()

    def shift(self, order: Tensor | None) -> None:
        """Move all windows by a position; ``order`` (R',) chooses the rows, None: as they are."""
        rows = -1 if order is None else len(order)
        for inputs, buffer in self._buffers.items():
            later = buffer[:, inputs:]
            moved = later.clone() if order is None else later.index_select(0, order)
            if len(moved) != len(buffer):
                buffer = buffer.new_empty(rows, buffer.shape[1])
                self._buffers[inputs] = buffer
            buffer[:, :-inputs].copy_(moved)
        if self.newest and rows not in (-1, len(self.newest[0])):
            self._divide()

    def clear(self) -> None:
        """Start again with zeros, in the same places."""
        for buffer in self._buffers.values():
            buffer.zero_()

    def _divide(self) -> None:
        """Find each block's columns."""
        ends = dict.fromkeys(self._buffers, 0)
        self.windows, self.newest = [], []
        for kernel, inputs in self._shapes:
            start, end = ends[inputs], ends[inputs] + kernel * inputs
            self.windows.append(self._buffers[inputs][:, start:end])
            self.newest.append(self._buffers[inputs][:, end - inputs : end])
            ends[inputs] = end
