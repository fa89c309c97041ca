"""ConvS2S as decoding runs it: weights computed once, constants multiplied in, step by step.

Shapes: B sentences, K hypotheses of each, m source length, f embedding width, d block width, L
attending blocks. The factors sqrt(0.5) of the residual sums (section 3.5) are part of the weights
where that saves a pass.
"""

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.attended_source import (
    VECTOR,
    AttendedSource,
    InferenceAttention,
    scaled_map,
)
from convs2s.models.convolution_inputs import ConvolutionInputs
from convs2s.models.convs2s import Block, ConvS2S
from convs2s.models.kernels.quantized_linear import Precision, linear_map
from convs2s.models.kernels.windows import windows
from convs2s.models.layers import SQRT_HALF, Embedding, WeightNormalized


class InferenceEmbedding:
    """The tables, in the precision of the activations."""

    def __init__(self, embedding: Embedding, dtype: torch.dtype) -> None:
        self._tokens = embedding.tokens.detach().to(dtype)
        positions = embedding.positions
        self._positions = None if positions is None else positions.detach().to(dtype)

    def sentences(self, tokens: Tensor) -> Tensor:
        """Map the indices of whole sentences (B, n) to (B, n, f)."""
        embedded = functional.embedding(tokens, self._tokens)
        if self._positions is None:
            return embedded
        last = len(self._positions) - 1
        positions = torch.arange(tokens.shape[1], device=tokens.device).clamp_(max=last)
        return embedded.add_(functional.embedding(positions, self._positions))

    def at(self, position: int, tokens: Tensor) -> Tensor:
        """Map the indices (n,) of tokens that stand at a position to (n, f)."""
        embedded = functional.embedding(tokens, self._tokens)
        if self._positions is None:
            return embedded
        return embedded.add_(self._positions[min(position, len(self._positions) - 1)])

    def at_place(self, position: Tensor, tokens: Tensor) -> Tensor:
        """Do as ``at``, the position (1,) being on the network's device."""
        embedded = functional.embedding(tokens, self._tokens)
        if self._positions is None:
            return embedded
        place = position.clamp(max=len(self._positions) - 1)
        return embedded.add_(functional.embedding(place, self._positions))


class InferenceBlock:
    """A gated convolution and its residual connection."""

    def __init__(self, block: Block, precision: Precision) -> None:
        convolution = block.convolution
        self.kernel, self.inputs = convolution.kernel, convolution.inputs
        self._convolution = scaled_map(convolution, precision)
        residual = block.residual
        self._residual = (
            scaled_map(residual, precision) if isinstance(residual, WeightNormalized) else None
        )

    def gate(self, inputs: Tensor) -> Tensor:
        """Map windows (..., kernel * d) to (..., d')."""
        return functional.glu(self._convolution(inputs), dim=-1)

    def kept(self, x: Tensor) -> Tensor:
        """Return what the residual connection carries past the block (..., d')."""
        return x if self._residual is None else self._residual(x)


