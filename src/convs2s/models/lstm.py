"""The LSTM sequence to sequence network (Sutskever et al. 2014): no attention, source reversed.

``InferenceLstm`` is how decoding runs it, step by step.

Shapes: B batch, m source length, n target length, K hypotheses, f embedding, c cells, V types.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, invert_permutation, pack_padded_sequence

from convs2s.config.architecture import LstmArchitecture
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.kernels.dropout import dropout
from convs2s.models.kernels.linear_map import FEWEST_ROWS, LinearMap
from convs2s.models.layers import Embedding, PlainOutput
from convs2s.models.network import Network
from convs2s.models.steps import Precision

State = tuple[Tensor, Tensor]
"""A layer's output h and its cells, each (1, B, c) as torch has them."""


def reverse_tokens(source: Tensor) -> Tensor:
    """Reverse the tokens of each row (B, m); ``</s>`` and the padding after it keep their place.

    The first source token comes close to the first target token this way (section 3.3).
    """
    tokens = (source != PADDING).sum(1, keepdim=True) - 1  # (B, 1)
    positions = torch.arange(source.shape[1], device=source.device)  # (m,)
    positions = positions.unsqueeze(0)  # (1, m)
    mirrored = tokens - 1 - positions  # (B, m)
    order = torch.where(positions < tokens, mirrored, positions)
    return source.gather(1, order)


class LstmLayer(nn.LSTM):
    """One layer, which on a GPU computes in the precision of its weights, under autocast as well.

    A GPU's LSTM would compute in float16 there, whichever precision autocast has: small gradients
    vanish in it, and the layers after it expect autocast's.
    """

    def forward(self, x: Any, state: State | None = None) -> tuple[Any, State]:
        """Read ``x``, padded or packed, starting from a state; return outputs and last state."""
        bias = cast(Tensor, self.bias_hh_l0)
        device_type = bias.device.type
        precision = bias.dtype
        if device_type == "cpu" or not torch.is_autocast_enabled(device_type):
            return cast(tuple[Any, State], super().forward(x, state))
        if state is not None:
            hidden, cells = state
            state = (hidden.to(precision), cells.to(precision))
        with torch.autocast(device_type, enabled=False):
            y, after = super().forward(x.to(precision), state)
        return y.to(torch.get_autocast_dtype(device_type)), after


class Layers(nn.ModuleList):
    """LSTM layers, bottom first, each a module of its own.

    Between the layers of one module torch draws dropout masks from a generator that no seed resets
    on GPUs: a resumed training would differ.
    """

    def __init__(self, architecture: LstmArchitecture) -> None:
        super().__init__()
        inputs = architecture.embedding
        for _ in range(architecture.layers):
            self.append(LstmLayer(inputs, architecture.cells, batch_first=True))
            inputs = architecture.cells
        self.dropout = architecture.dropout

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout between two layers."""
        return dropout(x, self.dropout, self.training)


class LstmEncoder(nn.Module):
    """Embeddings and layers, of which only the final states matter."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.embedding = Embedding(types, architecture.embedding, None, architecture.dropout)
        self.layers = Layers(architecture)

    def forward(self, source: Tensor, lengths: Tensor, on_cpu: Tensor) -> list[State]:
        """Read source indices (B, m); return each layer's last state (1, B, c).

        Their lengths (B,) are given twice: where the source is, and on the CPU.
        """
        # Packed, the layers stop at each row's last token: padding changes no state. torch would
        # sort on the CPU and have the device wait for the order, so each sorts its own lengths.
        order = lengths.sort(descending=True).indices
        embedded = self.embedding(source)  # (B, m, f)
        ordered = embedded.index_select(0, order)
        longest_first = on_cpu.sort(descending=True).values
        batch = pack_padded_sequence(ordered, longest_first, batch_first=True)
        packed = PackedSequence(batch.data, batch.batch_sizes, order, invert_permutation(order))
        states: list[State] = []  # of each layer h and cells, (1, B, c)
        for number, layer in enumerate(self.layers):
            if number > 0:
                packed = packed._replace(data=self.layers.drop(packed.data))
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

        Return what enters the output layer (B, n, c), and the states after the last token.
        """
        x = self.embedding(previous)  # (B, n, f)
        after: list[State] = []
        for layer, state in zip(self.layers, states, strict=True):
            if after:  # between two layers
                x = self.layers.drop(x)
            x, state = layer(x, state)  # (B, n, c)
            after.append(state)
        return self.layers.drop(x), after


class Lstm(Network):
    """Two LSTMs of several layers, one for the source and one for the target (section 2)."""

    attends = False  # the decoder sees nothing of the source but its final state

    encoder: LstmEncoder
    decoder: LstmDecoder

    def __init__(
        self, architecture: LstmArchitecture, source_types: int, target_types: int
    ) -> None:
        """Draw every parameter from U(-initialization, initialization) (section 3.4)."""
        encoder = LstmEncoder(architecture, source_types)
        decoder = LstmDecoder(architecture, target_types)
        super().__init__(encoder, decoder)
        self.reverse_source = architecture.reverse_source
        most = architecture.initialization
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -most, most)

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> list[State]:
        """Encode padded source indices (B, m): the final state (1, B, c) of each layer."""
        own_lengths = (source != PADDING).sum(1)  # (B,)
        if self.reverse_source:
            source = reverse_tokens(source)
        on_cpu = own_lengths.cpu() if lengths is None else lengths
        return cast(list[State], self.encoder(source, own_lengths, on_cpu))

    def final_state(self, source: Tensor) -> Tensor:
        """Return outputs and cells of all layers, the bottom one's first, side by side."""
        parts = []
        for hidden, cells in self.encode(source):  # (1, B, c) each
            parts.append(hidden[0])
            parts.append(cells[0])
        return torch.cat(parts, dim=1)


