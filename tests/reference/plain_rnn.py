"""Recurrent networks with attention in numpy, one sentence at a time.

Bahdanau et al. (2015, appendix A) and Luong et al. (2015, section 3.1), with the gates in the order
of torch's weights: reset, update, new; and input, forget, cell, output.
"""

from collections.abc import Sequence

import numpy as np

from tests.reference.plain_lstm import (
    Array,
    LayerState,
    Weights,
    gate_sums,
    lstm_cell,
    sigmoid,
)


def gru_cell(
    weights: Weights, layer: str, suffix: str, x: Array, state: LayerState
) -> LayerState:
    """Return a layer's output; it has no cells to change."""
    hidden, cells = state
    of_input, of_state = gate_sums(weights, layer, suffix, x, hidden)
    reset_input, update_input, new_input = np.split(of_input, 3)
    reset_state, update_state, new_state = np.split(of_state, 3)
    reset = sigmoid(reset_input + reset_state)
    update = sigmoid(update_input + update_state)
    new = np.tanh(new_input + reset * new_state)
    return (1 - update) * new + update * hidden, cells


class PlainRnn:
    """Some weights, and how they are read."""

    def __init__(self, weights: Weights, cell: str, attention: str) -> None:
        self.weights = weights
        self.cell = {"gru": gru_cell, "lstm": lstm_cell}[cell]
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
                output = self._advance(np.concatenate([embedded, context]), states)
                read = [output, context, embedded]
            else:
                output = self._advance(embedded, states)
                weights = self._attend(output, annotations)
                read = [output, weights @ annotations]
            features = np.tanh(self._map("readout", np.concatenate(read)))
            table = self.weights["decoder.output.table"]
            logits.append(table @ features + self.weights["decoder.output.bias"])
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
            state = self.cell(self.weights, layer, suffix, x, state)
            outputs.append(state[0])
        return outputs

    def _advance(self, x: Array, states: list[LayerState]) -> Array:
        for number in range(self.layers):
            layer = f"decoder.layers.{number}"
            states[number] = self.cell(self.weights, layer, "", x, states[number])
            x = states[number][0]
        return x

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
