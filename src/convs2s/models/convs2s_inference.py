"""ConvS2S as decoding runs it: weights computed once, constants multiplied in, step by step.

Shapes: B sentences, K hypotheses of each, m source length, f embedding width, d block width. The
factors sqrt(0.5) of the residual sums (section 3.5) are part of the weights where that saves a
pass.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.convs2s import Attention, Block, ConvS2S
from convs2s.models.kernels.quantized_linear import LinearMap, Precision, linear_map
from convs2s.models.kernels.windows import windows
from convs2s.models.layers import SQRT_HALF, Embedding, WeightNormalized

VECTOR = 16
"""Numbers of fp32 in the widest vector that CPUs add up at a time (512 bits)."""


@dataclass(frozen=True)
class AttendedSource:
    """What the decoder attends to, the source padded to whole vectors.

    A softmax adds its terms up in vectors, and a row that ends in part of one in another order than
    a row with more padding: no sentence's rounding may depend on the others of its batch.

    Attributes:
        keys: (B, f, m), the encoder's output z.
        values: (B, m, f), (z + e) * sqrt(0.5), times the m * sqrt(1/m) of the sentence.
        mask: (B, 1, m), -inf where the source is padding, else 0.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor

    def keep(self, sentences: Tensor) -> "AttendedSource":
        """Return some of the sentences: ``sentences`` indexes B."""
        parts = (self.keys, self.values, self.mask)
        return AttendedSource(*(part.index_select(0, sentences) for part in parts))


class InferenceEmbedding:
    """The tables, in the precision of the activations."""

    def __init__(self, embedding: Embedding, dtype: torch.dtype) -> None:
        self._tokens = embedding.tokens.detach().to(dtype)
        positions = embedding.positions
        self._positions = None if positions is None else positions.detach().to(dtype)

    def __call__(self, tokens: Tensor, start: int = 0) -> Tensor:
        """Map indices (B, n), the first at position ``start``, to (B, n, f)."""
        embedded = functional.embedding(tokens, self._tokens)
        if self._positions is None:
            return embedded
        last = len(self._positions) - 1
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        return embedded.add_(functional.embedding(positions.clamp(max=last), self._positions))


class InferenceAttention:
    """One block's attention (section 3.3)."""

    def __init__(self, attention: Attention, precision: Precision) -> None:
        self._in_projection = _map(attention.in_projection, precision, SQRT_HALF)
        self._out_projection = _map(attention.out_projection, precision, SQRT_HALF * SQRT_HALF)

    def __call__(
        self, hidden: Tensor, embedded: Tensor, source: AttendedSource
    ) -> tuple[Tensor, Tensor]:
        """Attend from each hypothesis.

        Args:
            hidden: (B * K, d), the GLU's output.
            embedded: (B * K, f), the target embeddings times sqrt(0.5).
            source: what to attend to.

        Returns:
            The context's part of the block's output (B * K, d), and the attention (B, K, m).
        """
        query = (
            self._in_projection(hidden).add_(embedded).view(len(source.keys), -1, embedded.shape[1])
        )
        scores = torch.bmm(query, source.keys)  # (B, K, m)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).add_(source.mask)
        attention = functional.softmax(scores, dim=2)
        context = torch.bmm(attention.to(source.values.dtype), source.values)  # (B, K, f)
        return self._out_projection(context.flatten(0, 1)), attention


class InferenceBlock:
    """A gated convolution and its residual connection; in the decoder, attention."""

    def __init__(self, block: Block, precision: Precision) -> None:
        convolution = block.convolution
        self.kernel, self.inputs = convolution.kernel, convolution.inputs
        self._convolution = _map(convolution, precision)
        residual = block.residual
        self._residual = (
            _map(residual, precision) if isinstance(residual, WeightNormalized) else None
        )
        attention = block.attention
        self._attention = None if attention is None else InferenceAttention(attention, precision)

    def gate(self, inputs: Tensor) -> Tensor:
        """Map windows (..., kernel * d) to (..., d')."""
        return functional.glu(self._convolution(inputs), dim=-1)

    def kept(self, x: Tensor) -> Tensor:
        """Return what the residual connection carries past the block (..., d')."""
        return x if self._residual is None else self._residual(x)

    def attend(
        self, hidden: Tensor, kept: Tensor, embedded: Tensor, source: AttendedSource
    ) -> tuple[Tensor, Tensor | None]:
        """Return the block's output (B * K, d) and its attention (B, K, m), if it attends."""
        if self._attention is None:
            return (hidden + kept) * SQRT_HALF, None
        context, attention = self._attention(hidden, embedded, source)
        return context.add_(hidden, alpha=SQRT_HALF * SQRT_HALF).add_(
            kept, alpha=SQRT_HALF
        ), attention