class InferenceLstm:
    """The network itself; in bf16, a CPU rounds the layers' weights at each step (`LstmLayer`)."""

    def __init__(self, network: Lstm, precision: Precision) -> None:
        self._network = network
        weight = network.output.weight().detach()
        bias = network.output.bias.detach()
        self.output = LinearMap(weight, bias, precision)
        self._rounds = torch.autocast(weight.device.type, torch.bfloat16, precision == "bf16")

    def start(self, source: Tensor, hypotheses: int) -> "LstmIncrementalState":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        with self._rounds:
            # Rows that are longer than all sentences go along, as torch takes another kernel where
            # all rows have one length, and adds up in another order where fewer than FEWEST_ROWS
            # are left: a sentence's states would depend on the others of its batch.
            source = functional.pad(source, (0, 1), value=PADDING)  # (B, m + 1)
            longer = source.new_full((FEWEST_ROWS, source.shape[1]), END)
            encoded = self._network.encode(torch.cat([source, longer]))
        layers = []
        for hidden, cells in encoded:  # (1, B', c) each
            layers.append(torch.cat([hidden, cells]))
        states = torch.stack(layers)[:, :, : len(source)]  # (layers, 2, B, c)
        return LstmIncrementalState(self._network.decoder, states, hypotheses, self._rounds)


class LstmIncrementalState:
    """Outputs and cells of each layer for every hypothesis, (layers, 2, B, K, c)."""

    def __init__(
        self,
        decoder: LstmDecoder,
        encoded: Tensor,
        hypotheses: int,
        rounds: torch.autocast,
    ) -> None:
        """Start every hypothesis from its sentence's final states (layers, 2, B, c).

        ``rounds`` sets the precision.
        """
        self._decoder = decoder
        self._rounds = rounds
        each = encoded.unsqueeze(3)  # (layers, 2, B, 1, c)
        self._states = each.expand(-1, -1, -1, hypotheses, -1)

    def step(self, previous: Tensor) -> tuple[Tensor, None]:
        """Read each hypothesis's last token (B, K): what enters the output layer (B, K, c)."""
        rows = self._states.flatten(2, 3).unsqueeze(2)  # (layers, 2, 1, B * K, c)
        states = [(hidden, cells) for hidden, cells in rows]
        with self._rounds:
            x, states = self._decoder(previous.reshape(-1, 1), states)  # (B * K, 1, c)
        after = torch.stack([torch.cat(state) for state in states])  # (layers, 2, B * K, c)
        self._states = after.view(self._states.shape)
        return x.view(*previous.shape, -1), None

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        selected = self._states.flatten(2, 3).index_select(2, rows)
        self._states = selected.view(self._states.shape)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        self._states = self._states.index_select(2, sentences)
