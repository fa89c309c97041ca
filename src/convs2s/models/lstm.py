"""The LSTM sequence to sequence network (Sutskever et al. 2014).

It has no attention and can read the source reversed. Decoding runs it step by step by
``InferenceLstm``. Sections are those of the paper.

Shapes: B batch, m source length, n target length, K hypotheses, f embedding width, c cells of a
layer.
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
"""The output h and the cells of one layer, each (1, B, c), the shape that ``nn.LSTM`` uses."""


def reverse_tokens(source: Tensor) -> Tensor:
    """Reverse the tokens of each row (B, m), but leave ``</s>`` and the padding in place.

    This brings the first source token close to the first target token (section 3.3).
    """
    # The number of tokens of each row without ``</s>``.
    tokens = (source != PADDING).sum(1, keepdim=True) - 1  # (B, 1)
    positions = torch.arange(source.shape[1], device=source.device)  # (m,)
    positions = positions.unsqueeze(0)  # (1, m)
    mirrored = tokens - 1 - positions  # (B, m)
    order = torch.where(positions < tokens, mirrored, positions)
    return source.gather(1, order)


class LstmLayer(nn.LSTM):
    """One layer. On a GPU it computes in the precision of its weights, even under autocast.

    Under autocast, torch computes an LSTM on a GPU in float16, even if autocast is set to another
    precision. In float16 small gradients vanish, and the next layers expect autocast's precision.
    """

    def forward(self, x: Any, state: State | None = None) -> tuple[Any, State]:
        """Read ``x``, padded or packed, from a state on; return the outputs and the last state.

        Outputs are in the precision of autocast, if it is on.
        """
        bias = cast(Tensor, self.bias_hh_l0)
        device_type = bias.device.type
        precision = bias.dtype
        if device_type == "cpu" or not torch.is_autocast_enabled(device_type):
            return cast(tuple[Any, State], super().forward(x, state))
        x = x.to(precision)
        if state is not None:
            hidden, cells = state
            state = (hidden.to(precision), cells.to(precision))
        with torch.autocast(device_type, enabled=False):
            y, after = super().forward(x, state)
        y = y.to(torch.get_autocast_dtype(device_type))
        return y, after


class Layers(nn.ModuleList):
    """LSTM layers, the bottom one first, each of which is a separate ``nn.LSTM``.

    A single ``nn.LSTM`` of several layers also applies dropout between them. On a GPU it draws the
    masks from a generator that cannot be seeded again, so that a resumed training would differ from
    one without interruption.
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
    """Embeddings and layers, whose final states are the encoded source."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.embedding = Embedding(
            types, architecture.embedding, None, architecture.dropout
        )
        self.layers = Layers(architecture)

    def forward(
        self, source: Tensor, lengths: Tensor, lengths_on_cpu: Tensor
    ) -> list[State]:
        """Read source indices (B, m); return the last state of each layer.

        The lengths of the rows (B,) are given twice: on the device of the source, and on the CPU.
        """
        # In a packed sequence, the layers stop at the last token of each row, so that padding does
        # not change the states. ``pack_padded_sequence`` needs the longest row first. By default it
        # sorts on the CPU, and the device has to wait for the order. So sort the lengths on the
        # device as well, which gives the order there.
        order = lengths.sort(descending=True).indices
        embedded = self.embedding(source)  # (B, m, f)
        ordered = embedded.index_select(0, order)  # (B, m, f)
        longest_first = lengths_on_cpu.sort(descending=True).values
        batch = pack_padded_sequence(ordered, longest_first, batch_first=True)
        # With the order and its inverse, the layers return states in the order of the source.
        original_order = invert_permutation(order)
        packed = PackedSequence(batch.data, batch.batch_sizes, order, original_order)
        states: list[State] = []
        for number, layer in enumerate(self.layers):
            if number > 0:  # dropout between two layers
                dropped = self.layers.drop(packed.data)
                packed = packed._replace(data=dropped)
            packed, state = layer(packed)
            states.append(state)
        return states


class LstmDecoder(nn.Module):
    """Embeddings, layers that start from the encoder's final states, and the output layer."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.embedding = Embedding(
            types, architecture.embedding, None, architecture.dropout
        )
        self.layers = Layers(architecture)
        self.output = PlainOutput(architecture.cells, types)

    def forward(
        self, previous: Tensor, states: list[State]
    ) -> tuple[Tensor, list[State]]:
        """Read target tokens (B, n), starting from the state of each layer.

        Return the input of the output layer (B, n, c), and the states after the last token.
        """
        x = self.embedding(previous)  # (B, n, f)
        after: list[State] = []
        for layer, state in zip(self.layers, states, strict=True):
            if after:  # dropout between two layers
                x = self.layers.drop(x)
            x, state = layer(x, state)  # (B, n, c)
            after.append(state)
        return self.layers.drop(x), after


