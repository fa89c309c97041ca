"""What the decoder attends to while it decodes (section 3.3), projected once for each source.

A block's query is W h + b + g, of the convolution's output h and the embedding g of the last target
token. Its product with the encoder's output z is h (W^T z) + b z + g z, and what the output's
projection makes of a mean of values is the mean of what it makes of them: where a block is no wider
than the embeddings, both maps are applied to the source instead of to each hypothesis at each step.

In bf16 attention itself is computed in fp32: its products are so small that a kernel of bf16 takes
longer to start than one of fp32 to end, but for many hypotheses of a sentence.

Shapes: B sentences, K hypotheses of each, m source length, f embedding width, d block width, L
attending blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.convs2s import Attention
from convs2s.models.kernels.quantized_linear import LinearMap, Precision, linear_map
from convs2s.models.layers import SQRT_HALF, WeightNormalized

VECTOR = 16
"""Numbers of fp32 in the widest vector that CPUs add up at a time (512 bits). The source is padded
to whole ones: a softmax adds its terms up in vectors, and a row that ends in part of one in another
order than a row with more padding. No sentence's rounding may depend on the others of its batch."""

HALF = SQRT_HALF * SQRT_HALF
"""Of a block's output, the part that its context and its convolution have."""


@dataclass(frozen=True)
class BlockSource:
    """What one block attends to; x and y are the widths of its queries and of its values.

    Attributes:
        keys: (B, m, x); laid out otherwise, a product with them would add up in another order.
        values: (B, m, y).
        bias: (B, 1, m), of the scores: -inf where the source is padding.
    """

    keys: Tensor
    values: Tensor
    bias: Tensor


class InferenceAttention:
    """One block's attention, its maps applied to the source or at each step."""

    def __init__(self, attention: Attention, precision: Precision) -> None:
        """Compute the normalized weights."""
        weight, bias = _scaled(attention.in_projection, SQRT_HALF)  # (f, d), (f,)
        outputs, inputs = weight.shape
        self._is_folded = inputs <= outputs
        self._query_bias = bias
        if self._is_folded:
            none = bias.new_zeros(inputs)
            self._in_projection = linear_map(weight.t().contiguous(), none, precision)
        else:
            self._in_projection = linear_map(weight, bias, precision)
        self._out_projection = scaled_map(attention.out_projection, precision, HALF)

    def of(self, keys: Tensor, values: Tensor, bias: Tensor) -> BlockSource:
        """Return what the block attends to.

        Args:
            keys: (B, m, f), the encoder's output z.
            values: (B, m, f), (z + e) * sqrt(0.5), times the m * sqrt(1/m) of the sentence.
            bias: (B, 1, m), -inf where the source is padding, else 0; of attention's precision.
        """
        if not self._is_folded:
            return BlockSource(keys.to(bias.dtype), values.to(bias.dtype), bias)
        own = torch.matmul(keys.to(bias.dtype), self._query_bias.to(bias.dtype)).unsqueeze(1)
        folded, mapped = self._in_projection(keys), self._out_projection(values)
        return BlockSource(folded.to(bias.dtype), mapped.to(bias.dtype), own.add_(bias))

    def __call__(
        self, hidden: Tensor, common: Tensor, source: BlockSource
    ) -> tuple[Tensor, Tensor]:
        """Attend from each hypothesis.

        Args:
            hidden: (B * K, d), the GLU's output.
            common: (B, K, m), the embeddings' part of the scores.
            source: what to attend to.

        Returns:
            Half the sum of context and ``hidden`` (B * K, d), and the attention (B, K, m).
        """
        shape = *common.shape[:2], -1
        query = hidden if self._is_folded else self._in_projection(hidden)
        query = query.to(common.dtype).view(shape)
        scores = torch.baddbmm(common + source.bias, query, source.keys.transpose(1, 2))
        attention = functional.softmax(scores, dim=2)  # (B, K, m)
        if self._is_folded:
            summed = torch.baddbmm(query, attention, source.values, beta=HALF)
            return summed.flatten(0, 1).to(hidden.dtype), attention
        context = torch.bmm(attention, source.values).flatten(0, 1)  # (B * K, f)
        return self._out_projection(context.to(hidden.dtype)).add_(hidden, alpha=HALF), attention


class AttendedSource:
    """What all attending blocks attend to."""

    def __init__(self, keys: Tensor, blocks: Sequence[BlockSource]) -> None:
        """Take the encoder's output (B, m, f) and what each block attends to, in fp32 at least."""
        self.keys, self.blocks = keys, blocks

    def common(self, embedded: Tensor) -> Tensor:
        """Return the part (B, K, m) of all blocks' scores that embeddings (B, K, f) have."""
        exact = embedded.to(self.keys.dtype)
        return torch.bmm(exact, self.keys.transpose(1, 2)).mul_(SQRT_HALF)

    def keep(self, sentences: Tensor) -> "AttendedSource":
        """Return some of the sentences: ``sentences`` indexes B."""
        chosen: dict[int, Tensor] = {}  # several blocks may share a tensor

        def choose(part: Tensor) -> Tensor:
            if id(part) not in chosen:
                chosen[id(part)] = part.index_select(0, sentences)
            return chosen[id(part)]

        blocks = [BlockSource(*map(choose, (b.keys, b.values, b.bias))) for b in self.blocks]
        return AttendedSource(choose(self.keys), blocks)

    def replace(self, other: "AttendedSource") -> None:
        """Take over what stands in another one of the same shapes, each tensor in its place."""
        self.keys.copy_(other.keys)
        for mine, its in zip(self.blocks, other.blocks, strict=True):
            mine.keys.copy_(its.keys)
            mine.values.copy_(its.values)
            mine.bias.copy_(its.bias)


def scaled_map(layer: WeightNormalized, precision: Precision, factor: float = 1.0) -> LinearMap:
    """Return a layer's map, its outputs times a factor."""
    return linear_map(*_scaled(layer, factor), precision)


def _scaled(layer: WeightNormalized, factor: float) -> tuple[Tensor, Tensor]:
    return layer.weight().detach() * factor, layer.bias.detach() * factor
