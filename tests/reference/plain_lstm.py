"""The LSTM of Sutskever et al. (2014) in numpy, one sentence at a time.

It knows the names of the weights, which are torch's, and the order of the gates in them: input,
forget, cell, output.
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


def gate_sums(
    weights: Weights, layer: str, suffix: str, x: Array, hidden: Array
) -> list[Array]:
    """Return the sums of the inputs and of the state that enter the gates."""
    sums = []
    for part, vector in (("ih", x), ("hh", hidden)):
        weight = weights[f"{layer}.weight_{part}_l0{suffix}"]
        bias = weights[f"{layer}.bias_{part}_l0{suffix}"]
        sums.append(weight @ vector + bias)
    return sums


def lstm_cell(
    weights: Weights, layer: str, suffix: str, x: Array, state: LayerState
) -> LayerState:
    hidden, cells = state
    of_input, of_state = gate_sums(weights, layer, suffix, x, hidden)
    enter, forget, new, leave = np.split(of_input + of_state, 4)
    cells = sigmoid(forget) * cells + sigmoid(enter) * np.tanh(new)
    return sigmoid(leave) * np.tanh(cells), cells


class PlainLstm:
    """Some weights, and how they are read."""

    def __init__(self, weights: Weights, reverse_source: bool) -> None:
        self.weights, self.reverse_source = weights, reverse_source
        self.layers = sum(
            name.startswith("encoder.") and name.endswith("weight_hh_l0")
            for name in weights
        )

    def states(self, source: Sequence[int]) -> list[LayerState]:
        """Return each layer's state after a source that ends in ``</s>``."""
        *words, end = source
        read = [*reversed(words), end] if self.reverse_source else source
        cells = self.weights["encoder.layers.0.weight_hh_l0"].shape[1]
        start = [(np.zeros(cells), np.zeros(cells))] * self.layers
        return self._read("encoder", read, start)[1]

    def logits(self, source: Sequence[int], previous: Sequence[int]) -> Array:
        """Return the logits (n, V) of what follows each token of ``previous``."""
        outputs, _ = self._read("decoder", previous, self.states(source))
        table = self.weights["decoder.output.table"]
        bias = self.weights["decoder.output.bias"]
        return np.stack([table @ output + bias for output in outputs])

    def _read(
        self, side: str, tokens: Sequence[int], states: list[LayerState]
    ) -> tuple[list[Array], list[LayerState]]:
        """Return the top layer's output at each token, and the states after the last."""
        outputs = []
        for token in tokens:
            x = self.weights[f"{side}.embedding.tokens"][token]
            after = []
            for number, state in enumerate(states):
                layer = f"{side}.layers.{number}"
                after.append(lstm_cell(self.weights, layer, "", x, state))
                x = after[-1][0]
            states = after
            outputs.append(x)
        return outputs, states
