"""Recurrent networks in numpy, one sentence at a time.

The LSTM of Sutskever et al. (2014), and networks with attention: Bahdanau et al. (2015, appendix A)
and Luong et al. (2015, section 3.1). They know the names of the weights, which are torch's, and the
order of the gates in them: input, forget, cell, output; and reset, update, new.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Weights = Mapping[str, Array]
LayerState = tuple[Array, Array]
"""A layer's output h and its cells c."""


def sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def lstm_cell(of_input: Array, of_state: Array, state: LayerState) -> LayerState:
    _, cells = state
    enter, forget, new, leave = np.split(of_input + of_state, 4)
    cells = sigmoid(forget) * cells + sigmoid(enter) * np.tanh(new)
    return sigmoid(leave) * np.tanh(cells), cells


def gru_cell(of_input: Array, of_state: Array, state: LayerState) -> LayerState:
    """Return a layer's output; it has no cells to change."""
    hidden, cells = state
    reset_input, update_input, new_input = np.split(of_input, 3)
    reset_state, update_state, new_state = np.split(of_state, 3)
    reset = sigmoid(reset_input + reset_state)
    update = sigmoid(update_input + update_state)
    new = np.tanh(new_input + reset * new_state)
    return (1 - update) * new + update * hidden, cells


class Plain:
    """Some weights, and how they are read."""

    def __init__(self, weights: Weights, cell: str) -> None:
        self.weights = weights
        self.cell = {"gru": gru_cell, "lstm": lstm_cell}[cell]

    def step(
        self, layer: str, x: Array, state: LayerState, suffix: str = ""
    ) -> LayerState:
        """Let a layer read one more input: the sums of it and of the state enter the gates."""
        sums = []
        for part, vector in (("ih", x), ("hh", state[0])):
            weight = self.weights[f"{layer}.weight_{part}_l0{suffix}"]
            bias = self.weights[f"{layer}.bias_{part}_l0{suffix}"]
            sums.append(weight @ vector + bias)
        of_input, of_state = sums
        return self.cell(of_input, of_state, state)

    def advance(self, side: str, x: Array, states: list[LayerState]) -> Array:
        """Let each layer read one more input, and return the top one's output."""
        for number, state in enumerate(states):
            states[number] = self.step(f"{side}.layers.{number}", x, state)
            x = states[number][0]
        return x

    def output(self, features: Array) -> Array:
        table = self.weights["decoder.output.table"]
        return features @ table.T + self.weights["decoder.output.bias"]


class PlainLstm(Plain):
    def __init__(self, weights: Weights, reverse_source: bool) -> None:
        super().__init__(weights, "lstm")
        self.reverse_source = reverse_source

    def states(self, source: Sequence[int]) -> list[LayerState]:
        """Return each layer's state after a source that ends in ``</s>``."""
        *words, end = source
        read = [*reversed(words), end] if self.reverse_source else source
        cells = self.weights["encoder.layers.0.weight_hh_l0"].shape[1]
        # Two weights and two biases of each.
        layers = sum(name.startswith("encoder.layers.") for name in self.weights) // 4
        states = [(np.zeros(cells), np.zeros(cells))] * layers
        self._read("encoder", read, states)
        return states

    def logits(self, source: Sequence[int], previous: Sequence[int]) -> Array:
        """Return the logits (n, V) of what follows each token of ``previous``."""
        return self.output(self._read("decoder", previous, self.states(source)))

    def _read(
        self, side: str, tokens: Sequence[int], states: list[LayerState]
    ) -> Array:
        """Return the top layer's output at each token; ``states`` are then those after the last."""
        embedded = self.weights[f"{side}.embedding.tokens"][list(tokens)]
        return np.stack([self.advance(side, x, states) for x in embedded])


class PlainRnn(Plain):
    def __init__(self, weights: Weights, cell: str, attention: str) -> None:
        super().__init__(weights, cell)
        self.attention = attention
        self.layers = sum(name.startswith("decoder.first.") for name in weights) // 2

    def run(
        self, source: Sequence[int], previous: Sequence[int]
    ) -> tuple[Array, Array]:
        """Return the logits (n, V) and the attention (n, m) at each token of ``previous``."""
        annotations, states = self._encode(source)
        logits = []
        attention = []
        for token in previous:
            embedded = self.weights["decoder.embedding.tokens"][token]
            if self.attention == "bahdanau":
                weights = self._attend(states[-1][0], annotations)
                context = weights @ annotations
                joined = np.concatenate([embedded, context])
                output = self.advance("decoder", joined, states)
                read = [output, context, embedded]
            else:
                output = self.advance("decoder", embedded, states)
                weights = self._attend(output, annotations)
                read = [output, weights @ annotations]
            features = np.tanh(self._map("readout", np.concatenate(read)))
            logits.append(self.output(features))
            attention.append(weights)
        return np.stack(logits), np.stack(attention)

    def _encode(self, source: Sequence[int]) -> tuple[Array, list[LayerState]]:
        """Return the annotations (m, 2c) and the first state of the decoder's layers."""
        inputs = list(self.weights["encoder.embedding.tokens"][list(source)])
        states = []
        for number in range(self.layers):
            layer = f"encoder.layers.{number}"
            forward = self._read(layer, "", inputs)
            backward = self._read(layer, "_reverse", inputs[::-1])[::-1]
            inputs = [
                np.concatenate(pair) for pair in zip(forward, backward, strict=True)
            ]
            hidden = np.tanh(self._map(f"first.{number}", backward[0]))
            states.append((hidden, np.zeros_like(hidden)))
        return np.stack(inputs), states

    def _read(self, layer: str, suffix: str, inputs: Sequence[Array]) -> list[Array]:
        cells = self.weights[f"{layer}.weight_hh_l0{suffix}"].shape[1]
        state = (np.zeros(cells), np.zeros(cells))
        outputs = []
        for x in inputs:
            state = self.step(layer, x, state, suffix)
            outputs.append(state[0])
        return outputs

    def _attend(self, query: Array, annotations: Array) -> Array:
        keys = self._map("key", annotations)
        if self.attention == "bahdanau":
            mapped = self._map("query", query)
            scores = np.tanh(mapped + keys) @ self.weights["decoder.weight"]
        else:
            scores = keys @ query
        exponentials = np.exp(scores - scores.max())
        return np.asarray(exponentials / exponentials.sum())

    def _map(self, name: str, x: Array) -> Array:
        weight = self.weights[f"decoder.{name}.weight"]
        return np.asarray(x @ weight + self.weights[f"decoder.{name}.bias"])
