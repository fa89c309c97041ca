"""Recurrent networks with attention, the systems that ConvS2S is measured against.

The encoder reads the source in both directions. The decoder attends to all of its outputs, in one
of two ways:

- ``bahdanau`` (Bahdanau et al. 2015): before each token, a small network computes the scores of the
  source from the decoder's last output, and the context is an input of the bottom layer.
- ``luong`` (Luong et al. 2015, the global attention "general" without input feeding): the scores
  are the product of the decoder's new output and the source, and the context goes only to the
  output layer. So the layers can read a whole target at once.

Shapes: B batch, m source length, n target length, K hypotheses, R = B * K rows, f embedding width,
c cells of a layer and direction.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.config.architecture import RnnArchitecture
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.kernels.dropout import dropout
from convs2s.models.kernels.linear_map import FEWEST_ROWS
from convs2s.models.layers import Embedding, PlainOutput
from convs2s.models.network import Network
from convs2s.models.recurrent import (
    GruLayer,
    LstmLayer,
    RecurrentInference,
    State,
    packed,
    padded,
    torchs_own_kernels,
    with_longer_rows,
)
from convs2s.models.steps import VECTOR, Precision

LAYERS = {"gru": GruLayer, "lstm": LstmLayer}


class Annotations(NamedTuple):
    """The encoded source."""

    values: Tensor  # (B, m, 2c), the top layer's outputs in both directions
    padding: Tensor  # (B, m), True where the source is padding
    # (B, c) of each layer: its output at the first token in the backward direction.
    backward: list[Tensor]


class Memory(NamedTuple):
    """What the attention reads of the source."""

    keys: Tensor  # (B, m, c)
    values: Tensor  # (B, m, 2c)
    padding: Tensor  # (B, m)


class Affine(nn.Module):
    """A map from (..., inputs) to (..., outputs), whose weight is (inputs, outputs).

    The weight of ``nn.Linear`` is (outputs, inputs). With it, the rounding of a row would depend on
    its place among the rows (see ``LinearMap``).
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        """Draw the weight from U(-1/sqrt(inputs), 1/sqrt(inputs)), and set the bias to 0."""
        super().__init__()
        bound = inputs**-0.5
        drawn = torch.empty(inputs, outputs).uniform_(-bound, bound)
        self.weight = nn.Parameter(drawn)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        rows = torch.addmm(self.bias, x.flatten(0, -2), self.weight)
        return rows.view(*x.shape[:-1], -1)


class RnnEncoder(nn.Module):
    """Embeddings and bidirectional layers, the bottom one first."""

    def __init__(self, architecture: RnnArchitecture, types: int) -> None:
        super().__init__()
        self.dropout = architecture.dropout
        inputs = architecture.embedding
        self.embedding = Embedding(types, inputs, None, self.dropout)
        self.layers = nn.ModuleList()
        for _ in range(architecture.layers):
            layer = LAYERS[architecture.cell](
                inputs, architecture.cells, batch_first=True, bidirectional=True
            )
            self.layers.append(layer)
            inputs = 2 * architecture.cells

    def forward(self, source: Tensor, lengths: Tensor | None) -> Annotations:
        """Read source indices (B, m).

        ``lengths`` (B,) is a parameter of ``convs2s.models.recurrent.packed``.
        """
        sequence = packed(self.embedding(source), source, lengths)
        backward: list[Tensor] = []
        for layer in self.layers:
            sequence, state = layer(sequence)
            dropped = dropout(sequence.data, self.dropout, self.training)
            sequence = sequence._replace(data=dropped)
            hidden = state[0]  # (2, B, c), forward and backward
            backward.append(hidden[1])
        padding = source == PADDING
        return Annotations(padded(sequence, padding), padding, backward)


