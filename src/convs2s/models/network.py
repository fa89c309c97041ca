"""What training and decoding ask of a network, whichever it is.

Shapes: B sentences, K hypotheses of each, m source length, n target length, V target types.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from convs2s.models.linear_maps import LinearMap, Precision

WORD_TABLES = {"source": "encoder.embedding.words", "target": "decoder.embedding.words"}
"""The weights of every network that have a row for each type of a side's vocabulary."""


class OutputLayer(Protocol):
    """The map from features to logits; ``weight()`` is (V, features), ``bias`` (V,)."""

    bias: nn.Parameter

    def weight(self) -> Tensor:
        """Return the weight as a matrix."""


def rows_of(output: OutputLayer, types: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return an output layer's weight (S, features) and bias (S,) for some types; None: for all."""
    weight, bias = output.weight(), output.bias
    if types is None:
        return weight, bias
    return weight.index_select(0, types), bias.index_select(0, types)


@dataclass(frozen=True)
class SelectedTypes:
    """The target types that a batch's sentences may use.

    Attributes:
        types: (S,), ascending, the special symbols among them.
        barred: (B, S), True where a sentence may not use a type.
    """

    types: Tensor
    barred: Tensor


class Decoding(Protocol):
    """A network's incremental state while it decodes one batch."""

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Read each hypothesis's last symbol (B, K).

        Returns:
            What enters the output layer (B, K, features), and the attention (B, K, m), the mean
            over the attending layers; None from a network without attention.
        """

    def select(self, parents: Tensor) -> None:
        """Continue from other hypotheses of the same sentences: ``parents`` (B, K) indexes K."""

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""


class PreparedNetwork(Protocol):
    """A network's weights in the form and precision that decoding needs.

    Attributes:
        output: the map from features to logits.
    """

    output: LinearMap

    def start(self, source: Tensor, hypotheses: int) -> Decoding:
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""


class Network(nn.Module, ABC):
    """An encoder and a decoder; its weights hold those that ``WORD_TABLES`` names."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module, padding_index: int) -> None:
        """Join both sides.

        Args:
            encoder: what ``encode`` runs.
            decoder: maps previous symbols (B, n) and the encoded source to features, and more.
            padding_index: the index that means padding in the source.
        """
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.padding_index = padding_index

    @property
    @abstractmethod
    def attends(self) -> bool:
        """Whether there is attention, which unknown-word replacement and its plots rest on."""

    @property
    @abstractmethod
    def positions(self) -> Mapping[str, int | None]:
        """The most symbols, ``</s>`` counted, of ``source`` and ``target``; None: no limit."""

    @property
    @abstractmethod
    def output(self) -> OutputLayer:
        """The layer before the softmax."""

    @abstractmethod
    def encode(self, source: Tensor) -> Any:
        """Return what the decoder reads of padded source indices (B, m)."""

    def features(self, source: Tensor, previous: Tensor) -> Tensor:
        """Return what enters the output layer (B, n, features).

        Args:
            source: (B, m) indices, padded on the right.
            previous: (B, n), ``</s>`` and the target without its last symbol.
        """
        x: Tensor = self.decoder(previous, self.encode(source))[0]
        return x

    @abstractmethod
    def forward(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (B, n, V) and the attention (B, n, m) of each attending layer."""

    @abstractmethod
    def prepared(self, precision: Precision) -> PreparedNetwork:
        """Return the weights as decoding needs them; they do not follow the network's."""


def choose(state: Tensor, parents: Tensor) -> Tensor:
    """Return a state (B, K, ...) with the hypotheses that ``parents`` (B, K) names."""
    rows = torch.arange(len(parents), device=parents.device).unsqueeze(1)
    return state[rows, parents]