class InferenceConvS2S:
    """A network's weights as decoding needs them; the network itself stays as it is."""

    def __init__(self, network: ConvS2S, precision: Precision) -> None:
        """Compute the normalized weights, and round them to the precision."""
        encoder, decoder = network.encoder, network.decoder
        own = encoder.embedding.tokens.dtype
        self.dtype = torch.bfloat16 if precision == "bf16" else own
        self.padding_index = network.padding_index
        self._read = InferenceEmbedding(encoder.embedding, self.dtype)
        self._in_projection = _map(encoder.in_projection, precision)
        self._blocks = [InferenceBlock(block, precision) for block in encoder.blocks]
        self._out_projection = _map(encoder.out_projection, precision)
        self.embedding = InferenceEmbedding(decoder.embedding, self.dtype)
        self.in_projection = _map(decoder.in_projection, precision)
        self.blocks = [InferenceBlock(block, precision) for block in decoder.blocks]
        self.out_projection = _map(decoder.out_projection, precision)
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
        embedded = self._read(source)  # (B, m, f)
        x = self._in_projection(embedded)  # (B, m, d)
        for block in self._blocks:
            x = x.masked_fill(blank, 0.0)
            gated = block.gate(windows(x, block.kernel, (block.kernel - 1) // 2))
            x = gated.add_(block.kept(x)).mul_(SQRT_HALF)
        keys = self._out_projection(x)  # (B, m, f)
        scale = (~padding).sum(1).to(torch.promote_types(self.dtype, torch.float32))
        scale = (scale * scale.rsqrt() * SQRT_HALF).to(self.dtype).view(-1, 1, 1)
        mask = torch.zeros_like(padding, dtype=scale.dtype).masked_fill(padding, -torch.inf)
        return AttendedSource(
            keys.transpose(1, 2).contiguous(), (keys + embedded).mul_(scale), mask.unsqueeze(1)
        )


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
        rows = len(source.keys) * hypotheses
        # (B * K, (kernel - 1) * d) of each block
        self._inputs = [
            source.keys.new_zeros(rows, (block.kernel - 1) * block.inputs)
            for block in network.blocks
        ]

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read each hypothesis's last token (B, K).

        Returns:
            What enters the output layer (B, K, f_out), and the attention (B, K, m), the mean over
            the attending blocks.
        """
        network = self._network
        embedded = network.embedding(previous.view(-1, 1), self._position).squeeze(1)  # (B * K, f)
        x = network.in_projection(embedded)  # (B * K, d)
        embedded = embedded.mul_(SQRT_HALF)
        attentions: list[Tensor] = []
        for number, block in enumerate(network.blocks):
            window = torch.cat([self._inputs[number], x], 1) if block.kernel > 1 else x
            self._inputs[number] = window[:, block.inputs :]
            x, attention = block.attend(block.gate(window), block.kept(x), embedded, self._source)
            if attention is not None:
                attentions.append(attention)
        self._position += 1
        mean = torch.stack(attentions).mean(0)[:, :, : self._length]
        return network.out_projection(x).view(*previous.shape, -1), mean

    def select(self, parents: Tensor) -> None:
        """Continue from other hypotheses of the same sentences: ``parents`` (B, K) indexes K."""
        if self._hypotheses == 1:
            return
        first = torch.arange(len(parents), device=parents.device).unsqueeze(1) * self._hypotheses
        self._choose((first + parents).flatten())

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        places = torch.arange(self._hypotheses, device=sentences.device)
        self._choose((sentences.unsqueeze(1) * self._hypotheses + places).flatten())
        self._source = self._source.keep(sentences)

    def _choose(self, rows: Tensor) -> None:
        self._inputs = [earlier.index_select(0, rows) for earlier in self._inputs]


def _map(layer: WeightNormalized, precision: Precision, factor: float = 1.0) -> LinearMap:
    """Return a layer's map, its outputs times a factor."""
    return linear_map(layer.weight().detach() * factor, layer.bias.detach() * factor, precision)
