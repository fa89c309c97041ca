"""What ConvS2S keeps from step to step while it decodes: the last inputs of every convolution.

The network is a copy in evaluation mode whose weights are normalized once, in the precision of the
search. In bf16 the attention's products with the source are computed in fp32: they are so small
that a kernel of bf16 takes longer to start than one of fp32 to end.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.data.vocabulary import PADDING
from convs2s.models.convs2s import ConvS2S, EncodedSource, length_scale
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.layers import Embedding, WeightNormalized
from convs2s.models.steps import VECTOR, Precision
from convs2s.models.windows import Windows


class DecodingConvS2S:
    """A network's weights as decoding needs them; the network itself stays as it is."""

    def __init__(self, network: ConvS2S, precision: Precision) -> None:
        """Compute the normalized weights, and round them to the precision."""
        self.network = deepcopy(network).eval().requires_grad_(False)
        output = self.network.output
        self.output = LinearMap(output.weight().detach(), output.bias.detach(), precision)
        del self.network.decoder.output  # its weight is the largest, and the map has it
        for module in self.network.modules():
            if isinstance(module, WeightNormalized):
                module.fuse(precision)
            elif isinstance(module, Embedding) and precision == "bf16":
                # Not module.bfloat16(): it swaps tensors, which a fake device refuses.
                for name, table in list(module.named_parameters()):
                    rounded = nn.Parameter(table.bfloat16(), requires_grad=False)
                    module.register_parameter(name, rounded)
        self.dtype = self.network.encoder.embedding.tokens.dtype

    def start(self, source: Tensor, hypotheses: int) -> "ConvS2SState":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        return ConvS2SState(self, self.encode(source), source.shape[1], hypotheses)

    def encode(self, source: Tensor) -> EncodedSource:
        """Encode source indices (B, m), padded to whole vectors, in fp32 at least."""
        missing = -source.shape[1] % VECTOR
        source = functional.pad(source, (0, missing), value=PADDING)
        encoded = self.network.encode(source)
        exact = torch.promote_types(self.dtype, torch.float32)
        return EncodedSource(
            keys=encoded.keys.to(exact),
            values=encoded.values.to(exact),
            padding=encoded.padding,
            scale=length_scale(encoded.padding, exact),
        )


class ConvS2SState:
    """The incremental state of a batch; the source is never copied for each hypothesis."""

    def __init__(
        self,
        decoding: DecodingConvS2S,
        encoded: EncodedSource,
        length: int,
        hypotheses: int,
    ) -> None:
        """Start with zeros as each convolution's earlier inputs.

        ``length`` is m before it was padded to whole vectors, ``hypotheses`` is K.
        """
        self._decoder = decoding.network.decoder
        self._encoded = encoded
        self._length = length
        self._hypotheses = hypotheses
        shapes = []
        for block in self._decoder.blocks:
            shapes.append((block.convolution.kernel, block.convolution.inputs))
        rows = len(encoded.keys) * hypotheses  # R
        like = encoded.keys.new_empty((), dtype=decoding.dtype)
        self._windows = Windows(shapes, rows, like)
        self._unchanged = torch.arange(rows, device=like.device)  # an order that changes nothing
        self._rows = self._unchanged  # of the windows that the next step goes on from

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read each hypothesis's last token (B, K).

        Return the output layer's input (B, K, f_out), and the blocks' mean attention (B, K, m).
        """
        self._windows.begin(self._rows)
        features, attentions = self._decoder(previous, self._encoded, self._windows)
        self._windows.end()
        self._rows = self._unchanged[: previous.numel()]
        mean = torch.stack(attentions).mean(0)  # over all layers (section 4.3)
        return features, mean[:, :, : self._length]  # without what the source was padded by

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._rows = rows

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        by_sentence = self._rows.view(-1, self._hypotheses)  # (B, K)
        self._rows = by_sentence[sentences].flatten()
        self._encoded = EncodedSource(*(part[sentences] for part in self._encoded))
