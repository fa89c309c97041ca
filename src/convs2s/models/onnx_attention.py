"""Compute a ConvS2S network's attention for a sentence and its translation, with ONNX Runtime.

Shapes: n target length, m source length.
"""

from collections.abc import Sequence

import numpy as np

from convs2s.data.vocabulary import END
from convs2s.models.onnx_graphs import Weights, decoder, encoder
from convs2s.models.steps import Numbers


class AttentionReader:
    """A network in fp32 that reads a given target, one token at a time."""

    def __init__(self, network: Weights) -> None:
        """Build the graphs of the network. This takes the weights out of ``network``.

        Raises:
            ValueError: the weights are not those of the architecture.
        """
        encoding, self._parts = encoder([network], "fp32")
        step, self._states = decoder([network], "fp32", self._parts)
        self._layers = []
        for number, attention in enumerate(step.attentions):
            self._layers.append(f"attention{number}")
            step.output(f"attention{number}", attention)
        self._encoder = encoding.session()
        self._decoder = step.session()

    def read(self, source: Sequence[int], target: Sequence[int]) -> Numbers:
        """Return the attention (layers, n, m) of the layers that attend.

        ``source`` and ``target`` are m and n indices, the last of which is ``</s>``.
        """
        names = ["words", *self._parts]
        encoded = self._encoder.run(names, {"source": np.array([source])})
        given = dict(zip(names, encoded, strict=True))
        given["rows"] = np.zeros(1, np.int64)
        given["0.state"] = self._states["0.state"][None]
        outputs = ["0.state.next", *self._layers]
        steps = []
        previous = [END, *target[:-1]]  # what the decoder reads
        for position, token in enumerate(previous):
            given["previous"] = np.array([[token]])
            given["position"] = np.array(position)
            results = self._decoder.run(outputs, given)
            given["0.state"] = results[0]
            layers = np.concatenate(results[1:])  # (layers, 1, m)
            steps.append(layers)
        return np.concatenate(steps, axis=1)
