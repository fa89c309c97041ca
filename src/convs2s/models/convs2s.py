"""The convolutional sequence to sequence network (Gehring et al. 2017, section 3).

Training reads whole targets, decoding the next token of each hypothesis, by the same modules:
``convs2s.models.incremental`` has what decoding keeps from step to step.

Shapes: B batch, m source length, n target length, K hypotheses, f embedding width, d block width, L
decoder blocks, V target types.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.config.architecture import ConvS2SArchitecture, Layer
from convs2s.data.vocabulary import PADDING
from convs2s.models.kernels.dropout import dropout
from convs2s.models.layers import (
    SQRT_HALF,
    Embedding,
    GatedConvolution,
    Linear,
    OutputTable,
    scale_gradient,
)
from convs2s.models.network import Network
from convs2s.models.windows import Windows


class EncodedSource(NamedTuple):
    """What the decoder attends to."""

    keys: Tensor  # (B, m, f), the encoder's output z
    values: Tensor  # (B, m, f), (z + e) * sqrt(0.5)
    padding: Tensor  # (B, m), True where the source is padding
    scale: Tensor  # (B, 1, 1), of the attention's mean over the source


def length_scale(padding: Tensor, precision: torch.dtype) -> Tensor:
    """Return m * sqrt(1/m) of each sentence (B, 1, 1), which undoes what a mean takes off variance.

    The mean of m values has 1/m of their variance (section 3.4).
    """
    lengths = (~padding).sum(1)  # (B,)
    lengths = lengths.to(precision).view(-1, 1, 1)  # (B, 1, 1)
    # Autocast takes roots in fp32 on a GPU, and all that they scale would be fp32 from there on.
    return (lengths * lengths.rsqrt()).to(precision)


class Attention(nn.Module):
    """One decoder block's attention over the source (section 3.3, equations 1 and 2).

    The equations print neither the factors sqrt(0.5), which keep the variance of each sum (section
    3.4), nor ``out_projection``: z has the embeddings' width f, so the context must be mapped back
    to the block's width d. The authors' code has both, and attention before the residual.
    """

    def __init__(self, width: int, embedding: int) -> None:
        super().__init__()
        self.in_projection = Linear(width, embedding)  # W and b of equation 1
        self.out_projection = Linear(embedding, width)

    def forward(
        self, hidden: Tensor, embedded: Tensor, encoded: EncodedSource
    ) -> tuple[Tensor, Tensor]:
        """Attend from the GLU's output (B, n, d) and the target embeddings g (B, n, f).

        In a step, n are the hypotheses of a sentence. The products with the source have its
        precision. Return the sum of context and ``hidden`` (B, n, d), and the attention (B, n, m).
        """
        query = (self.in_projection(hidden) + embedded) * SQRT_HALF  # (B, n, f)
        keys = encoded.keys
        scores = torch.bmm(query.to(keys.dtype), keys.transpose(1, 2))  # (B, n, m)
        scores = scores.masked_fill(encoded.padding.unsqueeze(1), -torch.inf)
        attention = functional.softmax(scores, dim=2)
        context = torch.bmm(attention, encoded.values) * encoded.scale  # (B, n, f)
        summed = self.out_projection(context.to(query.dtype)) + hidden  # (B, n, d)
        return summed * SQRT_HALF, attention


class Block(nn.Module):
    """A gated convolution, the residual's linear map where the width changes, and attention."""

    def __init__(
        self,
        inputs: int,
        layer: Layer,
        keep_prob: float,
        attention: Attention | None,
    ):
        super().__init__()
        self.convolution = GatedConvolution(inputs, layer.width, layer.kernel, keep_prob)
        self.residual = nn.Identity() if inputs == layer.width else Linear(inputs, layer.width)
        self.attention = attention


class Stack(nn.ModuleList):
    """The blocks of one side, bottom first."""

    def __init__(
        self, architecture: ConvS2SArchitecture, layers: Sequence[Layer], attends: Sequence[bool]
    ):
        super().__init__()
        keep_prob = 1.0 - architecture.dropout
        inputs = layers[0].width
        for layer, attend in zip(layers, attends, strict=True):
            attention = Attention(layer.width, architecture.embedding) if attend else None
            self.append(Block(inputs, layer, keep_prob, attention))
            inputs = layer.width
        attending = [block for block in self if block.attention is not None]
        if architecture.attention_weights == "shared":
            for block in attending[1:]:
                del block.attention
                # nn.Module would register it here as well: the state dict would hold the weights
                # again for each block, and so would model files and what their digests are of.
                object.__setattr__(block, "attention", attending[0].attention)

    def __iter__(self) -> Iterator[Block]:
        return cast(Iterator[Block], super().__iter__())


