"""The LSTM as decoding runs it, step by step.

Shapes: B sentences, K hypotheses of each, m source length, c cells of a layer.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.data.vocabulary import END, PADDING
from convs2s.models.kernels.quantized_linear import FEWEST_ROWS, Precision, linear_map
from convs2s.models.lstm import Lstm, LstmDecoder, State


class InferenceLstm:
    """The network itself; in bf16, torch rounds the layers' weights at each step."""

    def __init__(self, network: Lstm, precision: Precision) -> None:
        """Take a network for decoding in fp32 or bf16; there is no int8 for its layers."""
        if precision == "int8":
            raise NotImplementedError("an LSTM in int8")
        self._network = network
        weight, bias = network.output.weight().detach(), network.output.bias.detach()
        self.output = linear_map(weight, bias, precision)
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
        encoded = [(h[:, : len(source)], c[:, : len(source)]) for h, c in encoded]  # (1, B, c)
        return LstmIncrementalState(self._network.decoder, encoded, hypotheses, self._rounds)


class LstmIncrementalState:
    """The states of every hypothesis, (B, K, c) of each layer."""

    def __init__(
        self, decoder: LstmDecoder, encoded: list[State], hypotheses: int, rounds: torch.autocast
    ) -> None:
        """Start every hypothesis from its sentence's final state; ``rounds`` sets the precision."""
        self._decoder, self._rounds = decoder, rounds
        self._states = self._each(encoded, lambda x: x[0].unsqueeze(1).expand(-1, hypotheses, -1))

    def step(self, previous: Tensor) -> tuple[Tensor, None]:
        """Read each hypothesis's last token (B, K): what enters the output layer (B, K, c)."""
        batch, hypotheses = previous.shape
        rows = self._each(self._states, lambda x: x.flatten(0, 1).unsqueeze(0).contiguous())
        with self._rounds:
            x, states = self._decoder(previous.reshape(-1, 1), rows)  # (B * K, 1, c)
        self._states = self._each(states, lambda x: x[0].view(batch, hypotheses, -1))
        return x.view(batch, hypotheses, -1), None

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._states = self._each(self._states, lambda x: x.flatten(0, 1)[rows].view_as(x))

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        self._states = self._each(self._states, lambda x: x[sentences])

    @staticmethod
    def _each(states: list[State], function: Callable[[Tensor], Tensor]) -> list[State]:
        return [(function(hidden), function(cells)) for hidden, cells in states]