class Lstm(Network):
    """Two LSTMs of several layers, one for the source and one for the target (section 2)."""

    attends = False  # the decoder only gets the final states of the encoder

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
        bound = architecture.initialization
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> list[State]:
        """Encode padded source indices (B, m); return the final state of each layer.

        ``lengths`` (B,) on the CPU are computed, which waits for the device, if they are not given.
        """
        lengths_on_device = (source != PADDING).sum(1)  # (B,)
        if self.reverse_source:
            source = reverse_tokens(source)
        lengths_on_cpu = lengths_on_device.cpu() if lengths is None else lengths
        states = self.encoder(source, lengths_on_device, lengths_on_cpu)
        return cast(list[State], states)

    def final_state(self, source: Tensor) -> Tensor:
        """Encode source indices (B, m); return the final states as vectors (B, 2 * layers * c).

        A vector has the output and the cells of the bottom layer, then those of the next one.
        """
        parts = []
        for hidden, cells in self.encode(source):  # (1, B, c) each
            parts.append(hidden[0])
            parts.append(cells[0])
        return torch.cat(parts, dim=1)


class InferenceLstm:
    """The network for decoding. It shares the weights of the layers with the given network.

    In bf16, the layers run under autocast. A CPU then rounds their weights at each step, and a GPU
    does not (see ``LstmLayer``).
    """

    def __init__(self, network: Lstm, precision: Precision) -> None:
        """Take a network; ``precision`` is fp32, which keeps that of the weights, or bf16."""
        self._network = network
        weight = network.output.weight().detach()
        bias = network.output.bias.detach()
        self.output = LinearMap(weight, bias, precision)
        is_bf16 = precision == "bf16"
        self._autocast = torch.autocast(
            weight.device.type, torch.bfloat16, enabled=is_bf16
        )

    def start(self, source: Tensor, hypotheses: int) -> "LstmIncrementalState":
        """Encode padded source indices (B, m), and return the state of K hypotheses of each."""
        with self._autocast:
            # The states of a sentence must not depend on the others of its batch. But torch takes
            # another kernel if all rows have the same length, and adds up in another order at
            # positions that fewer than FEWEST_ROWS rows have. So encode FEWEST_ROWS more rows,
            # which are longer than all sentences.
            source = functional.pad(source, (0, 1), value=PADDING)  # (B, m + 1)
            longer = source.new_full((FEWEST_ROWS, source.shape[1]), END)
            filled = torch.cat([source, longer])  # (B', m + 1)
            encoded = self._network.encode(filled)
        layers = []
        for hidden, cells in encoded:  # (1, B', c) each
            layers.append(torch.cat([hidden, cells]))  # (2, B', c)
        states = torch.stack(layers)  # (layers, 2, B', c)
        states = states[:, :, : len(source)]  # (layers, 2, B, c)
        return LstmIncrementalState(
            self._network.decoder, states, hypotheses, self._autocast
        )


class LstmIncrementalState:
    """The output and the cells of each layer for every hypothesis, (layers, 2, B, K, c)."""

    def __init__(
        self,
        decoder: LstmDecoder,
        encoded: Tensor,
        hypotheses: int,
        autocast: torch.autocast,
    ) -> None:
        """Start each hypothesis from the final states of its sentence (layers, 2, B, c).

        ``autocast`` is a context that sets the precision of the steps.
        """
        self._decoder = decoder
        self._autocast = autocast
        by_hypothesis = encoded.unsqueeze(3)  # (layers, 2, B, 1, c)
        self._states = by_hypothesis.expand(-1, -1, -1, hypotheses, -1)

    def step(self, previous: Tensor) -> tuple[Tensor, None]:
        """Read the last token of each hypothesis (B, K).

        Return the input of the output layer (B, K, c), and None, as there is no attention.
        """
        rows = self._states.flatten(2, 3)  # (layers, 2, B * K, c)
        rows = rows.unsqueeze(2)  # (layers, 2, 1, B * K, c)
        states = [(hidden, cells) for hidden, cells in rows]
        tokens = previous.reshape(-1, 1)  # (B * K, 1)
        with self._autocast:
            x, states = self._decoder(tokens, states)  # (B * K, 1, c)
        joined = [torch.cat(state) for state in states]  # (2, B * K, c) of each layer
        after = torch.stack(joined)  # (layers, 2, B * K, c)
        self._states = after.view(self._states.shape)
        return x.view(*previous.shape, -1), None

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses; see ``IncrementalState.select``."""
        by_row = self._states.flatten(2, 3)  # (layers, 2, B * K, c)
        selected = by_row.index_select(2, rows)
        self._states = selected.view(self._states.shape)

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but these; ``sentences`` are indices of the B sentences."""
        self._states = self._states.index_select(2, sentences)