class ConvEncoder(nn.Module):
    """Embeddings, a stack of convolutional blocks, and the map back to the embeddings' width."""

    def __init__(self, architecture: ConvS2SArchitecture, types: int) -> None:
        super().__init__()
        layers = architecture.encoder_layers
        dropout = architecture.dropout
        width = architecture.embedding
        self.embedding = Embedding(types, width, architecture.positions.rows("source"), dropout)
        self.in_projection = Linear(width, layers[0].width, keep_prob=1.0 - dropout)
        self.blocks = Stack(architecture, layers, [False] * len(layers))
        self.out_projection = Linear(layers[-1].width, width)
        self.dropout = dropout
        self.gradient_factor = 1.0
        # The encoder's gradient is a sum over the attention layers (section 3.4).
        attention_layers = sum(architecture.attends)
        if architecture.gradient_scaling == "fairseq":
            # Each of them reads z twice, as keys and in the values; embeddings are scaled as well.
            self.gradient_factor = 1.0 / (2.0 * attention_layers)
        elif architecture.gradient_scaling == "paper":
            # The parameters' gradients alone: those of the source embeddings stay as they are.
            for module in (self.in_projection, self.blocks, self.out_projection):
                for parameter in module.parameters():
                    parameter.register_hook(lambda gradient: gradient / attention_layers)

    def forward(self, source: Tensor, padding: Tensor) -> EncodedSource:
        """Encode source indices (B, m); ``padding`` (B, m) is True where they are padding."""
        embedded = self.embedding(source)  # (B, m, f)
        x = self.in_projection(embedded)  # (B, m, d)
        for block in self.blocks:
            kept = block.residual(x)  # (B, m, d) of this block
            x = dropout(x, self.dropout, self.training, padding)
            # As many outputs as inputs; of an even window the larger half lies behind.
            left = (block.convolution.kernel - 1) // 2
            x = (block.convolution(x, left) + kept) * SQRT_HALF
        z = self.out_projection(x)  # (B, m, f)
        keys = z.masked_fill(padding.unsqueeze(2), 0.0)
        keys = scale_gradient(keys, self.gradient_factor)
        scale = length_scale(padding, keys.dtype)
        values = (keys + embedded) * SQRT_HALF
        return EncodedSource(keys, values, padding, scale)


class ConvDecoder(nn.Module):
    """Embeddings, causal convolutional blocks with attention, and the output layer."""

    def __init__(self, architecture: ConvS2SArchitecture, types: int) -> None:
        super().__init__()
        layers = architecture.decoder_layers
        dropout = architecture.dropout
        width = architecture.embedding
        output = architecture.output_embedding
        self.embedding = Embedding(types, width, architecture.positions.rows("target"), dropout)
        self.in_projection = Linear(width, layers[0].width, keep_prob=1.0 - dropout)
        self.blocks = Stack(architecture, layers, architecture.attends)
        self.out_projection = Linear(layers[-1].width, output)
        self.output: Linear | OutputTable
        if architecture.selection:
            self.output = OutputTable(output, types)
        else:
            self.output = Linear(output, types, keep_prob=1.0 - dropout)
        self.dropout = dropout

    def forward(
        self, previous: Tensor, encoded: EncodedSource, windows: Windows | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Read ``</s>`` and the target without its last token (B, n), all positions at once.

        With ``windows``, which have the inputs of each convolution at the positions before, read
        the last token of each hypothesis instead: n are then the K hypotheses of a sentence. Return
        the output layer's input (B, n, f_out), and each block's attention (B, n, m).
        """
        position = None if windows is None else windows.position
        embedded = self.embedding(previous, position)  # (B, n, f)
        x = self.in_projection(embedded)  # (B, n, d)
        attentions: list[Tensor] = []
        for number, block in enumerate(self.blocks):
            kept = block.residual(x)  # (B, n, d) of this block
            x = dropout(x, self.dropout, self.training)
            if windows is None:
                # The window ends at its position: no output sees a later input (section 3.2).
                x = block.convolution(x, block.convolution.kernel - 1)
            else:
                x = block.convolution.gate(windows.add(number, x))
            if block.attention is not None:
                x, attention = block.attention(x, embedded, encoded)
                attentions.append(attention)
            x = (x + kept) * SQRT_HALF
        x = self.out_projection(x)  # (B, n, f_out)
        return dropout(x, self.dropout, self.training), attentions


class ConvS2S(Network):
    """Convolutional encoder and decoder, joined by attention in the decoder's blocks."""

    attends = True

    encoder: ConvEncoder
    decoder: ConvDecoder

    def __init__(
        self, architecture: ConvS2SArchitecture, source_types: int, target_types: int
    ) -> None:
        """Draw the parameters from torch's global random generator."""
        encoder = ConvEncoder(architecture, source_types)
        decoder = ConvDecoder(architecture, target_types)
        super().__init__(encoder, decoder)
        self._positions = {side: architecture.positions.rows(side) for side in ("source", "target")}

    @property
    def positions(self) -> Mapping[str, int | None]:
        """The rows of the position tables."""
        return self._positions

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> EncodedSource:
        """Encode padded source indices (B, m); where they end the padding alone says."""
        return cast(EncodedSource, self.encoder(source, source == PADDING))
