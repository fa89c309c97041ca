"""The LSTM sequence to sequence network (Sutskever et al. 2014): no attention, source reversed.

Shapes: B batch, m source length, n target length, K hypotheses, f embedding width, c cells of a
layer, V target types.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from convs2s.config.architecture import LstmArchitecture
from convs2s.models.kernels.dropout import dropout
from convs2s.models.layers import Embedding, PlainOutput
from convs2s.models.network import Network

State = tuple[Tensor, Tensor]
"""A layer's output h and its cells, each (1, B, c) as torch has them, or (B, K, c)."""


def reverse_tokens(source: Tensor, padding_index: int) -> Tensor:
    """Reverse the tokens of each row (B, m); ``</s>`` and the padding behind it keep their place.

    The first source token comes close to the first target token this way (section 3.3).
    """
    tokens = (source != padding_index).sum(1, keepdim=True) - 1  # (B, 1)
    positions = torch.arange(source.shape[1], device=source.device).unsqueeze(0)  # (1, m)
    return source.gather(1, torch.where(positions < tokens, tokens - 1 - positions, positions))


class LstmLayer(nn.LSTM):
    """One layer.

    Under autocast a GPU's layers compute in float16, whichever precision autocast has: small
    gradients vanish there, and what follows expects the other one. They stay in the precision of
    their weights instead.
    """

    def forward(self, x: Any, state: State | None = None) -> tuple[Any, State]:
        """Read ``x``, padded or packed, from a state on; return outputs like it, and the state."""
        bias = cast(Tensor, self.bias_hh_l0)
        kind, own = bias.device.type, bias.dtype
        if kind == "cpu" or not torch.is_autocast_enabled(kind):
            found: tuple[Any, State] = super().forward(x, state)
            return found
        with torch.autocast(kind, enabled=False):
            before = None if state is None else (state[0].to(own), state[1].to(own))
            y, after = super().forward(x.to(own), before)
        return y.to(torch.get_autocast_dtype(kind)), after


class Layers(nn.ModuleList):
    """LSTM layers, bottom first.

    They are modules of one layer each, as torch's own dropout between layers draws its masks from a
    generator that no seed resets on GPUs: a training that goes on would differ.
    """

    def __init__(self, architecture: LstmArchitecture) -> None:
        widths = [architecture.embedding, *[architecture.cells] * (architecture.layers - 1)]
        super().__init__(LstmLayer(width, architecture.cells, batch_first=True) for width in widths)
        self.dropout = architecture.dropout

    def __iter__(self) -> Iterator[LstmLayer]:
        return cast(Iterator[LstmLayer], super().__iter__())

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout between two layers."""
        return dropout(x, self.dropout, self.training)


class LstmEncoder(nn.Module):
    """Embeddings and layers, of which only the final states matter."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.embedding = Embedding(types, architecture.embedding, None, architecture.dropout)
        self.layers = Layers(architecture)

    def forward(self, source: Tensor, lengths: Tensor) -> list[State]:
        """Read source indices (B, m) of these lengths (B,).

        Returns:
            The state (1, B, c) of each layer after each row's last token, whatever its padding.
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


class LstmDecoder(nn.Module):
    """Embeddings, layers that start from the encoder's final states, and the output layer."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.embedding = Embedding(types, architecture.embedding, None, architecture.dropout)
        self.layers = Layers(architecture)
        self.output = PlainOutput(architecture.cells, types)

    def forward(self, previous: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        """Read tokens (B, n) from the layers' states (1, B, c) on.

        Returns:
            What enters the output layer (B, n, c), and the states after the last token.
        """
        x = self.embedding(previous)  # (B, n, f)
        after = []
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            x, state = layer(self.layers.drop(x) if number else x, state)  # (B, n, c)
            after.append(state)
        return self.layers.drop(x), after


class Lstm(Network):
    """Two LSTMs of several layers, one for the source and one for the target (section 2)."""

    encoder: LstmEncoder
    decoder: LstmDecoder

    def __init__(
        self,
        architecture: LstmArchitecture,
        source_types: int,
        target_types: int,
        padding_index: int,
    ) -> None:
        """Draw every parameter from U(-initialization, initialization) (section 3.4).

        The arguments are those of ``convs2s.models.build.build_network`` and the index that means
        padding in the source.
        """
        encoder = LstmEncoder(architecture, source_types)
        super().__init__(encoder, LstmDecoder(architecture, target_types), padding_index)
        self.reverse_source = architecture.reverse_source
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -architecture.initialization, architecture.initialization)

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
            source = reverse_tokens(source, self.padding_index)
        states: list[State] = self.encoder(source, lengths)
        return states

    def forward(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (B, n, V), and no attention."""
        return self.output(self.features(source, previous)), []
