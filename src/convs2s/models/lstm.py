"""The LSTM sequence to sequence network (Sutskever et al. 2014).

The network has no attention, and can read the source reversed. ``InferenceLstm`` decodes with it
step by step. Sections are those of the paper.

Shapes: B batch, m source length, n target length, K hypotheses, f embedding width, c cells of a
layer.
"""

from typing import cast

import torch
from torch import Tensor, nn

from convs2s.config.architecture import LstmArchitecture
from convs2s.data.vocabulary import PADDING
from convs2s.models.kernels.dropout import dropout
from convs2s.models.layers import Embedding, PlainOutput
from convs2s.models.network import Network
from convs2s.models.recurrent import (
    LstmLayer,
    RecurrentInference,
    State,
    packed,
    with_longer_rows,
)
from convs2s.models.steps import Precision


def stack_states(states: list[State]) -> Tensor:
    """Return the states of all layers as one tensor (layers, 2, B, c)."""
    return torch.stack([torch.cat(state) for state in states])


def reverse_tokens(source: Tensor) -> Tensor:
    """Reverse the tokens of each row (B, m), but leave ``</s>`` and the padding in place.

    This brings the first source token close to the first target token (section 3.3).
    """
    # The number of tokens in each row, without ``</s>``.
    tokens = (source != PADDING).sum(1, keepdim=True) - 1  # (B, 1)
    positions = torch.arange(source.shape[1], device=source.device)  # (m,)
    positions = positions.unsqueeze(0)  # (1, m)
    mirrored = tokens - 1 - positions  # (B, m)
    order = torch.where(positions < tokens, mirrored, positions)
    return source.gather(1, order)


class LstmStack(nn.Module):
    """What the encoder and the decoder have in common: embeddings, and layers from bottom to top.

    Each layer is a separate ``nn.LSTM``. A single ``nn.LSTM`` with several layers would apply
    dropout between them itself. On a GPU, it would draw the masks from a generator that cannot be
    seeded again, so a resumed training would differ from one without interruption.
    """

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__()
        self.dropout = architecture.dropout
        inputs = architecture.embedding
        self.embedding = Embedding(types, inputs, None, self.dropout)
        self.layers = nn.ModuleList()
        for _ in range(architecture.layers):
            self.layers.append(LstmLayer(inputs, architecture.cells, batch_first=True))
            inputs = architecture.cells

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout to the output of a layer."""
        return dropout(x, self.dropout, self.training)


class LstmEncoder(LstmStack):
    """Embeddings and layers, whose final states are the encoded source."""

    def forward(self, source: Tensor, lengths: Tensor | None) -> list[State]:
        """Read source indices (B, m); return the last state of each layer.

        ``lengths`` (B,) is a parameter of ``convs2s.models.recurrent.packed``.
        """
        sequence = packed(self.embedding(source), source, lengths)
        states: list[State] = []
        for layer in self.layers:
            if states:  # dropout between two layers
                dropped = self.drop(sequence.data)
                sequence = sequence._replace(data=dropped)
            sequence, state = layer(sequence)
            states.append(state)
        return states


class LstmDecoder(LstmStack):
    """Embeddings, layers that start from the encoder's final states, and the output layer."""

    def __init__(self, architecture: LstmArchitecture, types: int) -> None:
        super().__init__(architecture, types)
        self.output = PlainOutput(architecture.cells, types)

    def forward(
        self, previous: Tensor, states: list[State]
    ) -> tuple[Tensor, list[State]]:
        """Read target tokens (B, n), starting from a state of each layer.

        Return the input of the output layer (B, n, c), and the states after the last token.
        """
        x = self.embedding(previous)  # (B, n, f)
        after: list[State] = []
        for layer, state in zip(self.layers, states, strict=True):
            if after:  # dropout between two layers
                x = self.drop(x)
            x, state = layer(x, state)  # (B, n, c)
            after.append(state)
        return self.drop(x), after


class Lstm(Network):
    """Two LSTMs of several layers, one for the source and one for the target (section 2)."""

    attends = False  # the decoder only gets the final states of the encoder

    encoder: LstmEncoder
    decoder: LstmDecoder

    def __init__(
        self,
        architecture: LstmArchitecture,
        source_types: int,
        target_types: int,
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

        ``lengths`` is a parameter of ``LstmEncoder.forward``.
        """
        if self.reverse_source:
            source = reverse_tokens(source)
        return cast(list[State], self.encoder(source, lengths))

    def final_state(self, source: Tensor) -> Tensor:
        """Encode source indices (B, m); return the final states as vectors (B, 2 * layers * c).

        A vector contains the output and the cells of each layer, those of the bottom layer first.
        """
        states = stack_states(self.encode(source))  # (layers, 2, B, c)
        by_sentence = states.permute(2, 0, 1, 3)  # (B, layers, 2, c)
        return by_sentence.flatten(1)


class InferenceLstm(RecurrentInference):
    """The network for decoding."""

    def __init__(self, network: Lstm, precision: Precision) -> None:
        """Prepare a network to decode in fp32 or bf16."""
        super().__init__(network.output, precision)
        self._network = network

    def start(self, source: Tensor, hypotheses: int) -> "LstmIncrementalState":
        """Encode a padded source (B, m), and return the state of K hypotheses per sentence."""
        with self.autocast:
            encoded = self._network.encode(with_longer_rows(source))
        states = stack_states(encoded)  # (layers, 2, B + FEWEST_ROWS, c)
        # Without the states of the longer rows.
        states = states[:, :, : len(source)]  # (layers, 2, B, c)
        states = states.unsqueeze(3)  # (layers, 2, B, 1, c)
        states = states.expand(-1, -1, -1, hypotheses, -1)  # (layers, 2, B, K, c)
        return LstmIncrementalState(self._network.decoder, states, self.autocast)


class LstmIncrementalState:
    """The output and the cells of each layer for every hypothesis."""

    def __init__(
        self,
        decoder: LstmDecoder,
        states: Tensor,
        autocast: torch.autocast,
    ) -> None:
        """Start from states (layers, 2, B, K, c).

        ``autocast`` is a context that sets the precision of the steps.
        """
        self._decoder = decoder
        self._states = states
        self._autocast = autocast

    def step(self, previous: Tensor) -> tuple[Tensor, None]:
        """Read the last token of each hypothesis (B, K).

        Return the input of the output layer (B, K, c), and None in place of the attention.
        """
        rows = self._states.flatten(2, 3)  # (layers, 2, B * K, c)
        rows = rows.unsqueeze(2)  # (layers, 2, 1, B * K, c)
        states = [(hidden, cells) for hidden, cells in rows]  # (1, B * K, c) each
        tokens = previous.reshape(-1, 1)  # (B * K, 1)
        with self._autocast:
            x, states = self._decoder(tokens, states)  # (B * K, 1, c)
        after = stack_states(states)  # (layers, 2, B * K, c)
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
