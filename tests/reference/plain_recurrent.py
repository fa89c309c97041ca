"""The recurrent networks in numpy, one sentence at a time.

They know the names of the weights, which are torch's, and the order of the gates in them: input,
forget, cell, output of an LSTM; reset, update, new of a GRU.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
State = tuple[Array, Array]
"""A layer's output h and, of an LSTM, its cells c."""


class _Recurrent:
    """Some weights, and how they are read."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.weights = weights
        self.layers = 0
        while f"decoder.layers.{self.layers}.weight_hh_l0" in weights:
            self.layers += 1
        zeros = np.zeros(weights["encoder.layers.0.weight_hh_l0"].shape[1])
        self.start = zeros, zeros

    def _embed(self, side: str, token: int) -> Array:
        return self.weights[f"{side}.embedding.tokens"][token]

    def _advance(self, side: str, x: Array, states: list[State]) -> Array:
        """Change the states of all layers by x, and return the output of the top one."""
        for number, state in enumerate(states):
            states[number] = self._cell(f"{side}.layers.{number}", x, state)
            x = states[number][0]
        return x

    def _cell(self, layer: str, x: Array, state: State, direction: str = "") -> State:
        hidden, cells = state
        sums = []
        for part, vector in (("ih", x), ("hh", hidden)):
            weight = self.weights[f"{layer}.weight_{part}_l0{direction}"]
            bias = self.weights[f"{layer}.bias_{part}_l0{direction}"]
            sums.append(weight @ vector + bias)
        of_input, of_state = sums
        if len(of_input) == 3 * len(hidden):  # a GRU
            reset_input, update_input, new_input = np.split(of_input, 3)
            reset_state, update_state, new_state = np.split(of_state, 3)
            reset = _sigmoid(reset_input + reset_state)
            update = _sigmoid(update_input + update_state)
            new = np.tanh(new_input + reset * new_state)
            return (1 - update) * new + update * hidden, cells
        enter, forget, new, leave = np.split(of_input + of_state, 4)
        cells = _sigmoid(forget) * cells + _sigmoid(enter) * np.tanh(new)
        return _sigmoid(leave) * np.tanh(cells), cells

    def _output(self, features: Array) -> Array:
        table = self.weights["decoder.output.table"]
        return table @ features + self.weights["decoder.output.bias"]


class PlainLstm(_Recurrent):
    """The LSTM of Sutskever et al. (2014)."""

    def __init__(self, weights: Mapping[str, Array], reverse_source: bool) -> None:
        super().__init__(weights)
        self.reverse_source = reverse_source

    def states(self, source: Sequence[int]) -> list[State]:
        """Return each layer's state after a source that ends in ``</s>``."""
        *words, end = source
        if self.reverse_source:
            words.reverse()
        states = [self.start] * self.layers
        for token in (*words, end):
            self._advance("encoder", self._embed("encoder", token), states)
        return states

    def logits(self, source: Sequence[int], previous: Sequence[int]) -> Array:
        """Return the logits (n, V) of what follows each token of ``previous``."""
        states = self.states(source)
        logits = []
        for token in previous:
            output = self._advance("decoder", self._embed("decoder", token), states)
            logits.append(self._output(output))
        return np.stack(logits)


class PlainRnn(_Recurrent):
    """The attention of Bahdanau et al. (2015, appendix A) and Luong et al. (2015, section 3.1)."""

    def __init__(self, weights: Mapping[str, Array], attention: str) -> None:
        super().__init__(weights)
        self.attention = attention

    def run(
        self, source: Sequence[int], previous: Sequence[int]
    ) -> tuple[Array, Array]:
        """Return the logits (n, V) and the attention (n, m) at each token of ``previous``."""
        annotations, states = self._encode(source)
        logits = []
        attention = []
        for token in previous:
            x = self._embed("decoder", token)
            if self.attention == "bahdanau":
                weights = self._attend(states[-1][0], annotations)
                context = weights @ annotations
                output = self._advance("decoder", np.concatenate([x, context]), states)
                read = [output, context, x]
            else:
                output = self._advance("decoder", x, states)
                weights = self._attend(output, annotations)
                read = [output, weights @ annotations]
            features = np.tanh(self._map("readout", np.concatenate(read)))
            logits.append(self._output(features))
            attention.append(weights)
        return np.stack(logits), np.stack(attention)

    def _encode(self, source: Sequence[int]) -> tuple[Array, list[State]]:
        """Return the annotations (m, 2c) and the first state of the decoder's layers."""
        inputs = [self._embed("encoder", token) for token in source]
        states = []
        for number in range(self.layers):
            forward = self._read(number, "", inputs)
            backward = self._read(number, "_reverse", inputs[::-1])[::-1]
            inputs = list(np.concatenate([forward, backward], axis=1))
            hidden = np.tanh(self._map(f"first.{number}", backward[0]))
            states.append((hidden, np.zeros_like(hidden)))
        return np.stack(inputs), states

    def _read(
        self, number: int, direction: str, inputs: Sequence[Array]
    ) -> list[Array]:
        state = self.start
        outputs = []
        for x in inputs:
            state = self._cell(f"encoder.layers.{number}", x, state, direction)
            outputs.append(state[0])
        return outputs

    def _attend(self, query: Array, annotations: Array) -> Array:
        keys = self._map("key", annotations)
        if self.attention == "bahdanau":
            mapped = self._map("query", query)
            scores = np.tanh(mapped + keys) @ self.weights["decoder.weight"]
        else:
            scores = keys @ query
        exponentials = np.exp(scores)
        return np.asarray(exponentials / exponentials.sum())

    def _map(self, name: str, x: Array) -> Array:
        weight = self.weights[f"decoder.{name}.weight"]
        return np.asarray(x @ weight + self.weights[f"decoder.{name}.bias"])


def _sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))
