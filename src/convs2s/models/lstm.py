"""The LSTM sequence to sequence network (Sutskever et al. 2014): no attention, source reversed.

Shapes: B batch, m source length, n target length, K hypotheses, f embedding width, c cells of a
layer, V target types.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from convs2s.models.dropout import dropout
from convs2s.models.layers import Embedding, PlainOutput
from convs2s.models.linear_maps import Precision, linear_map
from convs2s.models.network import Network, choose

State = tuple[Tensor, Tensor]
"""A layer's output h and its cells, each (1, B, c) as torch has them, or (B, K, c)."""


@dataclass(frozen=True)
class LstmArchitecture:
    """Everything that fixes an LSTM network's shape but its vocabularies.

    Attributes:
        layers: of the encoder and of the decoder.
        cells: c of each layer.
        embedding: f, width of the embeddings.
        dropout: probability that dropout zeroes a value of the embeddings, between layers or of the
            decoder's output; recurrent connections have none.
        initialisation: every parameter is drawn uniformly between minus this and this.
        reverse_source: whether the encoder reads the source's words from last to first.
    """

    layers: int
    cells: int
    embedding: int
    dropout: float
    initialisation: float
    reverse_source: bool

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "LstmArchitecture":
        """Read a validated ``architecture`` section of config/models.yaml, of kind ``lstm``."""
        return cls(**{key: value for key, value in settings.items() if key != "kind"})


def reverse_words(source: Tensor, padding_index: int) -> Tensor:
    """Reverse the words of each row (B, m); ``</s>`` and the padding behind it keep their place.

    The first source word comes close to the first target word this way (section 3.3).
    """
    words = (source != padding_index).sum(1, keepdim=True) - 1  # (B, 1)
    positions = torch.arange(source.shape[1], device=source.device).unsqueeze(0)  # (1, m)
    return source.gather(1, torch.where(positions < words, words - 1 - positions, positions))


