"""Linear maps as decoding computes them: in the weights' own precision, in bf16 or in int8.

Each row of a result follows from its own row of the input alone, whatever other rows are computed
with it: the output of a sentence must not depend on its batch.
"""

import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.errors import UserError
from convs2s.models.kernels.measurements import least_seconds, measured_here, one_thread

Precision = Literal["fp32", "bf16", "int8"]

LARGEST = 127
"""The largest magnitude of an 8-bit value here: -128 is left out, so that signs are symmetric."""

LARGEST_OF_SEVEN_BITS = 63
"""That of inputs without VNNI, where two products with them still fit into 16 bits."""

FEWEST_ROWS = 4  # Of a product by torch's own library: it adds fewer up in another order

LARGE = 1 << 20
"""Numbers of an fp32 weight from which on oneDNN's packed layout is faster for few rows: a product
by it costs 30 microseconds more than one by MKL, whatever its size."""

ROWS_HINT = 128  # Rows that the layout of packed weights is chosen for; it serves any number

PACKING_MARGIN = 1.5
"""By how much oneDNN must be faster than torch's own library for smaller fp32 weights: both round
differently, and noise must not change the bytes of a translation."""


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
    if precision == "int8":
        return Int8Map.of_weight(weight, bias)
    if precision == "bf16":
        weight, bias = weight.bfloat16(), bias.bfloat16()
    packs = False  # whether oneDNN's layout of the weight is better
    if weight.device.type == "cpu" and torch.backends.mkldnn.is_available():
        if weight.dtype == torch.bfloat16:
            packs = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
        elif weight.dtype == torch.float32:
            packs = weight.numel() >= LARGE or packs_fp32()
    return PackedMap(weight, bias) if packs else PlainMap(weight, bias)


@cache
def packs_fp32() -> bool:
    """Return whether oneDNN's layout is better for small fp32 weights, as first measured here.

    torch's own library is MKL on x86, whose fast kernels are for one maker's processors: on
    another one oneDNN's are twice to four times as fast. One product is measured for all networks:
    a batch of a middling layer.
    """
    rows, inputs, outputs = 64, 512, 768

    def measure() -> Mapping[str, float]:
        x, weight, bias = torch.ones(rows, inputs), torch.ones(outputs, inputs), torch.ones(outputs)
        plain, packed = PlainMap(weight, bias), PackedMap(weight, bias)
        with torch.inference_mode():
            seconds = least_seconds({"blas": [lambda: plain(x)], "onednn": [lambda: packed(x)]})
        return {name: 2 * rows * inputs * outputs / least for name, (least,) in seconds.items()}

    try:
        with one_thread():
            rates = measured_here(["maps in fp32", rows, inputs, outputs], measure)
    except UserError as error:
        print(f"{error}; maps in fp32 are computed by blas, unmeasured", file=sys.stderr)
        return False
    return rates["onednn"] > PACKING_MARGIN * rates["blas"]


def runs_int8() -> bool:
    """Return whether this machine has products of 8-bit integers."""
    return torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


def has_vnni() -> bool:
    """Return whether this machine adds products of bytes up in 32 bits.

    Without it, x86 adds two of them up in 16 bits first, which overflow.
    """
    return torch.cpu._is_vnni_supported()


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
        """Take a weight (outputs, inputs) and a bias (outputs,), of fp32 or bf16."""
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


class Int8Map:
    """A map of 8-bit integers: a scale for each output of the weight and each row of the input.

    Integers add up exactly, in any order. The kernel's fast case is unsigned inputs and a single
    scale for all rows, so inputs are shifted by 128, which ``offset`` takes off again, and the rows
    are scaled after it. Without VNNI inputs have seven bits and are shifted by 64.
    """

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor) -> None:
        """Take an integer weight (outputs, inputs), its outputs' scales and the bias (outputs,)."""
        self._weight, self._scale, self._bias = weight, scale, bias
        self.outputs = len(weight)
        self._packed = torch.ops.onednn.qlinear_prepack(weight, [ROWS_HINT, weight.shape[1]])
        self._largest = LARGEST if has_vnni() else LARGEST_OF_SEVEN_BITS
        self._offset = weight.sum(1).float() * scale * -(self._largest + 1.0)
        self._zero = torch.zeros(len(weight), dtype=torch.int32)

    @classmethod
    def of_weight(cls, weight: Tensor, bias: Tensor) -> "Int8Map":
        """Round a weight (outputs, inputs) to integers."""
        scale = (weight.abs().amax(1) / LARGEST).clamp_min(torch.finfo(torch.float32).tiny)
        integers = (weight / scale.unsqueeze(1)).round().to(torch.int8)
        return cls(integers, scale.float(), bias.float())

    def __call__(self, x: Tensor) -> Tensor:
        """Map (..., inputs) in fp32 to (..., outputs) in fp32."""
        rows = x.reshape(-1, x.shape[-1])
        scale = (rows.abs().amax(1, keepdim=True) / self._largest).clamp_min(1e-30)  # (rows, 1)
        # Signed bytes first, shifted as bytes that wrap: torch converts floats to unsigned bytes
        # one by one, to signed ones in vectors, five times as fast.
        signed = (rows * scale.reciprocal()).round_().to(torch.int8)
        integers = signed.view(torch.uint8).add_(self._largest + 1)
        y: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(integers, 1.0, 0, self._packed, self._scale, self._zero, self._offset),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        y = torch.addcmul(self._bias, y, scale)  # (rows, outputs)
        return y.view(*x.shape[:-1], -1)

    def of(self, outputs: Tensor) -> "Int8Map":
        """Return the map to some of the outputs alone."""
        parts = (self._weight, self._scale, self._bias)
        return Int8Map(*(part.index_select(0, outputs) for part in parts))
