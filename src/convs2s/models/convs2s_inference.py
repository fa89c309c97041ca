"""ConvS2S as decoding runs it: weights computed once, constants multiplied in, step by step.

The factors sqrt(0.5) of ``convs2s.models.convs2s`` are part of the weights where that saves a pass.

A block's query is W h + b + g, of the convolution's output h and the embedding g of the last target
token (section 3.3). Its product with the encoder's output z is h (W^T z) + b z + g z. The output
projection of a mean of values is the mean of their projections. So where a block is no wider than
the embeddings, both maps are applied to the source once instead of to each hypothesis at each step
("folded").

In bf16 attention itself is computed in fp32: its products are so small that a kernel of bf16 takes
longer to start than one of fp32 to end, except for many hypotheses of a sentence.

Shapes: B sentences, K hypotheses of each, m source length, f embedding width, d block width, L
attending blocks; x and y are the widths of a block's queries and values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.data.vocabulary import PADDING
from convs2s.models.convs2s import Attention, Block, ConvS2S, length_scale
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.kernels.matmul import windows
from convs2s.models.layers import SQRT_HALF, Embedding, WeightNormalized
from convs2s.models.steps import Precision

VECTOR = 16
"""Numbers of fp32 in the widest vector that CPUs add up at a time (512 bits). The source is padded
to whole ones: a softmax adds its terms up in vectors, and a row that ends in part of one in another
order than a row with more padding. No sentence's rounding may depend on the others of its batch."""

HALF = SQRT_HALF * SQRT_HALF
"""Share of its context and of its convolution in a block's output: each passes two sums, that of
attention and that of the residual connection."""


def _scaled(layer: WeightNormalized, factor: float) -> tuple[Tensor, Tensor]:
    return layer.weight().detach() * factor, layer.bias.detach() * factor


def _scaled_map(layer: WeightNormalized, precision: Precision, factor: float = 1.0) -> LinearMap:
    """Return a layer's map, its outputs times a factor."""
    return LinearMap(*_scaled(layer, factor), precision)


class InferenceEmbedding:
    """The tables, in the precision of the activations."""

    def __init__(self, embedding: Embedding, dtype: torch.dtype) -> None:
        self._tokens = embedding.tokens.detach().to(dtype)
        positions = embedding.positions
        self._positions = None if positions is None else positions.detach().to(dtype)

    def __call__(self, tokens: Tensor, positions: Tensor | int) -> Tensor:
        """Map indices (..., n) to (..., n, f); they stand at positions (n,), or all at (1,)."""
        embedded = functional.embedding(tokens, self._tokens)  # (..., n, f)
        if self._positions is None:
            return embedded
        last = len(self._positions) - 1
        if isinstance(positions, int):
            return embedded.add_(self._positions[min(positions, last)])
        return embedded.add_(functional.embedding(positions.clamp(max=last), self._positions))


class InferenceBlock:
    """A gated convolution and its residual connection."""

    def __init__(self, block: Block, precision: Precision) -> None:
        convolution, residual = block.convolution, block.residual
        self.kernel, self.inputs = convolution.kernel, convolution.inputs
        self._convolution = _scaled_map(convolution, precision)
        self._residual: LinearMap | None = None
        if isinstance(residual, WeightNormalized):
            self._residual = _scaled_map(residual, precision)

    def gate(self, inputs: Tensor) -> Tensor:
        """Map windows (..., kernel * inputs) to (..., d)."""
        return functional.glu(self._convolution(inputs), dim=-1)

    def kept(self, x: Tensor) -> Tensor:
        """Return what the residual connection carries past the block (..., d)."""
        return x if self._residual is None else self._residual(x)


class BlockSource(NamedTuple):
    """What one block attends to."""

    keys: Tensor  # (B, m, x); laid out otherwise, a product with them would add up in another order
    values: Tensor  # (B, m, y)
    bias: Tensor  # (B, 1, m), of the scores: -inf where the source is padding


