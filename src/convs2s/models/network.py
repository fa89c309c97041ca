"""The interface of a network, which training and decoding use.

Shapes: B sentences, m source length, n target length, V target types.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn


class OutputLayer(Protocol):
    """The map from features to logits.

    The weight is a method, because a weight-normalized layer computes it from its parameters.
    """

    bias: nn.Parameter  # (V,)

    def weight(self) -> Tensor:
        """Return the weight as a matrix (V, features)."""


class Network(nn.Module, ABC):
    """An encoder and a decoder.

    Each has a table ``embedding.tokens`` with a row for each type of its vocabulary.
    """

    attends: ClassVar[bool]
    """Whether the network has attention.

    The replacement of unknown words and the plots of attention need it.
    """

    is_recordable: ClassVar[bool] = False
    """Whether the operations of a forward and backward pass depend only on the batch's shape.

    A training on a GPU then records them as a CUDA graph, and replays it for later batches of this
    shape (``convs2s.training.recorded``). The operations must neither wait for the device nor read
    ``lengths``.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        """Join an encoder and a decoder.

        The decoder maps tokens (B, n) and the result of ``encode`` to a tuple that begins with the
        features (B, n, features).
        """
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    @property
    def positions(self) -> Mapping[str, int | None]:
        """The maximum number of tokens of ``source`` and ``target``, including ``</s>``.

        None means that there is no limit.
        """
        return {"source": None, "target": None}

    @property
    def output(self) -> OutputLayer:
        """The layer before the softmax."""
        return self.decoder.output  # type: ignore[return-value]

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Any:
        """Encode source indices (B, m), padded on the right; return what the decoder reads.

        ``lengths`` (B,), on the CPU, are the numbers of tokens of the rows. A network that needs
        them would otherwise have to compute them on its device and wait for the result.
        """

    def final_state(self, source: Tensor) -> Tensor | None:
        """Encode source indices (B, m); return what the decoder reads, as a vector per sentence.

        The vectors are (B, numbers), whatever the length of a sentence. Return None if the decoder
        reads more numbers of a longer sentence, as with attention.
        """
        return None

    def features(
        self,
        source: Tensor,
        previous: Tensor,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Return the input of the output layer (B, n, features).

        ``source`` (B, m) and ``lengths`` are passed to ``encode``. ``previous`` (B, n) is ``</s>``,
        followed by the target without its last token.
        """
        encoded = self.encode(source, lengths)
        features: Tensor = self.decoder(previous, encoded)[0]
        return features

    def forward(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the logits (B, n, V), and the attention (B, n, m) of each layer that attends."""
        encoded = self.encode(source)
        x, attentions = self.decoder(previous, encoded)
        logits = self.decoder.output(x)  # type: ignore[operator]
        if not self.attends:
            attentions = []  # without attention, the decoder returns something else here
        return logits, attentions
