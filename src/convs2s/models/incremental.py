"""Decode with ConvS2S step by step, from the last inputs of every convolution.

The network is copied and put into evaluation mode. The weights of the copy are normalized once, and
rounded to the precision of the search. In bf16, the products of the attention with the source are
still computed in fp32: they are so small that starting a kernel of bf16 takes longer than a whole
product in fp32.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, f_out input width of the
output layer.
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
    """A copy of a network, with weights that are prepared for decoding."""

    def __init__(self, network: ConvS2S, precision: Precision) -> None:
        """Copy a network, normalize the weights of the copy and round them to ``precision``."""
        copied = deepcopy(network)
        copied.eval()
        copied.requires_grad_(False)
        self.network = copied
        output = copied.output
        self.output = LinearMap(output.weight(), output.bias, precision)
        # ``self.output`` has the output layer's weight, the largest of all. Do not keep it twice.
        del self.network.decoder.output
        for module in self.network.modules():
            if isinstance(module, WeightNormalized):
                module.fuse(precision)
            elif isinstance(module, Embedding) and precision == "bf16":
                # Make new parameters. ``module.bfloat16()`` would swap the tensors of the old ones,
                # which the tests' fake device refuses.
                for name, table in list(module.named_parameters()):
                    rounded = nn.Parameter(table.bfloat16(), requires_grad=False)
                    module.register_parameter(name, rounded)
        self.dtype = self.network.encoder.embedding.tokens.dtype  # that of the steps

    def start(self, source: Tensor, hypotheses: int) -> "ConvS2SState":
        """Encode a padded source (B, m), and return the state of K hypotheses per sentence."""
        return ConvS2SState(self, source, hypotheses)

    def encode(self, source: Tensor) -> EncodedSource:
        """Pad source indices (B, m) to whole vectors and encode them.

        The result is in fp32, or in the precision of the network if that is higher.
        """
        missing = -source.shape[1] % VECTOR  # tokens up to the next multiple of VECTOR
        source = functional.pad(source, (0, missing), value=PADDING)
        encoded = self.network.encode(source)
        at_least_fp32 = torch.promote_types(self.dtype, torch.float32)
        return EncodedSource(
            keys=encoded.keys.to(at_least_fp32),
            values=encoded.values.to(at_least_fp32),
            padding=encoded.padding,
            scale=length_scale(encoded.padding, at_least_fp32),
        )


class ConvS2SState:
    """The incremental state of a batch.

    All hypotheses of a sentence attend to the same encoded source, which is not copied.
    """

    def __init__(
        self,
        decoding: DecodingConvS2S,
        source: Tensor,
        hypotheses: int,
    ) -> None:
        """Encode padded source indices (B, m), to decode K hypotheses of each sentence.

        Before the first target token, all inputs of the convolutions are zeros.
        """
        self._decoding = decoding
        self._decoder = decoding.network.decoder
        self._encoded = decoding.encode(source)
        self._hypotheses = hypotheses
        shapes = []
        for block in self._decoder.blocks:
            convolution = block.convolution
            shapes.append((convolution.kernel, convolution.inputs))
        rows = len(source) * hypotheses  # R
        like = torch.empty((), dtype=decoding.dtype, device=source.device)
        self._windows = Windows(shapes, rows, like)
        # (R,), the order that leaves each row in its place
        self._identity = torch.arange(rows, device=source.device)
        self._rows = self._identity  # (R,), the row that each hypothesis continues

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read the last token of each hypothesis (B, K).

        Return the output layer's input (B, K, f_out), and the mean attention of the blocks (B, K,
        m'), where m' is the source length after padding to whole vectors. The next step continues
        the same rows, unless ``select`` or ``keep`` is called before.
        """
        self._windows.begin(self._rows)
        features, attentions = self._decoder(previous, self._encoded, self._windows)
        self._windows.end()
        self._rows = self._identity[: previous.numel()]
        mean = torch.stack(attentions).mean(0)  # over all layers (section 4.3)
        return features, mean

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses; see ``IncrementalState.select``."""
        self._rows = rows

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but these; ``sentences`` are indices of the B sentences."""
        by_sentence = self._rows.view(-1, self._hypotheses)  # (B, K)
        self._rows = by_sentence[sentences].flatten()
        kept = [part[sentences] for part in self._encoded]
        self._encoded = EncodedSource(*kept)
