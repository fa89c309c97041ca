"""Linear maps as torch computes them in decoding: in the weights' own precision or in bf16.

Each row of a result follows from its own row of the input alone, whatever other rows are computed
with it: the output of a sentence must not depend on its batch.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.steps import Precision

FEWEST_ROWS = 4  # Of a product by torch's own library: it adds fewer up in another order

ROWS_HINT = 128  # Rows that the layout of packed weights is chosen for; it serves any number


class LinearMap(Protocol):
    """A map of (..., inputs) to (..., outputs)."""

    outputs: int

    def __call__(self, x: Tensor) -> Tensor:
        """Map the rows."""

    def of(self, outputs: Tensor) -> "LinearMap":
        """Return the map to some of the outputs alone: indices (S,), in fp32 at least.

        Of outputs in bf16 many are equal, and which of those comes first depends on where the
        others stand: on the shortlist of the whole batch.
        """


def linear_map(weight: Tensor, bias: Tensor, precision: Precision) -> LinearMap:
    """Return the map of a weight (outputs, inputs) and a bias (outputs,).

    ``fp32`` leaves both as they are, fp64 included.
    """
    if precision == "bf16":
        weight, bias = weight.bfloat16(), bias.bfloat16()
    has_onednn = weight.device.type == "cpu" and torch.backends.mkldnn.is_available()
    is_packed = has_onednn and weight.dtype == torch.bfloat16
    if is_packed and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return PackedMap(weight, bias)
    return PlainMap(weight, bias)


class PlainMap:
    """A map in the precision of its weight, by torch's library for matrices.

    The weight lies transposed: rows that are few are faster so, and each adds up in the same order
    whatever their number from ``FEWEST_ROWS`` on.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        """Take a weight (outputs, inputs) and a bias (outputs,)."""
        self._transposed, self._bias = weight.t().contiguous(), bias
        self.outputs = len(weight)

    def __call__(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs) of the weight's precision."""
        bias, transposed = self._bias, self._transposed
        x = x.to(bias.dtype)
        return _by_rows(x, lambda rows: torch.addmm(bias, rows, transposed), FEWEST_ROWS)

    def of(self, outputs: Tensor) -> "PlainMap":
        """Return the map to some of the outputs alone."""
        return _exact(self._transposed.t()[outputs], self._bias[outputs])


class PackedMap:
    """A map in the precision of its weight, which oneDNN has laid out once."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        """Take a weight (outputs, inputs) and a bias (outputs,) of bf16."""
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS_HINT)
        self._bias = bias
        self.outputs = len(weight)

    def __call__(self, x: Tensor) -> Tensor:
        """Map (..., inputs) of the weight's precision to (..., outputs)."""
        multiply, packed, bias = torch.ops.mkldnn._linear_pointwise, self._packed, self._bias
        return _by_rows(x, lambda rows: multiply(rows, packed, bias, "none", [], ""), 2)

    def of(self, outputs: Tensor) -> PlainMap:
        """Return the map to some of the outputs alone."""
        return _exact(self._packed.to_dense()[outputs], self._bias[outputs])


def _exact(weight: Tensor, bias: Tensor) -> PlainMap:
    dtype = torch.promote_types(weight.dtype, torch.float32)
    return PlainMap(weight.to(dtype), bias.to(dtype))


def _by_rows(x: Tensor, multiply: Callable[[Tensor], Tensor], least: int) -> Tensor:
    """Map (..., inputs) to (..., outputs) by a product of rows (n, inputs).

    Fewer of them than ``least`` would be added up in another order: zeros make them as many.
    """
    if x.dim() == 2 and len(x) >= least:
        return multiply(x)
    rows = x.reshape(-1, x.shape[-1])
    if len(rows) < least:
        rows = functional.pad(rows, (0, 0, 0, least - len(rows)))
    return multiply(rows)[: x.shape[:-1].numel()].view(*x.shape[:-1], -1)
