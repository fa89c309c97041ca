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
from convs2s.data.vocabulary import PADDING
from convs2s.models.kernels.dropout import dropout
from convs2s.models.layers import Embedding, PlainOutput
from convs2s.models.network import Network

State = tuple[Tensor, Tensor]
"""A layer's output h and its cells, each (1, B, c) as torch has them, or (B, K, c)."""


def reverse_tokens(source: Tensor) -> Tensor:
    """Reverse the tokens of each row (B, m); ``</s>`` and the padding after it keep their place.

    The first source token comes close to the first target token this way (section 3.3).
    """
    tokens = (source != PADDING).sum(1, keepdim=True) - 1  # (B, 1)
    positions = torch.arange(source.shape[1], device=source.device).unsqueeze(0)  # (1, m)
    return source.gather(1, torch.where(positions < tokens, tokens - 1 - positions, positions))


class LstmLayer(nn.LSTM):
    """One layer, which computes in the precision of its weights, under autocast as well.

    A GPU's LSTM would compute in float16 there, whichever precision autocast has: small gradients
    vanish in it, and the layers after it expect autocast's.
    """

    def forward(self, x: Any, state: State | None = None) -> tuple[Any, State]:
        """Read ``x``, padded or packed, starting from a state; return outputs and last state."""
        bias = cast(Tensor, self.bias_hh_l0)
        device_type, precision = bias.device.type, bias.dtype
        if device_type == "cpu" or not torch.is_autocast_enabled(device_type):
            result: tuple[Any, State] = super().forward(x, state)
            return result
        with torch.autocast(device_type, enabled=False):
            before = None if state is None else (state[0].to(precision), state[1].to(precision))
            y, after = super().forward(x.to(precision), before)
        return y.to(torch.get_autocast_dtype(device_type)), after


class Layers(nn.ModuleList):
    """LSTM layers, bottom first, each a module of its own.

    Between the layers of one module torch draws dropout masks from a generator that no seed resets
    on GPUs: a resumed training would differ.
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
        """Read source indices (B, m) of lengths (B,); return each layer's last state (1, B, c)."""
        # Packed, the layers stop at each row's last token: padding changes no state.
        packed = pack_padded_sequence(
            self.embedding(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states = []  # of each layer h and cells, (1, B, c)
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
        """Read tokens (B, n), starting from the layers' states (1, B, c).

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
        self, architecture: LstmArchitecture, source_types: int, target_types: int
    ) -> None:
        """Draw every parameter from U(-initialization, initialization) (section 3.4)."""
        encoder = LstmEncoder(architecture, source_types)
        super().__init__(encoder, LstmDecoder(architecture, target_types))
        self.reverse_source = architecture.reverse_source
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -architecture.initialization, architecture.initialization)

    @property
    def attends(self) -> bool:
        """The decoder sees nothing of the source but its final state."""
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
        lengths = (source != PADDING).sum(1)  # (B,)
        if self.reverse_source:
            source = reverse_tokens(source)
        states: list[State] = self.encoder(source, lengths)
        return states

    def forward(self, source: Tensor, previous: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (B, n, V), and no attention."""
        return self.output(self.features(source, previous)), []