class Layers(nn.ModuleList):
    """LSTM layers, bottom first.

    They are modules of one layer each, as torch's own dropout between layers draws its masks from a
    generator that no seed resets on GPUs: a training that goes on would differ.
    """

    def __init__(self, architecture: LstmArchitecture) -> None:
        widths = [architecture.embedding, *[architecture.cells] * (architecture.layers - 1)]
        super().__init__(nn.LSTM(width, architecture.cells, batch_first=True) for width in widths)
        self.dropout = architecture.dropout

    def __iter__(self) -> Iterator[nn.LSTM]:
        return cast(Iterator[nn.LSTM], super().__iter__())

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout between two layers."""
        return dropout(x, self.dropout, self.training)


class Encoder(nn.Module):
    """Embeddings and layers, of which only the final states matter."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.embedding = Embedding(types, architecture.embedding, None, architecture.dropout)
        self.layers = Layers(architecture)

    def forward(self, source: Tensor, lengths: Tensor) -> list[State]:
        """Read source indices (B, m) of these lengths (B,).

        Returns:
            The state (1, B, c) of each layer after each row's last symbol, whatever its padding.
        """
        # Packed, the layers stop at each row's end.
        packed = pack_padded_sequence(
            self.embedding(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states = []
        for number, layer in enumerate(self.layers):
            if number:
                dropped = self.layers.drop(packed.data)
                packed = PackedSequence(
                    dropped, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
                )
            packed, state = layer(packed)
            states.append(state)
        return states


class Decoder(nn.Module):
    """Embeddings, layers that start from the encoder's final states, and the output layer."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.embedding = Embedding(types, architecture.embedding, None, architecture.dropout)
        self.layers = Layers(architecture)
        self.output = PlainOutput(architecture.cells, types)

    def forward(self, previous: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        """Read symbols (B, n) from the layers' states (1, B, c) on.

        Returns:
            What enters the output layer (B, n, c), and the states after the last symbol.
        """
        x = self.embedding(previous)  # (B, n, f)
        after = []
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            x, state = layer(self.layers.drop(x) if number else x, state)  # (B, n, c)
            after.append(state)
        return self.layers.drop(x), after


class Lstm(Network):
    """Two LSTMs of several layers, one for the source and one for the target (section 2)."""

    encoder: Encoder
    decoder: Decoder

    def __init__(
        self,
        architecture: LstmArchitecture,
        source_types: int,
        target_types: int,
        padding_index: int,
    ) -> None:
        """Draw every parameter from U(-initialisation, initialisation) (section 3.4).

        The arguments are those of ``convs2s.model_file.build_network`` and the index that means
        padding in the source.
        """
        encoder = Encoder(architecture, source_types)
        super().__init__(encoder, Decoder(architecture, target_types), padding_index)
        self.reverse_source = architecture.reverse_source
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -architecture.initialisation, architecture.initialisation)

    @property
    def attends(self) -> bool:
        """A fixed-size state is all that the decoder sees of the source."""
        return False

    @property
    def positions(self) -> Mapping[str, int | None]:
        """There is no limit."""
        return {"source": None, "target": None}

    @property
    def output(self) -> PlainOutput:
        """The layer before the softmax."""
        return self.decoder.output

    def encode(self, source: Tensor) -> list[State]:
        """Encode padded source indices (B, m): the final state (1, B, c) of each layer."""
        lengths = (source != self.padding_index).sum(1)
        if self.reverse_source:
            source = reverse_words(source, self.padding_index)
        states: list[State] = self.encoder(source, lengths)
        return states

    def forward(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (B, n, V), and no attention."""
        return self.output(self.features(source, previous)), []

    def prepared(self, precision: Precision) -> "PreparedLstm":
        """Return the weights as decoding needs them: in fp32 or bf16."""
        return PreparedLstm(self, precision)


class PreparedLstm:
    """The network as it is; in bf16, torch rounds the layers' weights at each step."""

    def __init__(self, network: Lstm, precision: Precision) -> None:
        """Take a network for decoding in fp32 or bf16; there is no int8 for its layers."""
        if precision == "int8":
            raise NotImplementedError("an LSTM in int8")
        self._network = network
        weight, bias = network.output.weight().detach(), network.output.bias.detach()
        self.output = linear_map(weight, bias, precision)
        self._rounds = torch.autocast(weight.device.type, torch.bfloat16, precision == "bf16")

    def start(self, source: Tensor, hypotheses: int) -> "LstmDecoding":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        with self._rounds:
            encoded = self._network.encode(source)
        return LstmDecoding(self._network.decoder, encoded, hypotheses, self._rounds)


class LstmDecoding:
    """The states of every hypothesis, (B, K, c) of each layer."""

    def __init__(
        self, decoder: Decoder, encoded: list[State], hypotheses: int, rounds: torch.autocast
    ) -> None:
        """Start every hypothesis of a sentence from its final state (1, B, c).

        ``rounds`` is the precision that the decoder runs in.
        """
        self._decoder, self._rounds = decoder, rounds
        self._states = self._each(encoded, lambda x: x[0].unsqueeze(1).expand(-1, hypotheses, -1))

    def step(self, previous: Tensor) -> tuple[Tensor, None]:
        """Read each hypothesis's last symbol (B, K): what enters the output layer (B, K, c)."""
        batch, hypotheses = previous.shape
        rows = self._each(self._states, lambda x: x.flatten(0, 1).unsqueeze(0).contiguous())
        with self._rounds:
            x, states = self._decoder(previous.reshape(-1, 1), rows)  # (B * K, 1, c)
        self._states = self._each(states, lambda x: x[0].view(batch, hypotheses, -1))
        return x.view(batch, hypotheses, -1), None

    def select(self, parents: Tensor) -> None:
        """Continue from other hypotheses of the same sentences: ``parents`` (B, K) indexes K."""
        self._states = self._each(self._states, lambda x: choose(x, parents))

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        self._states = self._each(self._states, lambda x: x[sentences])

    @staticmethod
    def _each(states: list[State], function: Callable[[Tensor], Tensor]) -> list[State]:
        return [(function(hidden), function(cells)) for hidden, cells in states]
