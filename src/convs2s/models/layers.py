"""The layers of the networks: weight-normalized maps, embeddings, gradient scaling.

Shapes: B batch, n positions. Sections are those of the paper (Gehring et al. 2017).
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.models.kernels import matmul
from convs2s.models.kernels.dropout import dropout
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.steps import Precision


class WeightNormalized(nn.Module):
    """A map whose weight is ``g * v / ||v||`` (Salimans & Kingma 2016; section 4.2).

    ``weight_v`` (outputs, ...) is v; the subclass chooses the other dimensions. ``weight_g``
    (outputs,) is g, with one number for each output. ``bias`` is (outputs,) too.
    """

    def __init__(self, shape: tuple[int, ...], standard_deviation: float) -> None:
        """Draw v from a normal distribution with mean 0, and set the bias to 0.

        g becomes the norm of v, so the initial weight is v itself.
        """
        super().__init__()
        drawn = torch.empty(shape).normal_(0.0, standard_deviation)
        self.weight_v = nn.Parameter(drawn)
        norms = drawn.flatten(1).norm(dim=1)  # (outputs,)
        self.weight_g = nn.Parameter(norms)
        outputs = shape[0]
        self.bias = nn.Parameter(torch.zeros(outputs))
        self._fused: LinearMap | None = None  # the map that ``fuse`` makes for decoding

    def fuse(self, precision: Precision) -> None:
        """Normalize the weight once, for decoding. This deletes the parameters."""
        self._fused = LinearMap(self.weight(), self.bias, precision)
        del self.weight_v, self.weight_g, self.bias

    def map(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        if self._fused is not None:
            return self._fused(x)
        return matmul.linear(x, self.weight(), self.bias)

    def weight(self) -> Tensor:
        """Return the normalized weight as a matrix (outputs, inputs)."""
        v = self.weight_v.flatten(1)  # (outputs, inputs)
        g = self.weight_g.unsqueeze(1)  # (outputs, 1)
        if v.device.type != "cpu" and torch.compiler.is_compiling():
            # torch.compile fuses these operations and the casts to autocast's precision into two
            # kernels, one for the forward and one for the backward pass. It cannot fuse
            # ``_weight_norm`` with anything.
            # (outputs, 1)
            norm: Tensor = torch.linalg.vector_norm(v, dim=1, keepdim=True)
            return v * (g / norm)
        # This kernel reads the weight from memory once in the forward pass and once in the backward
        # pass. With ``g * v / v.norm()``, each of the two would read it several times.
        weight: Tensor = torch._weight_norm(v, g, 0)
        return weight


class Linear(WeightNormalized):
    """A weight-normalized linear map from ``inputs`` to ``outputs``."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        keep_prob: float = 1.0,
    ) -> None:
        """Initialize with the standard deviation sqrt(keep_prob / inputs) (section 3.5).

        ``keep_prob`` is the probability that dropout right before the map keeps an input.
        """
        standard_deviation = math.sqrt(keep_prob / inputs)
        super().__init__((outputs, inputs), standard_deviation)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        return self.map(x)


class GatedConvolution(WeightNormalized):
    """A convolution over positions, followed by a gated linear unit (GLU, section 3.2).

    It has ``inputs`` channels, computes 2 * ``outputs`` channels (values and gates), and returns
    ``outputs`` channels.

    The convolution is computed as one matrix product with the windows of the input. On CPUs this is
    faster than torch's convolution, and decoding, which has one window at a time, can use the same
    weight. ``weight_v`` is (2 * outputs, kernel, inputs).
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        keep_prob: float,
    ) -> None:
        """Initialize with the standard deviation sqrt(4 * keep_prob / n), n = kernel * inputs.

        Without the factor 4 the GLU's output would have a smaller variance than its input (section
        3.5). ``keep_prob`` is the probability that dropout right before the map keeps an input.
        """
        standard_deviation = math.sqrt(4.0 * keep_prob / (kernel * inputs))
        super().__init__((2 * outputs, kernel, inputs), standard_deviation)
        self.inputs = inputs
        self.kernel = kernel

    def forward(self, x: Tensor, left: int) -> Tensor:
        """Map (B, n, inputs) to (B, n, outputs).

        The window of a position begins ``left`` positions before it.
        """
        windows = matmul.windows(x, self.kernel, left)  # (B, n, kernel * inputs)
        return self.gate(windows)

    def gate(self, windows: Tensor) -> Tensor:
        """Map windows (..., kernel * inputs) to (..., outputs)."""
        values_and_gates = self.map(windows)  # (..., 2 * outputs)
        return functional.glu(values_and_gates, dim=-1)


class PlainOutput(nn.Module):
    """A map from features to logits without weight normalization, as in the LSTM."""

    def __init__(self, inputs: int, types: int) -> None:
        """Allocate the parameters; the network that has this layer must initialize them."""
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
    """A map from features to logits as a lookup table, for vocabulary selection.

    Vocabulary selection uses only some rows of the table. As in the authors' code, the table is not
    weight-normalized.
    """

    def __init__(self, inputs: int, types: int) -> None:
        """Draw the table and the bias with mean 0 and the standard deviation 0.1.

        The other lookup tables, those of ``Embedding``, are drawn in the same way.
        """
        super().__init__(inputs, types)
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0.0, 0.1)


class Embedding(nn.Module):
    """The sum of the learned embeddings of a token and its position, with dropout (section 3.1)."""

    def __init__(
        self,
        types: int,
        width: int,
        positions: int | None,
        drop_probability: float,
    ) -> None:
        """Draw both tables with mean 0 and the standard deviation 0.1 (section 3.5).

        ``positions`` is the number of rows of the position table; None means that there is none.
        """
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(types, width).normal_(0.0, 0.1))
        self.positions: nn.Parameter | None = None
        if positions is not None:
            self.positions = nn.Parameter(
                torch.empty(positions, width).normal_(0.0, 0.1)
            )
        self.dropout = drop_probability

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Map indices (B, n) to (B, n, width).

        ``positions`` (n,) are the positions of the tokens, or (1,) if all tokens are at the same
        position; None means 0 to n - 1. Positions past the end of the table share its last row. In
        practice these are padding, because training refuses longer sentences and translation cuts
        them.
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
    """Return ``x`` in the precision of autocast, if autocast is on.

    Without this cast, autocast would cast ``x`` before each matrix product that reads it, and the
    sums of ``x`` and other tensors would be in fp32.
    """
    device_type = x.device.type
    if not torch.is_autocast_enabled(device_type):
        return x
    return x.to(torch.get_autocast_dtype(device_type))


class _ScaleGradient(torch.autograd.Function):
    """The identity, whose gradient is multiplied by a factor."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        factor: float,
    ) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return ``x``, and multiply its gradient by ``factor`` in the backward pass."""
    scaled: Tensor = _ScaleGradient.apply(x, factor)  # type: ignore[no-untyped-call]
    return scaled
