"""Linear maps for decoding with torch, in the precision of their weights or in bf16."""

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.steps import Precision

FEWEST_ROWS = 4
"""Minimum number of rows of a product. For fewer, torch's library adds terms in another order."""


class LinearMap:
    """A map from (..., inputs) to (..., outputs).

    The output of a sentence must not depend on its batch, so a row of the result must not depend on
    the number of rows. Therefore the weight is stored transposed, and a product has at least
    ``FEWEST_ROWS`` rows: then the terms of each row are always added in the same order.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor,
        precision: Precision,
    ) -> None:
        """Take a weight (outputs, inputs) and a bias (outputs,), without their gradients.

        ``bf16`` rounds both. ``fp32`` keeps their precision, even if it is fp64.
        """
        weight = weight.detach()
        bias = bias.detach()
        if precision == "bf16":
            weight = weight.bfloat16()
            bias = bias.bfloat16()
        self._transposed = weight.t().contiguous()  # (inputs, outputs)
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs), in the precision of the weight."""
        *before, inputs = x.shape
        rows = x.reshape(-1, inputs)  # (rows, inputs)
        rows = rows.to(self._bias.dtype)
        count = len(rows)
        if count < FEWEST_ROWS:
            missing = FEWEST_ROWS - count
            rows = functional.pad(rows, (0, 0, 0, missing))
        y = torch.addmm(self._bias, rows, self._transposed)  # (rows, outputs)
        return y[:count].view(*before, -1)

    def of(self, outputs: Tensor) -> "LinearMap":
        """Return the map to only these outputs, given as indices (S,), in fp32 or higher.

        In bf16, many outputs would be equal. Which of the equal outputs a search takes depends on
        their places among the S outputs, and so on the other sentences that share the shortlist.
        """
        dtype = torch.promote_types(self._bias.dtype, torch.float32)
        weight = self._transposed.t()[outputs]  # (S, inputs)
        weight = weight.to(dtype)
        bias = self._bias[outputs]  # (S,)
        bias = bias.to(dtype)
        return LinearMap(weight, bias, "fp32")
