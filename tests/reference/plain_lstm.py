"""The LSTM of Sutskever et al. (2014) in numpy, one sentence at a time.

It knows the names of the weights, which are torch's, and the order of the gates in them: input,
forget, cell, output.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
LayerState = tuple[Array, Array]
"""A layer's output h and its cells c."""


class PlainLstm:
    """Some weights, and how they are read."""

    def __init__(self, weights: Mapping[str, Array], reverse_source: bool) -> None:
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
                after.append(self._cell(f"{side}.layers.{number}", x, state))
                x = after[-1][0]
            states = after
            outputs.append(x)
        return outputs, states

    def _cell(self, layer: str, x: Array, state: LayerState) -> LayerState:
        hidden, cells = state
        parts = {part: self.weights[f"{layer}.{part}_l0"] for part in _PARTS}
        sums = parts["weight_ih"] @ x + parts["bias_ih"]
        sums = sums + parts["weight_hh"] @ hidden + parts["bias_hh"]
        enter, forget, new, leave = np.split(sums, 4)
        cells = _sigmoid(forget) * cells + _sigmoid(enter) * np.tanh(new)
        return _sigmoid(leave) * np.tanh(cells), cells


_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))
