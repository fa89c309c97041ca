"""Find the fixed scales with which int8 rounds the inputs of a ConvS2S network's linear maps.

A scale is the value of one unit of a byte. A fixed scale is the same for all rows. With fixed
scales, scaling and bias are part of the matrix product, a block's input is rounded once for all
maps that read it, and windows and states are bytes. With a scale for each row, scaling and bias are
operations in fp32, each map rounds its own input, and windows and states are in fp32.

No text is needed to find the scales. The network in fp32 reads sources and targets of random
tokens, the same ones each time. The largest magnitude that appears at a place becomes 127 units. In
text, the magnitudes at some places are larger (golden network of Multi30k: up to 1.6 times as
large), and are cut off. Larger scales, which cut off nothing, did not improve translations.

Shapes: B sentences, n tokens of each on both sides, S target types.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from convs2s.config.architecture import NetworkSettings
from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, UNKNOWN
from convs2s.models.onnx_builder import LARGEST, AnyArray, Graph
from convs2s.models.onnx_graphs import Weights, decoder, encoder
from convs2s.models.onnx_search import predict
from convs2s.models.steps import Numbers

LENGTHS = (4, 8, 16, 32)
"""Lengths of the random sentences, in tokens."""

SENTENCES = 64
"""Number of random sentences of each length."""

BOUND = 0.05
"""Maximum mean difference between int8 and fp32 in the log-probability of fp32's first choice.

With a larger difference, a model keeps a scale for each row. With fixed scales, the difference is
0.02 for the golden network of Multi30k, whose BLEU of 1,000 lines changes by 0.07. It is 0.07 for
fairseq's network of the demo's text, whose BLEU of 200 lines changes by 0.80.

The bound detects scales that are too coarse. It does not detect that text has much larger
magnitudes than random tokens.
"""


def calibrate(
    arrays: Mapping[str, AnyArray],
    architecture: NetworkSettings,
    types: tuple[int, int],
) -> dict[str, float]:
    """Return the fixed scale of each place at which linear maps read, for ``Weights``.

    ``arrays`` are the weights by name, ``types`` the sizes of the source and target vocabulary. The
    result is empty if fixed scales change the predictions by more than ``BOUND``. It depends only
    on the weights, not on the number of threads.
    """
    sentences = list(_random_sentences(types))
    exact = _Reader(Weights(arrays, architecture, types), "fp32")
    predictions = [exact.read(source, target) for source, target in sentences]
    scales = {place: value / LARGEST for place, value in exact.largest.items()}
    if min(scales.values()) == 0.0:
        return {}  # Some linear map reads nothing but zeros, for which there is no scale.
    rounding = _Reader(Weights(arrays, architecture, types, scales), "int8")
    differences = []
    for (source, target), (choices, expected) in zip(
        sentences, predictions, strict=True
    ):
        _, found = rounding.read(source, target, choices)
        differences.append(np.abs(found - expected).ravel())
    difference = np.concatenate(differences).mean()
    return scales if difference <= BOUND else {}


def _random_sentences(types: tuple[int, int]) -> Iterator[tuple[Indices, Indices]]:
    """Yield source and target (B, n) of each length. The target begins with ``</s>``."""
    source_types, target_types = types
    generator = np.random.default_rng(0)
    for length in LENGTHS:
        shape = (SENTENCES, length)
        source = generator.integers(UNKNOWN, source_types, shape)
        source[:, -1] = END
        target = generator.integers(UNKNOWN, target_types, shape)
        target[:, 0] = END
        yield source, target


class _Reader:
    """A network that reads given sources and targets.

    ``largest`` maps each place to the largest magnitude that linear maps have read there so far.
    """

    def __init__(self, network: Weights, precision: str) -> None:
        encoding, parts = encoder([network], precision)
        step, self._states = decoder([network], precision, parts)
        output = Graph(precision)
        output.output("logs", predict(output, [network.output()], "probabilities"))
        places = {"encoder": _observe(encoding), "decoder": _observe(step)}
        self._outputs = {
            "encoder": ["words", *parts, *places["encoder"]],
            "decoder": ["0.features", "0.state.next", *places["decoder"]],
            "output": ["logs"],
        }
        self._sessions = {
            "encoder": encoding.session(),
            "decoder": step.session(),
            "output": output.session(),
        }
        self.largest = dict.fromkeys([*places["encoder"], *places["decoder"]], 0.0)

    def read(
        self,
        source: Indices,
        target: Indices,
        choices: Indices | None = None,
    ) -> tuple[Indices, Numbers]:
        """Predict the next token after each target token (B, n).

        Return ``choices`` (B, n), or the most probable tokens if it is None, and the
        log-probabilities (B, n) of these tokens.
        """
        batch, length = target.shape
        rows = np.arange(batch)
        given = self._run("encoder", {"source": source})
        given["0.state"] = np.tile(self._states["0.state"], (batch, 1))
        # There is one hypothesis of each sentence, and it continues its own row.
        given["rows"] = rows
        chosen = np.zeros_like(target) if choices is None else choices
        found = np.zeros(target.shape, np.float32)
        for position in range(length):
            given["previous"] = target[:, position : position + 1]
            given["position"] = np.array(position)
            step = self._run("decoder", given)
            given["0.state"] = step["0.state.next"]
            # (B, S)
            logs = self._run("output", {"0.features": step["0.features"]})["logs"]
            if choices is None:
                chosen[:, position] = logs.argmax(1)
            found[:, position] = logs[rows, chosen[:, position]]
        return chosen, found

    def _run(self, name: str, given: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """Run a graph; return its outputs by name, except magnitudes, which update ``largest``."""
        outputs = self._outputs[name]
        arrays = self._sessions[name].run(outputs, given)
        results = dict(zip(outputs, arrays, strict=True))
        for place in self.largest.keys() & results.keys():
            magnitude = float(results.pop(place))
            self.largest[place] = max(self.largest[place], magnitude)
        return results


def _observe(graph: Graph) -> list[str]:
    """Make the largest magnitude at each place an output of the graph; return the places."""
    for place, x in graph.quantized.items():
        magnitudes = graph.op("Abs", x)
        graph.output(place, graph.op("ReduceMax", magnitudes, keepdims=0))
    return list(graph.quantized)