class InferenceConvS2S:
    """A network's weights as decoding needs them; the network itself stays as it is."""

    def __init__(self, network: ConvS2S, precision: Precision) -> None:
        """Compute the normalized weights, and round them to the precision."""
        encoder, decoder = network.encoder, network.decoder
        own = encoder.embedding.tokens.dtype
        self.dtype = torch.bfloat16 if precision == "bf16" else own
        self.padding_index = network.padding_index
        self._read = InferenceEmbedding(encoder.embedding, self.dtype)
        self._in_projection = scaled_map(encoder.in_projection, precision)
        self._blocks = [InferenceBlock(block, precision) for block in encoder.blocks]
        self._out_projection = scaled_map(encoder.out_projection, precision)
        self.embedding = InferenceEmbedding(decoder.embedding, self.dtype)
        self.in_projection = scaled_map(decoder.in_projection, precision)
        self.blocks = [InferenceBlock(block, precision) for block in decoder.blocks]
        self.attentions = [
            None if block.attention is None else InferenceAttention(block.attention, precision)
            for block in decoder.blocks
        ]
        self.out_projection = scaled_map(decoder.out_projection, precision)
        output = network.output
        self.output = linear_map(output.weight().detach(), output.bias.detach(), precision)

    def start(self, source: Tensor, hypotheses: int) -> "ConvS2SIncrementalState":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        return ConvS2SIncrementalState(self, self.encode(source), source.shape[1], hypotheses)

    def encode(self, source: Tensor) -> AttendedSource:
        """Encode padded source indices (B, m)."""
        source = functional.pad(source, (0, -source.shape[1] % VECTOR), value=self.padding_index)
        padding = source == self.padding_index
        blank = padding.unsqueeze(2)  # (B, m, 1)
        embedded = self._read.sentences(source)  # (B, m, f)
        x = self._in_projection(embedded)  # (B, m, d)
        for block in self._blocks:
            x = x.masked_fill(blank, 0.0)
            gated = block.gate(windows(x, block.kernel, (block.kernel - 1) // 2))
            x = gated.add_(block.kept(x)).mul_(SQRT_HALF)
        keys = self._out_projection(x)  # (B, m, f)
        exact = torch.promote_types(self.dtype, torch.float32)
        scale = (~padding).sum(1).to(exact)
        scale = (scale * scale.rsqrt() * SQRT_HALF).to(self.dtype).view(-1, 1, 1)
        values = (keys + embedded).mul_(scale)
        bias = torch.zeros_like(padding, dtype=exact).masked_fill_(padding, -torch.inf)
        bias = bias.unsqueeze(1)  # (B, 1, m)
        attending = filter(None, self.attentions)
        return AttendedSource(keys.to(exact), [one.of(keys, values, bias) for one in attending])


class ConvS2SIncrementalState:
    """The last inputs of every convolution; the source is never copied for each hypothesis."""

    def __init__(
        self, network: InferenceConvS2S, source: AttendedSource, length: int, hypotheses: int
    ) -> None:
        """Start with zeros as each convolution's earlier inputs.

        Args:
            network: the weights.
            source: what to attend to.
            length: m before it was padded to whole vectors.
            hypotheses: K.
        """
        self._network, self._source = network, source
        self._length, self._hypotheses, self._position = length, hypotheses, 0
        shapes = [(block.kernel, block.inputs) for block in network.blocks]
        rows = len(source.keys) * hypotheses
        self._inputs = ConvolutionInputs(
            shapes, rows, source.keys.new_empty((), dtype=network.dtype)
        )
        self._order: Tensor | None = None  # of the rows, where it is another one than before

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read each hypothesis's last token (B, K).

        Returns:
            What enters the output layer (B, K, f_out), and the attention (B, K, m), the mean over
            the attending blocks.
        """
        network, inputs = self._network, self._inputs
        embedded = self._enter(previous.flatten())  # (B * K, f)
        common = self._source.common(embedded.view(*previous.shape, -1))
        sources = iter(self._source.blocks)
        attentions: list[Tensor] = []
        x = network.in_projection(embedded)  # (B * K, d)
        for block, attend, newest, window in zip(
            *(network.blocks, network.attentions, inputs.newest, inputs.windows), strict=True
        ):
            newest.copy_(x)
            hidden, kept = block.gate(window), block.kept(x)
            if attend is None:
                x = hidden.add_(kept).mul_(SQRT_HALF)
            else:
                hidden, attention = attend(hidden, common, next(sources))
                attentions.append(attention)
                x = hidden.add_(kept, alpha=SQRT_HALF)
        mean = torch.stack(attentions).mean(0)[:, :, : self._length]
        return network.out_projection(x).view(*previous.shape, -1), mean

    def _enter(self, tokens: Tensor) -> Tensor:
        """Move all windows to the next position, and embed the tokens (B * K,) that stand there."""
        if self._position:
            self._inputs.shift(self._order)
        self._order = None
        embedded = self._network.embedding.at(self._position, tokens)
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