class InferenceAttention:
    """One block's attention, its maps applied to the source or at each step."""

    def __init__(self, attention: Attention, precision: Precision) -> None:
        weight, bias = _scaled(attention.in_projection, SQRT_HALF)  # (f, d), (f,)
        outputs, inputs = weight.shape
        self._is_folded = inputs <= outputs
        self._query_bias = bias
        if self._is_folded:
            weight, bias = weight.t(), bias.new_zeros(inputs)
        self._in_projection = LinearMap(weight, bias, precision)
        self._out_projection = _scaled_map(attention.out_projection, precision, HALF)

    def project(self, keys: Tensor, values: Tensor, bias: Tensor) -> BlockSource:
        """Return what the block attends to, of the encoder's output z (B, m, f).

        ``values`` (B, m, f) are (z + e) * sqrt(0.5), times the sentence's m * sqrt(1/m); ``bias``
        (B, 1, m) is -inf where the source is padding, else 0, in attention's precision.
        """
        if not self._is_folded:
            return BlockSource(keys.to(bias.dtype), values.to(bias.dtype), bias)
        own = torch.matmul(keys.to(bias.dtype), self._query_bias.to(bias.dtype))  # (B, m): b z
        own = own.unsqueeze(1).add_(bias)  # (B, 1, m)
        folded = self._in_projection(keys)  # (B, m, d): W^T z
        mapped = self._out_projection(values)  # (B, m, d)
        return BlockSource(folded.to(bias.dtype), mapped.to(bias.dtype), own)

    def __call__(
        self, hidden: Tensor, common: Tensor, source: BlockSource
    ) -> tuple[Tensor, Tensor]:
        """Attend from the GLU's output (B * K, d); ``common`` (B, K, m) is g z, of all blocks.

        Return half the sum of context and ``hidden`` (B * K, d), and the attention (B, K, m).
        """
        query = hidden if self._is_folded else self._in_projection(hidden)
        query = query.to(common.dtype).view(*common.shape[:2], -1)  # (B, K, x)
        scores = torch.baddbmm(common + source.bias, query, source.keys.transpose(1, 2))
        attention = functional.softmax(scores, dim=2)  # (B, K, m)
        if self._is_folded:  # the query is ``hidden`` itself
            summed = torch.baddbmm(query, attention, source.values, beta=HALF)  # (B, K, d)
            return summed.flatten(0, 1).to(hidden.dtype), attention
        context = torch.bmm(attention, source.values).flatten(0, 1)  # (B * K, f)
        return self._out_projection(context.to(hidden.dtype)).add_(hidden, alpha=HALF), attention


@dataclass(frozen=True)
class AttendedSource:
    """The encoder's output (B, m, f) and what each attending block makes of it, at least fp32."""

    keys: Tensor
    blocks: Sequence[BlockSource]

    def common(self, embedded: Tensor) -> Tensor:
        """Return the part (B, K, m) of all blocks' scores that embeddings (B, K, f) have."""
        return torch.bmm(embedded.to(self.keys.dtype), self.keys.transpose(1, 2)).mul_(SQRT_HALF)

    def keep(self, sentences: Tensor) -> "AttendedSource":
        """Return some of the sentences: ``sentences`` indexes B."""
        choose = cache(lambda part: part.index_select(0, sentences))  # blocks may share a tensor
        blocks = [BlockSource(*map(choose, block)) for block in self.blocks]
        return AttendedSource(choose(self.keys), blocks)

    def replace(self, other: "AttendedSource") -> None:
        """Copy another source of the same shapes into the tensors of this one."""
        self.keys.copy_(other.keys)
        for block, new_block in zip(self.blocks, other.blocks, strict=True):
            for tensor, new in zip(block, new_block, strict=True):
                tensor.copy_(new)


class ConvolutionInputs:
    """The last inputs of all convolutions: the windows of R rows.

    Windows of blocks of a width lie side by side, so that one operation moves all of them to the
    next position and puts their rows in another order.
    """

    windows: list[Tensor]  # for each block (R, kernel * inputs), a view
    # for each block the last input of its window (R, inputs), a view, to be written
    newest: list[Tensor]

    def __init__(self, shapes: Sequence[tuple[int, int]], rows: int, like: Tensor) -> None:
        """Start with zeros, on the device and in the precision of ``like``.

        ``shapes`` are the kernel and the inputs of each block, ``rows`` is R.
        """
        self._shapes = shapes
        widths: dict[int, int] = {}  # inputs of a convolution -> columns of all such windows
        for kernel, inputs in shapes:
            widths[inputs] = widths.get(inputs, 0) + kernel * inputs
        self._buffers = {inputs: like.new_zeros(rows, width) for inputs, width in widths.items()}
        self._make_views()

    def shift(self, order: Tensor | None) -> None:
        """Move all windows by a position; ``order`` (R',) chooses the rows, None: as they are."""
        for inputs, buffer in self._buffers.items():
            later = buffer[:, inputs:]
            moved = later.clone() if order is None else later.index_select(0, order)
            if len(moved) != len(buffer):
                buffer = buffer.new_empty(len(moved), buffer.shape[1])
                self._buffers[inputs] = buffer
            # Each window's first columns get the last of the window before: newest is written next.
            buffer[:, :-inputs].copy_(moved)
        if order is not None and len(order) != len(self.newest[0]):
            self._make_views()

    def clear(self) -> None:
        """Start again with zeros, in the same places."""
        for buffer in self._buffers.values():
            buffer.zero_()

    def _make_views(self) -> None:
        ends = dict.fromkeys(self._buffers, 0)
        self.windows, self.newest = [], []
        for kernel, inputs in self._shapes:
            start, end = ends[inputs], ends[inputs] + kernel * inputs
            self.windows.append(self._buffers[inputs][:, start:end])
            self.newest.append(self._buffers[inputs][:, end - inputs : end])
            ends[inputs] = end


