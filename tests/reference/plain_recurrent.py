"""The recurrent networks in plain torch, one sentence at a time.

They know the names of the weights, which are torch's, and the order of the gates in them: input,
forget, cell, output of an LSTM; reset, update, new of a GRU.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

State = tuple[Tensor, Tensor]
"""A layer's output h and, of an LSTM, its cells c."""

Tokens = Tensor | Sequence[int]


class _Recurrent:
    """Some weights, and how they are read."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = weights
        self.layers = 0
        while f"decoder.layers.{self.layers}.weight_hh_l0" in weights:
            self.layers += 1
        zeros = weights["encoder.layers.0.weight_hh_l0"][0] * 0.0
        self.start = zeros, zeros

    def _advance(self, side: str, x: Tensor, states: list[State]) -> Tensor:
        """Change the states of all layers by x, and return the output of the top one."""
        for number, state in enumerate(states):
            states[number] = self._cell(f"{side}.layers.{number}", x, state)
            x = states[number][0]
        return x

    def _cell(self, layer: str, x: Tensor, state: State, direction: str = "") -> State:
        hidden, cells = state
        sums = []
        for part, vector in (("ih", x), ("hh", hidden)):
            weight = self.weights[f"{layer}.weight_{part}_l0{direction}"]
            bias = self.weights[f"{layer}.bias_{part}_l0{direction}"]
            sums.append(weight @ vector + bias)
        of_input, of_state = sums
        if len(of_input) == 3 * len(hidden):  # a GRU
            reset_input, update_input, new_input = of_input.chunk(3)
            reset_state, update_state, new_state = of_state.chunk(3)
            reset = (reset_input + reset_state).sigmoid()
            update = (update_input + update_state).sigmoid()
            new = (new_input + reset * new_state).tanh()
            return (1 - update) * new + update * hidden, cells
        enter, forget, new, leave = (of_input + of_state).chunk(4)
        cells = forget.sigmoid() * cells + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * cells.tanh(), cells

    def _output(self, features: list[Tensor]) -> Tensor:
        table = self.weights["decoder.output.table"]
        return torch.stack(features) @ table.T + self.weights["decoder.output.bias"]


class PlainLstm(_Recurrent):
    """The LSTM of Sutskever et al. (2014)."""

    def states(self, source: Tokens, reverse_source: bool = True) -> list[State]:
        """Return each layer's state after a source that ends in ``</s>``."""
        *words, end = source
        if reverse_source:
            words.reverse()
        states = [self.start] * self.layers
        for token in (*words, end):
            x = self.weights["encoder.embedding.tokens"][token]
            self._advance("encoder", x, states)
        return states

    def logits(self, states: list[State], previous: Tokens) -> Tensor:
        """Return the logits (n, V) of what follows each token of ``previous``."""
        embedded = self.weights["decoder.embedding.tokens"][previous]
        return self._output([self._advance("decoder", x, states) for x in embedded])


class PlainRnn(_Recurrent):
    """The attention of Bahdanau et al. (2015, appendix A) and Luong et al. (2015, section 3.1)."""

    def run(
        self, source: Tensor, previous: Tensor, attention: str
    ) -> tuple[Tensor, Tensor]:
        """Return the logits (n, V) and the attention (n, m) at each token of ``previous``."""
        annotations, states = self._encode(source)
        keys = self._map("key", annotations)
        features = []
        attended = []
        for x in self.weights["decoder.embedding.tokens"][previous]:
            if attention == "bahdanau":
                query = self._map("query", states[-1][0])
                scores = (query + keys).tanh() @ self.weights["decoder.weight"]
                context = scores.softmax(0) @ annotations
                output = self._advance("decoder", torch.cat([x, context]), states)
                read = [output, context, x]
            else:
                output = self._advance("decoder", x, states)
                scores = keys @ output
                read = [output, scores.softmax(0) @ annotations]
            features.append(self._map("readout", torch.cat(read)).tanh())
            attended.append(scores.softmax(0))
        return self._output(features), torch.stack(attended)

    def _encode(self, source: Tensor) -> tuple[Tensor, list[State]]:
        """Return the annotations (m, 2c) and the first state of the decoder's layers."""
        inputs = self.weights["encoder.embedding.tokens"][source]
        states = []
        for number in range(self.layers):
            forward = self._read(number, "", inputs)
            backward = self._read(number, "_reverse", inputs.flip(0)).flip(0)
            inputs = torch.cat([forward, backward], dim=1)
            hidden = self._map(f"first.{number}", backward[0]).tanh()
            states.append((hidden, hidden * 0.0))
        return inputs, states

    def _read(self, number: int, direction: str, inputs: Tensor) -> Tensor:
        state = self.start
        outputs = []
        for x in inputs:
            state = self._cell(f"encoder.layers.{number}", x, state, direction)
            outputs.append(state[0])
        return torch.stack(outputs)

    def _map(self, name: str, x: Tensor) -> Tensor:
        weight = self.weights[f"decoder.{name}.weight"]
        return x @ weight + self.weights[f"decoder.{name}.bias"]
