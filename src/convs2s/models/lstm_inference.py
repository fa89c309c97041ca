"""The LSTM as decoding runs it, step by step.

Shapes: B sentences, K hypotheses of each, m source length, c cells of a layer.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.data.vocabulary import END
from convs2s.models.kernels.quantized_linear import FEWEST_ROWS, Precision, linear_map
from convs2s.models.lstm import Lstm, LstmDecoder, State


class InferenceLstm:
    """The network as it is; in bf16, torch rounds the layers' weights at each step."""

    def __init__(self, network: Lstm, precision: Precision) -> None:
        """Take a network for decoding in fp32 or bf16; there is no int8 for its layers."""
        if precision == "int8":
            raise NotImplementedError("an LSTM in int8")
        self._network, self._padding_index = network, network.padding_index
        weight, bias = network.output.weight().detach(), network.output.bias.detach()
        self.output = linear_map(weight, bias, precision)
        self._rounds = torch.autocast(weight.device.type, torch.bfloat16, precision == "bf16")

    def start(self, source: Tensor, hypotheses: int) -> "LstmIncrementalState":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        with self._rounds:
            encoded = self._network.encode(_with_longer_rows(source, self._padding_index))
        encoded = [(h[:, : len(source)], c[:, : len(source)]) for h, c in encoded]
        return LstmIncrementalState(self._network.decoder, encoded, hypotheses, self._rounds)


def _with_longer_rows(source: Tensor, padding_index: int) -> Tensor:
    """Add rows to (B, m) that are one token longer than all others.

    For rows of one length alone torch takes another kernel, and where fewer are left than a product
    needs (`FEWEST_ROWS`) it adds up in another order: with these neither is ever so, and a
    sentence's states do not depend on the others of its batch.
    """
    padded = functional.pad(source, (0, 1), value=padding_index)
    return torch.cat([padded, padded.new_full((FEWEST_ROWS, padded.shape[1]), END)])


class LstmIncrementalState:
    """The states of every hypothesis, (B, K, c) of each layer."""

    def __init__(
        self, decoder: LstmDecoder, encoded: list[State], hypotheses: int, rounds: torch.autocast
    ) -> None:
        """Start every hypothesis of a sentence from its final state (1, B, c).

        ``rounds`` is the precision that the decoder runs in.
        """
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