class InferenceConvS2S:
    """A network's weights as decoding needs them; the network itself stays as it is."""

    def __init__(self, network: ConvS2S, precision: Precision) -> None:
        """Compute the normalized weights, and round them to the precision."""
        encoder, decoder = network.encoder, network.decoder
        self.dtype = torch.bfloat16 if precision == "bf16" else encoder.embedding.tokens.dtype
        self._source_embedding = InferenceEmbedding(encoder.embedding, self.dtype)
        self._source_in_projection = _scaled_map(encoder.in_projection, precision)
        self._source_blocks = [InferenceBlock(block, precision) for block in encoder.blocks]
        self._source_out_projection = _scaled_map(encoder.out_projection, precision)
        self.embedding = InferenceEmbedding(decoder.embedding, self.dtype)
        self.in_projection = _scaled_map(decoder.in_projection, precision)
        self.blocks = [InferenceBlock(block, precision) for block in decoder.blocks]
        self.attentions = [
            None if block.attention is None else InferenceAttention(block.attention, precision)
            for block in decoder.blocks
        ]
        self.out_projection = _scaled_map(decoder.out_projection, precision)
        output = network.output
        self.output = LinearMap(output.weight().detach(), output.bias.detach(), precision)

    def start(self, source: Tensor, hypotheses: int) -> "ConvS2SIncrementalState":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        return ConvS2SIncrementalState(self, self.encode(source), source.shape[1], hypotheses)

    def encode(self, source: Tensor) -> AttendedSource:
        """Encode padded source indices (B, m)."""
        # From here on, m is the length of the source in whole vectors.
        source = functional.pad(source, (0, -source.shape[1] % VECTOR), value=PADDING)
        padding = source == PADDING
        blank = padding.unsqueeze(2)  # (B, m, 1)
        positions = torch.arange(source.shape[1], device=source.device)
        embedded = self._source_embedding(source, positions)  # (B, m, f)
        x = self._source_in_projection(embedded)  # (B, m, d)
        for block in self._source_blocks:
            x = x.masked_fill(blank, 0.0)
            gated = block.gate(windows(x, block.kernel, (block.kernel - 1) // 2))  # (B, m, d)
            x = gated.add_(block.kept(x)).mul_(SQRT_HALF)
        keys = self._source_out_projection(x)  # (B, m, f)
        exact = torch.promote_types(self.dtype, torch.float32)
        scale = (length_scale(padding, exact) * SQRT_HALF).to(self.dtype)  # (B, 1, 1)
        values = (keys + embedded).mul_(scale)  # (B, m, f)
        bias = torch.zeros_like(padding, dtype=exact).masked_fill_(padding, -torch.inf)
        bias = bias.unsqueeze(1)  # (B, 1, m)
        attending = filter(None, self.attentions)
        blocks = [attention.project(keys, values, bias) for attention in attending]
        return AttendedSource(keys.to(exact), blocks)


class ConvS2SIncrementalState:
    """The last inputs of every convolution; the source is never copied for each hypothesis."""

    def __init__(
        self, network: InferenceConvS2S, source: AttendedSource, length: int, hypotheses: int
    ) -> None:
        """Start with zeros as each convolution's earlier inputs.

        ``length`` is m before it was padded to whole vectors, ``hypotheses`` is K.
        """
        self._network, self._source = network, source
        self._length, self._hypotheses, self._position = length, hypotheses, 0
        shapes = [(block.kernel, block.inputs) for block in network.blocks]
        like = source.keys.new_empty((), dtype=network.dtype)
        self._inputs = ConvolutionInputs(shapes, len(source.keys) * hypotheses, like)
        self._order: Tensor | None = None  # of the rows, where it differs from the last step's

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read each hypothesis's last token (B, K).

        Return the output layer's input (B, K, f_out), and the blocks' mean attention (B, K, m).
        """
        network, inputs = self._network, self._inputs
        embedded = self._advance(previous.flatten())  # (B * K, f)
        common = self._source.common(embedded.view(*previous.shape, -1))  # (B, K, m)
        sources = iter(self._source.blocks)
        attentions: list[Tensor] = []  # (B, K, m) of each attending block
        x = network.in_projection(embedded)  # (B * K, d)
        for block, attend, newest, window in zip(
            *(network.blocks, network.attentions, inputs.newest, inputs.windows), strict=True
        ):
            newest.copy_(x)
            hidden, kept = block.gate(window), block.kept(x)  # (B * K, d) of this block
            if attend is None:
                x = hidden.add_(kept).mul_(SQRT_HALF)
            else:
                hidden, attention = attend(hidden, common, next(sources))
                attentions.append(attention)
                # Attention's weights hold the residual sum's sqrt(0.5) already, ``kept`` does not.
                x = hidden.add_(kept, alpha=SQRT_HALF)
        mean = torch.stack(attentions).mean(0)[:, :, : self._length]
        return network.out_projection(x).view(*previous.shape, -1), mean

    def _advance(self, tokens: Tensor) -> Tensor:
        """Move all windows to the next position; embed the tokens (B * K,) that stand there."""
        if self._position:
            self._inputs.shift(self._order)
        self._order = None
        embedded = self._network.embedding(tokens, self._position)
        self._position += 1
        return embedded

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._order = rows

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        places = torch.arange(self._hypotheses, device=sentences.device)
        rows = (sentences.unsqueeze(1) * self._hypotheses + places).flatten()
        self._order = rows if self._order is None else self._order[rows]
        self._source = self._source.keep(sentences)
