"""The arithmetic that a model asks for, whoever does it."""

from dataclasses import dataclass

from convs2s.config.architecture import ConvS2SArchitecture, Layer


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of a forward pass: multiply-adds, each counted as two.

    Attributes:
        source: of each source token.
        target: of each target token that is fed, the output layer's among them.
        pair: of each source token for each target token: attention.
    """

    source: float
    target: float
    pair: float

    def forward(self, source: int, target: int, pairs: int) -> float:
        """Return those of a forward pass; training takes three times as many.

        Args:
            source: tokens, padding not counted.
            target: tokens, padding not counted.
            pairs: the product of both, summed over the sentence pairs.
        """
        return self.source * source + self.target * target + self.pair * pairs


def flops(architecture: ConvS2SArchitecture, target_types: int) -> Flops:
    """Return those of a network and of its output layer over so many types."""
    embedding, output = architecture.embedding, architecture.output_embedding
    blocks = {
        "encoder": architecture.encoder_layers,
        "decoder": architecture.decoder_layers,
    }
    attending = [
        layer
        for layer, attends in zip(blocks["decoder"], architecture.attends, strict=True)
        if attends
    ]
    encoder = (
        stack(blocks["encoder"], embedding) + blocks["encoder"][-1].width * embedding
    )
    decoder = stack(blocks["decoder"], embedding) + blocks["decoder"][-1].width * output
    decoder += (
        sum(2 * layer.width * embedding for layer in attending) + output * target_types
    )
    return Flops(2.0 * encoder, 2.0 * decoder, 4.0 * embedding * len(attending))


def stack(layers: tuple[Layer, ...], embedding: int) -> int:
    """Return the multiply-adds of a stack of blocks and the map into it, for each position."""
    inputs = (layers[0].width, *(layer.width for layer in layers[:-1]))
    total = embedding * layers[0].width
    for width, layer in zip(inputs, layers, strict=True):
        total += layer.kernel * width * 2 * layer.width
        total += 0 if width == layer.width else width * layer.width
    return total
