"""The layers of the networks: weight-normalized maps, embeddings, gradient scaling."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.models.kernels.dropout import dropout
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.kernels.matmul import linear, windows
from convs2s.models.steps import Precision

SQRT_HALF = math.sqrt(0.5)
"""Scale of a sum of two terms, which keeps its variance (paper, section 3.4)."""


class WeightNormalized(nn.Module):
    """A weight matrix as ``g * v / ||v||``, one g per output (Salimans & Kingma 2016; section 4.2).

    ``weight_v`` is v, of the shape that the subclass gives, the output dimension first;
    ``weight_g``, which is g, and ``bias`` are (outputs,).
    """

    def __init__(self, shape: tuple[int, ...], standard_deviation: float) -> None:
        """Draw the weight from N(0, standard_deviation); g is such that the weight is the draw."""
        super().__init__()
        drawn = torch.empty(shape).normal_(0.0, standard_deviation)
        self.weight_v = nn.Parameter(drawn)
        self.weight_g = nn.Parameter(drawn.flatten(1).norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(shape[0]))
        self._fused: LinearMap | None = None

    def fuse(self, precision: Precision) -> None:
        """Normalize the weight once and for all, for decoding alone: the parameters are dropped."""
        self._fused = LinearMap(self.weight().detach(), self.bias.detach(), precision)
        del self.weight_v, self.weight_g, self.bias

    def map(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        if self._fused is not None:
            return self._fused(x)
        return linear(x, self.weight(), self.bias)

    def weight(self) -> Tensor:
        """Return the normalized weight as a matrix (outputs, inputs)."""
        v = self.weight_v.flatten(1)  # (outputs, inputs)
        g = self.weight_g.unsqueeze(1)  # (outputs, 1)
        if v.device.type != "cpu" and torch.compiler.is_compiling():
            # The compiler takes one pass each way, casts included, and no other kernel's result.
            norm: Tensor = torch.linalg.vector_norm(v, dim=1, keepdim=True)
            return v * (g / norm)
        # One pass over memory forward and one back, where g * v / v.norm() takes several.
        weight: Tensor = torch._weight_norm(v, g, 0)
        return weight


class Linear(WeightNormalized):
    """A weight-normalized linear map from ``inputs`` to ``outputs``."""

    def __init__(self, inputs: int, outputs: int, keep_prob: float = 1.0) -> None:
        """Initialize with N(0, sqrt(keep_prob / inputs)) (section 3.5).

        ``keep_prob`` is the probability that dropout right before the map keeps an input.
        """
        standard_deviation = math.sqrt(keep_prob / inputs)
        super().__init__((outputs, inputs), standard_deviation)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        return self.map(x)


class GatedConvolution(WeightNormalized):
    """A convolution over positions from d to 2d' channels and a gated linear unit (section 3.2).

    It is computed as one matrix product over the windows of the input, which on CPUs beats the
    convolution kernels and lets incremental decoding use the same weight. ``weight_v`` is
    (2 * outputs, kernel, inputs).
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        keep_prob: float = 1.0,
    ) -> None:
        """Initialize with N(0, sqrt(4 keep_prob / n)), n = kernel * inputs, as it feeds a GLU."""
        standard_deviation = math.sqrt(4.0 * keep_prob / (kernel * inputs))
        super().__init__((2 * outputs, kernel, inputs), standard_deviation)
        self.inputs = inputs
        self.kernel = kernel

    def forward(self, x: Tensor, left: int) -> Tensor:
        """Map (B, n, inputs) to (B, n, outputs), ``left`` positions of a window before its own."""
        window = windows(x, self.kernel, left)  # (B, n, kernel * inputs)
        return self.gate(window)

    def gate(self, windows: Tensor) -> Tensor:
        """Map windows (..., kernel * inputs) to (..., outputs)."""
        both = self.map(windows)  # (..., 2 * outputs), values and gates
        return functional.glu(both, dim=-1)


class PlainOutput(nn.Module):
    """A map to the logits without weight normalization: the LSTM's."""

    def __init__(self, inputs: int, types: int) -> None:
        """Make room for the parameters; the network that owns them draws them."""
        super().__init__()
        self.table = nn.Parameter(torch.empty(types, inputs))
        self.bias = nn.Parameter(torch.empty(types))

    def weight(self) -> Tensor:
        """Return the table (types, inputs)."""
        return self.table

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., types)."""
        return functional.linear(x, self.table, self.bias)


class OutputTable(PlainOutput):
    """A map to the logits as a lookup table, of which vocabulary selection takes some rows.

    As in the authors' code it is not weight-normalized.
    """

    def __init__(self, inputs: int, types: int) -> None:
        """Draw the rows and the bias from N(0, 0.1), as of any lookup table."""
        super().__init__(inputs, types)
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0.0, 0.1)


class Embedding(nn.Module):
    """Token plus learned absolute position embedding, then dropout (section 3.1)."""

    def __init__(
        self,
        types: int,
        width: int,
        positions: int | None,
        dropout: float,
    ) -> None:
        """Make the tables, N(0, 0.1) each (section 3.5); ``positions`` None switches them off."""
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(types, width).normal_(0.0, 0.1))
        self.positions: nn.Parameter | None = None
        if positions is not None:
            self.positions = nn.Parameter(torch.empty(positions, width).normal_(0.0, 0.1))
        self.dropout = dropout

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Map indices (B, n) to (B, n, width); positions past the table's end share its last row.

        Longer sentences are cut before they come here. ``positions`` (n,) are those of the tokens,
        or (1,) that of all; None: from 0 to n - 1.
        """
        embedded = functional.embedding(tokens, self.tokens)
        if self.positions is not None:
            if positions is None:
                positions = torch.arange(tokens.shape[1], device=tokens.device)
            last = len(self.positions) - 1
            positions = positions.clamp(max=last)
            embedded = embedded + functional.embedding(positions, self.positions)
        return dropout(in_autocast(embedded), self.dropout, self.training)


def in_autocast(x: Tensor) -> Tensor:
    """Return ``x`` in the precision of autocast, where it is on.

    Autocast would cast it again before each matrix product, and sums with other results to fp32.
    """
    device_type = x.device.type
    if not torch.is_autocast_enabled(device_type):
        return x
    return x.to(torch.get_autocast_dtype(device_type))


class _ScaleGradient(torch.autograd.Function):
    """The identity, with a scaled gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return ``x``; its gradient is multiplied by ``factor`` on the way back."""
    scaled: Tensor = _ScaleGradient.apply(x, factor)  # type: ignore[no-untyped-call]
    return scaled
