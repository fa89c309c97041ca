"""Linear maps as torch computes them in decoding, in the weights' own precision or in bf16."""

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.steps import Precision

FEWEST_ROWS = 4  # Of a product by torch's own library: it adds fewer up in another order


class LinearMap:
    """A map of (..., inputs) to (..., outputs).

    Each row follows from its own input alone, as the output of a sentence must not depend on its
    batch: the weight lies transposed, so that each of ``FEWEST_ROWS`` or more adds up in one order.
    """

    def __init__(self, weight: Tensor, bias: Tensor, precision: Precision) -> None:
        """Take a weight (outputs, inputs) and a bias (outputs,); ``fp32`` leaves both as they are.

        That includes fp64.
        """
        if precision == "bf16":
            weight = weight.bfloat16()
            bias = bias.bfloat16()
        self._transposed = weight.t().contiguous()  # (inputs, outputs)
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs) of the weight's precision."""
        *before, inputs = x.shape
        rows = x.reshape(-1, inputs).to(self._bias.dtype)
        count = len(rows)
        if count < FEWEST_ROWS:
            rows = functional.pad(rows, (0, 0, 0, FEWEST_ROWS - count))
        y = torch.addmm(self._bias, rows, self._transposed)  # (rows, outputs)
        return y[:count].view(*before, -1)

    def of(self, outputs: Tensor) -> "LinearMap":
        """Return the map to some of the outputs alone: indices (S,), in fp32 at least.

        Of outputs in bf16 many are equal, and which of those comes first depends on where the
        others stand: on the shortlist of the whole batch.
        """
        dtype = torch.promote_types(self._bias.dtype, torch.float32)
        weight = self._transposed.t()[outputs]  # (S, inputs)
        bias = self._bias[outputs]
        return LinearMap(weight.to(dtype), bias.to(dtype), "fp32")
