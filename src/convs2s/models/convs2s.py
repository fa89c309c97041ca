"""The convolutional sequence to sequence network (Gehring et al. 2017, section 3).

The same modules are used in training and decoding. In training, the decoder reads whole targets. In
decoding, it reads the last token of each hypothesis, and ``convs2s.models.incremental`` keeps the
state between the steps.

Shapes: B batch, m source length, n target length, K hypotheses, f embedding width, d block width,
f_out input width of the output layer, V target types.
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
    Embedding,
    GatedConvolution,
    Linear,
    OutputTable,
    scale_gradient,
)
from convs2s.models.network import Network
from convs2s.models.steps import SQRT_HALF
from convs2s.models.windows import Windows


class EncodedSource(NamedTuple):
    """The encoded source, to which the decoder attends."""

    keys: Tensor  # (B, m, f), the encoder's output z
    values: Tensor  # (B, m, f), (z + e) * sqrt(0.5), with the source embeddings e
    padding: Tensor  # (B, m), True where the source is padding
    scale: Tensor  # (B, 1, 1), factor of the context vectors (``length_scale``)


def length_scale(padding: Tensor, precision: torch.dtype) -> Tensor:
    """Return m * sqrt(1/m) for each sentence (B, 1, 1), the factor of its context vectors.

    A context vector is a weighted mean over the source. If all weights are 1/m, its variance is 1/m
    of the variance of the values. The factor restores the variance of the values (section 3.4).
    """
    present = ~padding  # (B, m)
    lengths = present.sum(1)  # (B,)
    lengths = lengths.to(precision)
    lengths = lengths.view(-1, 1, 1)  # (B, 1, 1)
    # On a GPU, autocast computes rsqrt in fp32. Without the cast back, the context and all that
    # follows would be in fp32 too.
    return (lengths * lengths.rsqrt()).to(precision)


class Attention(nn.Module):
    """The attention of one decoder block over the source (section 3.3, equations 1 and 2).

    As in the authors' code, there are three differences from the equations:

    - Each sum is multiplied by sqrt(0.5), so that it has the variance of its terms (section 3.4).
    - ``out_projection`` maps the context, which has the width f of the embeddings, to the width d
      of the block.
    - The block adds its residual after the attention, not before it.
    """

    def __init__(self, width: int, embedding: int) -> None:
        """Take the width d of the block and the width f of the embeddings."""
        super().__init__()
        self.in_projection = Linear(width, embedding)  # W and b of equation 1
        self.out_projection = Linear(embedding, width)

    def forward(
        self,
        hidden: Tensor,
        embedded: Tensor,
        encoded: EncodedSource,
    ) -> tuple[Tensor, Tensor]:
        """Attend to the source.

        ``hidden`` (B, n, d) is the output of the block's GLU, ``embedded`` (B, n, f) are the target
        embeddings g. In a step of decoding, n is K, the number of hypotheses of a sentence. The
        products with the source are computed in the precision of the encoded source.

        Return the scaled sum of the context and ``hidden`` (B, n, d), and the attention (B, n, m).
        """
        query = (self.in_projection(hidden) + embedded) * SQRT_HALF  # (B, n, f)
        # In decoding, the encoded source is in at least fp32, even if the network computes in bf16
        # (convs2s.models.incremental). The context is rounded to bf16 only after both products.
        exact_query = query.to(encoded.keys.dtype)
        keys = encoded.keys.transpose(1, 2)  # (B, f, m)
        scores = torch.bmm(exact_query, keys)  # (B, n, m)
        scores = scores.masked_fill(encoded.padding.unsqueeze(1), -torch.inf)
        attention = functional.softmax(scores, dim=2)
        mean = torch.bmm(attention, encoded.values)  # (B, n, f)
        context = mean * encoded.scale  # (B, n, f)
        context = context.to(query.dtype)
        projected = self.out_projection(context)  # (B, n, d)
        return (projected + hidden) * SQRT_HALF, attention


class Block(nn.Module):
    """The parts of a block: a gated convolution, the map of the residual, and attention.

    ``ConvEncoder`` and ``ConvDecoder`` combine these parts, each in its own way. The map of the
    residual is the identity if the block does not change the width. An encoder's block has no
    attention, and a decoder's block may have none.
    """

    def __init__(
        self,
        inputs: int,
        layer: Layer,
        keep_prob: float,
        attention: Attention | None,
    ) -> None:
        """Make a block that reads vectors of the width ``inputs``.

        ``keep_prob`` is the probability that dropout before the convolution keeps an input.
        """
        super().__init__()
        self.convolution = GatedConvolution(
            inputs, layer.width, layer.kernel, keep_prob
        )
        self.residual: nn.Identity | Linear
        if inputs == layer.width:
            self.residual = nn.Identity()
        else:
            self.residual = Linear(inputs, layer.width)
        self.attention = attention


class Stack(nn.ModuleList):
    """The blocks of the encoder or the decoder, the bottom one first."""

    def __init__(
        self,
        architecture: ConvS2SArchitecture,
        layers: Sequence[Layer],
        attends: Sequence[bool],
    ) -> None:
        """Make a block for each layer; ``attends`` says which of the blocks have attention."""
        super().__init__()
        keep_prob = 1.0 - architecture.dropout
        # The ``in_projection`` below the stack maps to the width of the first block.
        inputs = layers[0].width
        for layer, attend in zip(layers, attends, strict=True):
            attention: Attention | None = None
            if attend:
                attention = Attention(layer.width, architecture.embedding)
            self.append(Block(inputs, layer, keep_prob, attention))
            inputs = layer.width
        if architecture.attention_weights == "shared":
            attending = [block for block in self if block.attention is not None]
            for block in attending[1:]:
                del block.attention
                # A plain assignment would register the module in each block. Then the state dict,
                # the model file and its digest would contain the shared weights once per block.
                object.__setattr__(block, "attention", attending[0].attention)

    def __iter__(self) -> Iterator[Block]:
        """Iterate over the blocks, typed as ``Block``."""
        return cast(Iterator[Block], super().__iter__())


class ConvEncoder(nn.Module):
    """Embeddings, a stack of convolutional blocks, and a map back to the width of embeddings."""

    def __init__(self, architecture: ConvS2SArchitecture, types: int) -> None:
        super().__init__()
        layers = architecture.encoder_layers
        width = architecture.embedding
        position_rows = architecture.positions.rows("source")
        self.dropout = architecture.dropout
        keep_prob = 1.0 - self.dropout
        self.embedding = Embedding(types, width, position_rows, self.dropout)
        self.in_projection = Linear(width, layers[0].width, keep_prob)
        attends = [False] * len(layers)
        self.blocks = Stack(architecture, layers, attends)
        self.out_projection = Linear(layers[-1].width, width)
        self.gradient_factor = 1.0
        # Each attention layer of the decoder adds to the encoder's gradient. To make up for this,
        # the gradient can be divided by the number of these layers (section 3.4).
        attention_layers = sum(architecture.attends)
        if architecture.gradient_scaling == "fairseq":
            # Each attention layer reads z twice, as keys and within the values. The factor is
            # applied to the gradient of z, so it also scales the gradient of the source embeddings
            # that passes through the encoder.
            self.gradient_factor = 1.0 / (2.0 * attention_layers)
        elif architecture.gradient_scaling == "paper":
            # Scale only the gradients of the encoder's parameters, not those of the embeddings.
            for module in (self.in_projection, self.blocks, self.out_projection):
                for parameter in module.parameters():
                    parameter.register_hook(
                        lambda gradient: gradient / attention_layers
                    )

    def forward(self, source: Tensor, padding: Tensor) -> EncodedSource:
        """Encode source indices (B, m); ``padding`` (B, m) is True where the source is padding."""
        embedded = self.embedding(source)  # (B, m, f)
        x = self.in_projection(embedded)  # (B, m, d)
        for block in self.blocks:
            residual = block.residual(x)  # (B, m, d), with this block's width d
            # In training and in inference, ``dropout`` also sets padding to zero. So the encoding
            # of a sentence does not depend on the length of its padding.
            x = dropout(x, self.dropout, self.training, padding)
            # A window of even width cannot be centered. It has one position more to the right of
            # the output's position than to the left.
            left = (block.convolution.kernel - 1) // 2
            convolved = block.convolution(x, left)  # (B, m, d)
            x = (convolved + residual) * SQRT_HALF
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
        width = architecture.embedding
        output_width = architecture.output_embedding
        position_rows = architecture.positions.rows("target")
        self.dropout = architecture.dropout
        keep_prob = 1.0 - self.dropout
        self.embedding = Embedding(types, width, position_rows, self.dropout)
        self.in_projection = Linear(width, layers[0].width, keep_prob)
        self.blocks = Stack(architecture, layers, architecture.attends)
        self.out_projection = Linear(layers[-1].width, output_width)
        self.output: Linear | OutputTable
        if architecture.selection:
            self.output = OutputTable(output_width, types)
        else:
            self.output = Linear(output_width, types, keep_prob)

    def forward(
        self,
        previous: Tensor,
        encoded: EncodedSource,
        windows: Windows | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Read target tokens, and attend to the encoded source.

        In training, ``previous`` (B, n) is ``</s>``, followed by the target without its last token,
        and all positions are computed at once. In decoding, ``previous`` (B, K) is the last token
        of each hypothesis, so n is K, and ``windows`` has the earlier inputs of each convolution.

        Return the output layer's input (B, n, f_out), and the attention (B, n, m) of each block
        that has attention.
        """
        position = None if windows is None else windows.position
        embedded = self.embedding(previous, position)  # (B, n, f)
        x = self.in_projection(embedded)  # (B, n, d)
        attentions: list[Tensor] = []
        for number, block in enumerate(self.blocks):
            residual = block.residual(x)  # (B, n, d), with this block's width d
            x = dropout(x, self.dropout, self.training)
            if windows is None:
                # Each window ends at the position of its output, so no output sees later inputs
                # (section 3.2).
                x = block.convolution(x, block.convolution.kernel - 1)
            else:
                window = windows.add(number, x)  # (B, K, kernel * inputs)
                x = block.convolution.gate(window)
            if block.attention is not None:
                x, attention = block.attention(x, embedded, encoded)
                attentions.append(attention)
            x = (x + residual) * SQRT_HALF
        x = self.out_projection(x)  # (B, n, f_out)
        return dropout(x, self.dropout, self.training), attentions


class ConvS2S(Network):
    """A convolutional encoder and decoder, with attention in the blocks of the decoder."""

    attends = True
    is_recordable = True

    encoder: ConvEncoder
    decoder: ConvDecoder

    def __init__(
        self,
        architecture: ConvS2SArchitecture,
        source_types: int,
        target_types: int,
    ) -> None:
        """Draw the parameters from torch's global generator, first those of the encoder."""
        encoder = ConvEncoder(architecture, source_types)
        decoder = ConvDecoder(architecture, target_types)
        super().__init__(encoder, decoder)
        positions = architecture.positions
        self._positions = {side: positions.rows(side) for side in ("source", "target")}

    @property
    def positions(self) -> Mapping[str, int | None]:
        """The number of rows of each side's position table; None if the side has no table."""
        return self._positions

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> EncodedSource:
        """Encode padded source indices (B, m).

        ``lengths`` is not used: the network only needs to know which tokens are padding.
        """
        padding = source == PADDING
        return cast(EncodedSource, self.encoder(source, padding))