class RnnDecoder(nn.Module):
    """Embeddings, layers, attention, and the output layer.

    The first state of a layer is computed from the encoder's layer at the same height: from its
    output at the first token in the backward direction (Bahdanau et al. 2015, appendix A.2.2). The
    first cells of an LSTM are zeros.
    """

    def __init__(self, architecture: RnnArchitecture, types: int) -> None:
        super().__init__()
        embedding = architecture.embedding
        cells = architecture.cells
        self.cells = cells
        self.dropout = architecture.dropout
        self.has_cells = architecture.cell == "lstm"
        self.feeds_context = architecture.attention == "bahdanau"
        self.embedding = Embedding(types, embedding, None, self.dropout)
        # Each maps an output of the encoder to the first state of a layer.
        self.first = nn.ModuleList()
        self.layers = nn.ModuleList()
        inputs = embedding
        if self.feeds_context:
            inputs += 2 * cells  # the context
        for _ in range(architecture.layers):
            self.first.append(Affine(cells, cells))
            layer = LAYERS[architecture.cell](inputs, cells, batch_first=True)
            self.layers.append(layer)
            inputs = cells
        # Maps the encoder's outputs to the keys.
        self.key = Affine(2 * cells, cells)
        # The output of the top layer, and the context.
        readout_inputs = cells + 2 * cells
        if self.feeds_context:
            self.query = Affine(cells, cells)
            bound = cells**-0.5
            # Maps each position's ``tanh(query + key)`` to its score.
            self.weight = nn.Parameter(torch.empty(cells).uniform_(-bound, bound))
            readout_inputs += embedding
        self.readout = Affine(readout_inputs, embedding)
        self.output = PlainOutput(embedding, types)
        bound = embedding**-0.5
        nn.init.uniform_(self.output.table, -bound, bound)
        nn.init.zeros_(self.output.bias)

    def forward(
        self, previous: Tensor, source: Annotations
    ) -> tuple[Tensor, list[Tensor]]:
        """Read target tokens (B, n), starting from the first state.

        Return the output layer's input (B, n, f), and the attention (B, n, m) in a list.
        """
        memory, states = self.begin(source)
        embedded = self.embedding(previous)  # (B, n, f)
        features, attention, _ = self.read(embedded, states, memory)
        return features, [attention]

    def begin(self, source: Annotations) -> tuple[Memory, list[State]]:
        """Return what is computed once per source: the keys, and the first state of each layer."""
        memory = Memory(self.key(source.values), source.values, source.padding)
        states: list[State] = []
        for first, backward in zip(self.first, source.backward, strict=True):
            hidden = torch.tanh(first(backward)).unsqueeze(0)  # (1, B, c)
            if self.has_cells:
                states.append((hidden, torch.zeros_like(hidden)))
            else:
                states.append((hidden,))
        return memory, states

    def read(
        self, embedded: Tensor, states: Sequence[State], memory: Memory
    ) -> tuple[Tensor, Tensor, list[State]]:
        """Read embeddings (R, n, f) of K rows per sentence. If K is not 1, n must be 1.

        Return the output layer's input (R, n, f), the attention (R, n, m), and the states after the
        last token.
        """
        after = list(states)
        if self.feeds_context:
            # Each token needs the context of the output before it, so read token by token.
            outputs = []
            contexts = []
            attentions = []
            for token in embedded.split(1, dim=1):  # (R, 1, f)
                last = after[-1][0].transpose(0, 1)  # (R, 1, c), the top layer's output
                context, attention = self.attend(last, memory)
                x, after = self._advance(torch.cat([token, context], 2), after)
                outputs.append(x)
                contexts.append(context)
                attentions.append(attention)
            attention = torch.cat(attentions, 1)  # (R, n, m)
            parts = [torch.cat(outputs, 1), torch.cat(contexts, 1), embedded]
        else:
            x, after = self._advance(embedded, after)  # (R, n, c)
            context, attention = self.attend(x, memory)
            parts = [x, context]
        features = torch.tanh(self.readout(torch.cat(parts, 2)))  # (R, n, f)
        return dropout(features, self.dropout, self.training), attention, after

    def _advance(
        self, x: Tensor, states: Sequence[State]
    ) -> tuple[Tensor, list[State]]:
        """Run each layer from its state; return the top outputs (R, n, c) and the states after."""
        after = []
        # In fp32, oneDNN takes at least twice as long for one step of an LSTM and its backward pass
        # as torch's own kernels (docs/notes/2026-12-01-opponents.md).
        is_step = self.training and x.shape[1] == 1
        uses_own = is_step and not torch.is_autocast_enabled("cpu")
        for layer, state in zip(self.layers, states, strict=True):
            with torchs_own_kernels() if uses_own else nullcontext():
                x, state = layer(x, state)
            x = dropout(x, self.dropout, self.training)
            after.append(state)
        return x, after

    def attend(self, hidden: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Attend from outputs of the top layer (R, n, c). The rows are ordered by sentence.

        Return the contexts (R, n, 2c) and the attention (R, n, m).
        """
        rows, length, _ = hidden.shape
        sentences = len(memory.values)
        queries = hidden.reshape(sentences, -1, self.cells)  # (B, K * n, c)
        count = queries.shape[1]
        if not self.training and count < FEWEST_ROWS:
            # With fewer queries, the order in which torch adds the terms of a product would depend
            # on the padding of the batch.
            queries = functional.pad(queries, (0, 0, 0, FEWEST_ROWS - count))
        if self.feeds_context:
            projected = self.query(queries).unsqueeze(2)  # (B, K * n, 1, c)
            keys = memory.keys.unsqueeze(1)  # (B, 1, m, c)
            scores = torch.tanh(projected + keys) @ self.weight  # (B, K * n, m)
        else:
            scores = torch.bmm(queries, memory.keys.transpose(1, 2))  # (B, K * n, m)
        scores = scores.masked_fill(memory.padding.unsqueeze(1), -math.inf)
        attention = functional.softmax(scores, dim=2)
        context = torch.bmm(attention.to(memory.values.dtype), memory.values)
        # Drop the results of the queries that were added.
        context = context[:, :count]  # (B, K * n, 2c)
        attention = attention[:, :count]
        return context.reshape(rows, length, -1), attention.reshape(rows, length, -1)


class Rnn(Network):
    """A bidirectional recurrent encoder and a recurrent decoder with attention."""

    attends = True

    encoder: RnnEncoder
    decoder: RnnDecoder

    def __init__(
        self, architecture: RnnArchitecture, source_types: int, target_types: int
    ) -> None:
        """Draw the recurrent layers from U(-1/sqrt(cells), 1/sqrt(cells)), as torch does."""
        encoder = RnnEncoder(architecture, source_types)
        decoder = RnnDecoder(architecture, target_types)
        super().__init__(encoder, decoder)

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Annotations:
        """Encode padded source indices (B, m).

        ``lengths`` (B,) is a parameter of ``convs2s.models.recurrent.packed``.
        """
        return cast(Annotations, self.encoder(source, lengths))


class InferenceRnn(RecurrentInference):
    """The network for decoding."""

    def __init__(self, network: Rnn, precision: Precision) -> None:
        """Prepare a network to decode in fp32 or bf16."""
        super().__init__(network.output, precision)
        self.network = network

    def start(self, source: Tensor, hypotheses: int) -> "RnnState":
        """Encode a padded source (B, m), and return the state of K hypotheses per sentence."""
        sentences = len(source)
        # A softmax over a whole number of vectors does not depend on the padding (``VECTOR``).
        # ``with_longer_rows`` adds one more column.
        columns = source.shape[1] + 1
        missing = -columns % VECTOR
        source = functional.pad(source, (0, missing), value=PADDING)
        with self.autocast:
            encoded = self.network.encode(with_longer_rows(source))
            memory, states = self.network.decoder.begin(encoded)
        return RnnState(self, memory, states, sentences, hypotheses)


class RnnState:
    """The state of each layer for every hypothesis, and the source of each sentence.

    There are at least ``FEWEST_ROWS`` rows, so that the results of a sentence do not depend on the
    number of rows. The sentences that fill up these rows come last, and their results are dropped.
    """

    def __init__(
        self,
        inference: InferenceRnn,
        memory: Memory,
        states: Sequence[State],
        sentences: int,
        hypotheses: int,
    ) -> None:
        """Start from the states (1, B', c) of B sentences, followed by ``FEWEST_ROWS`` others."""
        self._decoder = inference.network.decoder
        self._autocast = inference.autocast
        self._memory = memory
        self._hypotheses = hypotheses
        self._states: list[State] = []
        for state in states:
            repeated = (part.repeat_interleave(hypotheses, 1) for part in state)
            self._states.append(tuple(repeated))
        # Drop the others. If there are too few rows then, ``keep`` fills them up.
        self.keep(torch.arange(sentences, device=memory.values.device))

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read the last token of each hypothesis (B, K).

        Return the input of the output layer (B, K, f) and the attention (B, K, m'), where m' is the
        source length after padding.
        """
        sentences = len(previous)
        # B' - B, the number of sentences that fill up the rows.
        others = len(self._memory.values) - sentences
        previous = functional.pad(previous, (0, 0, 0, others), value=END)  # (B', K)
        with self._autocast:
            embedded = self._decoder.embedding(previous.reshape(-1, 1))  # (R, 1, f)
            features, attention, self._states = self._decoder.read(
                embedded, self._states, self._memory
            )
        features = features.view(*previous.shape, -1)
        attention = attention.view(*previous.shape, -1)
        return features[:sentences], attention[:sentences]

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses; see ``IncrementalState.select``."""
        # The rows of the other sentences keep their places.
        others = torch.arange(
            len(rows), self._states[0][0].shape[1], device=rows.device
        )
        self._take(torch.cat([rows, others]))

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but these; ``sentences`` are indices of the B sentences."""
        # Fill up the rows with the first sentence, whose index is 0.
        missing = math.ceil(FEWEST_ROWS / self._hypotheses) - len(sentences)
        sentences = functional.pad(sentences, (0, max(0, missing)))
        rows = torch.arange(self._states[0][0].shape[1], device=sentences.device)
        by_sentence = rows.view(-1, self._hypotheses)  # (B, K)
        self._take(by_sentence[sentences].flatten())
        self._memory = Memory(*(part[sentences] for part in self._memory))

    def _take(self, rows: Tensor) -> None:
        """Keep these rows of the states, in this order."""
        taken: list[State] = []
        for state in self._states:
            taken.append(tuple(part.index_select(1, rows) for part in state))
        self._states = taken
