"""What training and decoding ask of a network, whichever it is.

Shapes: B sentences, m source length, n target length, V target types, S some of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn


class OutputLayer(Protocol):
    """The map from features to logits; ``weight()`` is (V, features), ``bias`` (V,)."""

    bias: nn.Parameter

    def weight(self) -> Tensor:
        """Return the weight as a matrix."""


class Network(nn.Module, ABC):
    """An encoder and a decoder; each with ``embedding.tokens``, a row a type."""

    attends: ClassVar[bool]
    """Whether there is attention, which unknown-word replacement and its plots need."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        """Join both sides; a decoder maps tokens (B, n) and ``encode``'s result to features."""
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    @property
    def positions(self) -> Mapping[str, int | None]:
        """The most tokens, ``</s>`` counted, of ``source`` and ``target``; None: no limit."""
        return {"source": None, "target": None}

    @property
    def output(self) -> OutputLayer:
        """The layer before the softmax."""
        return self.decoder.output  # type: ignore[return-value]

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Any:
        """Return what the decoder reads of padded source indices (B, m).

        ``lengths`` (B,), on the CPU, are the tokens of each row; whoever knows them spares a
        network that asks for them the wait for its device.
        """

    def final_state(self, source: Tensor) -> Tensor | None:
        """Return all that the decoder knows of each sentence (B, numbers) of indices (B, m).

        None where that grows with the sentence.
        """
        return None

    def features(self, source: Tensor, previous: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return what enters the output layer (B, n, features).

        ``source`` (B, m) is padded on the right, ``lengths`` as of ``encode``; ``previous`` (B, n)
        is ``</s>`` and the target without its last token.
        """
        x: Tensor = self.decoder(previous, self.encode(source, lengths))[0]
        return x

    def forward(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (B, n, V) and the attention (B, n, m) of each attending layer."""
        x, attentions = self.decoder(previous, self.encode(source))
        return self.decoder.output(x), attentions if self.attends else []  # type: ignore[operator]
