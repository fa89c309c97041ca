"""ConvS2S as graphs of ONNX: one encodes the source, one makes a step of the decoder.

They are made of the weights as arrays, without torch, and hold what ``convs2s_inference`` says of
maps that are folded into the source; several networks are one graph, which averages them. A factor
of a sum is multiplied into the map before it, where there is one.

No row of a result depends on the others: a product adds up in one order whatever its rows, as its
weights are packed once. In int8 each row has a scale of its own. Scores are computed transposed,
(B, m, K), as a product with m columns would add up in another order where m is large.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, f embedding width, d
block width, S target types.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from convs2s.config.architecture import ConvS2SArchitecture, Layer
from convs2s.data.vocabulary import END
from convs2s.errors import UserError

Array = NDArray[Any]

SQRT_HALF = float(np.sqrt(0.5))
LARGEST = 127  # Magnitude of an 8-bit value: -128 is left out, so that signs are symmetric
GROUP = 32
"""Types of which the most probable stands for all in the first pass over log-probabilities."""
OPSET, IR_VERSION = 21, 10


class Weights:
    """A model's weights by their names, each checked as it is taken."""

    def __init__(self, arrays: Mapping[str, Array], path: str) -> None:
        """Take the arrays of a file."""
        self._arrays, self._path = dict(arrays), path

    def take(self, name: str, *shape: int) -> Array:
        """Return a weight of a shape.

        Raises:
            UserError: it is missing, of another shape or type, or not finite.
        """
        if name not in self._arrays:
            raise UserError(f"{self._path}: not the network that it describes: it lacks {name!r}")
        array = self._arrays.pop(name)
        if array.shape != shape or array.dtype.kind != "f":
            raise UserError(
                f"{self._path}: not the network that it describes: {name!r} is {array.dtype} "
                f"{list(array.shape)}, float32 {list(shape)} was expected"
            )
        if not np.isfinite(array).all():
            raise UserError(
                f"{self._path}: {name!r} holds what is not a finite number: train it again"
            )
        return array.astype(np.float32, copy=False)

    def linear(self, name: str, outputs: int, *inputs: int) -> tuple[Array, Array]:
        """Return a normalized weight (outputs, inputs) and its bias (outputs,)."""
        v = self.take(f"{name}.weight_v", outputs, *inputs).reshape(outputs, -1)
        g = self.take(f"{name}.weight_g", outputs)
        norm = np.sqrt(np.square(v, dtype=np.float64).sum(1))
        return v * (g / norm).astype(np.float32)[:, None], self.take(f"{name}.bias", outputs)

    def check_empty(self) -> None:
        """Raise a UserError if a weight has not been taken."""
        for name in sorted(self._arrays):
            raise UserError(f"{self._path}: not the network that it describes: it has {name!r}")


class Graph(NamedTuple):
    """A model of ONNX; its large constants lie beside it, as the weights of several are shared."""

    model: ModelProto
    constants: Mapping[str, Array]


class _Builder:
    """A graph that grows, node by node."""

    def __init__(self, precision: str, constants: dict[str, Array]) -> None:
        self.precision, self.constants = precision, constants
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list where it has several."""
        names = [f"{kind}.{len(self.nodes)}.{number}" for number in range(outputs)]
        domain = "com.microsoft" if kind in ("FusedMatMul", "MatMulIntegerToFloat") else ""
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name: str, kind: int, *shape: int | str) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def floats(self, name: str, *shape: int | str) -> str:
        return self.input(name, TensorProto.FLOAT, *shape)

    def indices(self, name: str, *shape: int | str) -> str:
        return self.input(name, TensorProto.INT64, *shape)

    def output(self, name: str, value: str, kind: int = TensorProto.FLOAT) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def copy(self) -> "_Builder":
        other = copy(self)
        other.nodes, other.inputs = self.nodes[:], self.inputs[:]
        other.outputs = self.outputs[:]
        return other

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        name = f"constant.{len(self.constants)}"
        self.constants[name] = np.array(value, dtype, order="C")
        return name

    def linear(self, x: str, weight: Array, bias: Array | None) -> str:
        """Map (rows, inputs) by a weight (outputs, inputs) and a bias (outputs,)."""
        if self.precision != "int8":
            added = [] if bias is None else [self.constant(bias)]
            return self.op("Gemm", x, self.constant(weight.T), *added)
        scale = np.maximum(np.abs(weight).max(1) / LARGEST, np.finfo(np.float32).tiny)
        integers = self.constant(np.rint(weight / scale[:, None]).T, np.int8)
        largest = self.op("ReduceMax", self.op("Abs", x), self.constant([1], np.int64))  # (rows, 1)
        largest = self.op("Clip", largest, self.constant(1e-30))
        # Unsigned bytes around 128 by signed ones: the kernels' fast case.
        step, middle = self.constant(1 / LARGEST), self.constant(128, np.uint8)
        rounded = self.op("QuantizeLinear", self.op("Div", x, largest), step, middle)
        scales = step, self.constant(scale)
        y = self.op("MatMulIntegerToFloat", rounded, integers, *scales, middle)
        y = self.op("Mul", y, largest)
        return y if bias is None else self.op("Add", y, self.constant(bias))

    def gated(self, x: str, weight: Array, bias: Array, factor: float) -> str:
        """Map windows (rows, kernel * inputs) by a convolution and a GLU, times a factor."""
        factors = np.repeat(np.float32([factor, 1.0]), len(weight) // 2)
        both = self.linear(x, weight * factors[:, None], bias * factors)
        value, gate = self.op("Split", both, outputs=2, axis=1, num_outputs=2)
        return self.op("Mul", value, self.op("Sigmoid", gate))

    def scaled(self, x: str, factor: float) -> str:
        return self.op("Mul", x, self.constant(factor))

    def mean(self, several: Sequence[str]) -> str:
        return several[0] if len(several) == 1 else self.op("Mean", *several)

    def finished(self, name: str) -> Graph:
        used = {one for node in self.nodes for one in node.input} & self.constants.keys()
        constants = {one: self.constants[one] for one in sorted(used)}
        small = [one for one, array in constants.items() if array.ndim < 2]
        initializers = [numpy_helper.from_array(constants.pop(one), one) for one in small]
        initializers += [_external(one, array) for one, array in constants.items()]
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, initializers)
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return Graph(
            helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION), constants
        )


def _external(name: str, array: Array) -> TensorProto:
    """Return a constant whose numbers lie elsewhere."""
    tensor = TensorProto(name=name, dims=array.shape, data_location=TensorProto.EXTERNAL)
    tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    for key, value in {"location": name, "offset": "0", "length": str(array.nbytes)}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


class NetworkWeights(NamedTuple):
    """A network's description, its weights, and the sizes of both vocabularies."""

    architecture: ConvS2SArchitecture
    weights: Weights
    types: tuple[int, int]


class Graphs(NamedTuple):
    """The graphs of networks over the same vocabularies.

    Attributes:
        encoder: maps ``source`` (B, m), ``positions`` (m,), ``present`` (B, m, 1): 1, or 0 where it
            is padding, ``bias`` (B, m, 1): 0 or -inf, and ``scale`` (B, 1, 1): m * sqrt(1/m) *
            sqrt(0.5), to the sources, each (B, m, _).
        decoder: maps ``previous`` (R,), ``position`` (), ``grouped``: [B, K, -1], ``groups`` (1,) that
            are looked into, ``count`` (1,), ``words`` (B, 1, m): 0, or -inf where there is no word, the states, ``rows`` (R,) of
            them that go on, and the sources to the ``count`` largest log-probabilities of each row
            and their tokens (R, count), that of ``</s>`` (R,), the place with the most attention
            (B, K), and the next states.
        shortlisted: the same, with each network's output layer and a mask (B, 1, S), 0 or -inf, as
            inputs beside these.
        sources: names of the encoder's outputs.
        states: name -> width of a row.
        outputs: the weight (S, f_out) and bias (S,) of each network's output layer.
    """

    encoder: Graph
    decoder: Graph
    shortlisted: Graph
    sources: list[str]
    states: dict[str, int]
    outputs: list[tuple[Array, Array]]


def graphs_of(networks: Sequence[NetworkWeights], precision: str, average: str) -> Graphs:
    """Return the graphs of networks in fp32 or int8, and what of them is averaged.

    Raises:
        UserError: a weight is missing or left over, of another shape or type, or not finite.
    """
    constants: dict[str, Array] = {}
    encoder, decoder = _Builder(precision, constants), _Builder(precision, constants)
    _declare(encoder, decoder)
    parts = [
        _Network(*network, encoder, decoder, f"network{number}.")
        for number, network in enumerate(networks)
    ]
    for part in parts:
        part.encode()
        part.step()
        part.weights.check_empty()
    places = decoder.op("Add", decoder.mean([part.attention for part in parts]), "words")
    places = decoder.op("ArgMax", places, axis=2, keepdims=0)
    decoder.output("places", places, TensorProto.INT64)
    shortlisted = decoder.copy()
    logits = [decoder.linear(part.features, *part.output) for part in parts]
    _predict(decoder, logits, average)
    shortlisted.floats("mask", "B", 1, "S")
    logits = [part.shortlisted(shortlisted) for part in parts]
    _predict(shortlisted, logits, average)
    return Graphs(
        encoder.finished("encoder"),
        decoder.finished("decoder"),
        shortlisted.finished("shortlisted"),
        [name for part in parts for name in part.sources],
        {part.state: part.state_width for part in parts},
        [part.output for part in parts],
    )


def _declare(encoder: _Builder, decoder: _Builder) -> None:
    """Add the inputs that all networks have in common."""
    encoder.indices("source", "B", "m")
    encoder.indices("positions", "m")
    encoder.floats("present", "B", "m", 1)
    encoder.floats("bias", "B", "m", 1)
    encoder.floats("scale", "B", 1, 1)
    decoder.indices("previous", "R")
    decoder.indices("position")
    decoder.indices("grouped", 3)
    decoder.indices("groups", 1)
    decoder.indices("count", 1)
    decoder.indices("rows", "R")
    decoder.floats("words", "B", 1, "m")


def _predict(decoder: _Builder, logits: Sequence[str], average: str) -> None:
    """Add what turns each network's logits (R, S) into the best tokens of their average."""
    logs = [decoder.op("LogSoftmax", one, axis=-1) for one in logits]
    if len(logs) == 1 or average == "log_probabilities":
        mean = decoder.mean(logs)
    else:  # the log of the mean probability
        most = decoder.op("Max", *logs)
        shares = [decoder.op("Exp", decoder.op("Sub", one, most)) for one in logs]
        mean = decoder.op("Add", decoder.op("Log", decoder.mean(shares)), most)
    # The largest lie in the groups with the largest maxima: one pass reads everything.
    grouped = decoder.op("Reshape", mean, decoder.constant([0, -1, GROUP], np.int64))
    maxima = decoder.op("ReduceMax", grouped, decoder.constant([2], np.int64), keepdims=0)
    _, groups = decoder.op("TopK", maxima, "groups", outputs=2, sorted=0)  # (R, groups)
    place = decoder.op("Unsqueeze", groups, decoder.constant([2], np.int64))
    flat = decoder.constant([0, -1], np.int64)
    members = decoder.op("Reshape", decoder.op("GatherND", grouped, place, batch_dims=1), flat)
    values, chosen = decoder.op("TopK", members, "count", outputs=2)
    within = decoder.constant(np.arange(GROUP), np.int64)
    tokens = decoder.op("Add", decoder.op("Mul", place, decoder.constant(GROUP, np.int64)), within)
    tokens = decoder.op("GatherElements", decoder.op("Reshape", tokens, flat), chosen, axis=1)
    decoder.output("values", values)
    decoder.output("tokens", tokens, TensorProto.INT64)
    decoder.output("end", decoder.op("Gather", mean, decoder.constant(END, np.int64), axis=1))


def padded_output(weight: Array, bias: Array) -> tuple[Array, Array]:
    """Add types (S, f_out), (S,) of no probability, so that they are whole groups."""
    missing = -len(bias) % GROUP
    padded = np.pad(bias, (0, missing), constant_values=-np.inf)
    return np.pad(weight, ((0, missing), (0, 0))), padded


class _Network:
    """One network's part of both graphs; ``prefix`` begins the names that are its own."""

    def __init__(
        self,
        architecture: ConvS2SArchitecture,
        weights: Weights,
        types: tuple[int, int],
        encoder: _Builder,
        decoder: _Builder,
        prefix: str,
    ) -> None:
        self.architecture, self.weights, self.types = architecture, weights, types
        self.encoder, self.decoder, self.prefix = encoder, decoder, prefix
        self.sources: list[str] = []
        self.state = f"{prefix}state"
        inputs = [architecture.decoder_layers[0].width]
        inputs += [layer.width for layer in architecture.decoder_layers[:-1]]
        self._slots = [  # widths of the inputs that a step keeps, block by block
            [width] * (layer.kernel - 1)
            for width, layer in zip(inputs, architecture.decoder_layers, strict=True)
        ]
        self.state_width = sum(map(sum, self._slots))

    def _embedded(self, graph: _Builder, side: str, tokens: str, place: str) -> str:
        """Embed tokens (..., n) at places (n,), or all at one."""
        is_source, width = side == "encoder", self.architecture.embedding
        table = self.weights.take(f"{side}.embedding.tokens", self.types[not is_source], width)
        embedded = graph.op("Gather", graph.constant(table), tokens)
        sides = self.architecture.source_positions, self.architecture.target_positions
        if (positions := sides[not is_source]) is None:
            return str(embedded)
        table = self.weights.take(f"{side}.embedding.positions", positions, width)
        last = graph.op("Min", place, graph.constant(positions - 1, np.int64))
        return str(graph.op("Add", embedded, graph.op("Gather", graph.constant(table), last)))

    def _block(
        self, graph: _Builder, name: str, x: str, inputs: int, layer: Layer, windows: str, share: float
    ) -> tuple[str, str]:
        """Return a block's gated convolution times a share, and its residual times sqrt(0.5)."""
        shape = 2 * layer.width, layer.kernel, inputs
        weight, bias = self.weights.linear(f"{name}.convolution", *shape)
        gated = graph.gated(windows, weight, bias, share)
        if inputs == layer.width:
            return gated, graph.op("Mul", x, graph.constant(SQRT_HALF))
        weight, bias = self.weights.linear(f"{name}.residual", layer.width, inputs)
        return gated, graph.linear(x, weight * SQRT_HALF, bias * SQRT_HALF)

    def encode(self) -> None:
        """Add the encoder, and the maps of the decoder's attention that are applied to it."""
        graph, width, layers = self.encoder, self.architecture.embedding, self.architecture.encoder_layers
        embedded = self._embedded(graph, "encoder", "source", "positions")  # (B, m, f)
        grouped = graph.op("Concat", graph.op("Shape", "source"), graph.constant([-1], np.int64), axis=0)

        def rows(x: str, columns: int) -> str:
            return str(graph.op("Reshape", x, graph.constant([-1, columns], np.int64)))

        flat = rows(embedded, width)
        inputs = layers[0].width
        x = graph.linear(flat, *self.weights.linear("encoder.in_projection", inputs, width))
        for number, layer in enumerate(layers):
            present = graph.op("Mul", graph.op("Reshape", x, grouped), "present")
            x, windows = rows(present, inputs), rows(self._windows(present, layer.kernel), layer.kernel * inputs)
            name = f"encoder.blocks.{number}"
            x = graph.op("Add", *self._block(graph, name, x, inputs, layer, windows, SQRT_HALF))
            inputs = layer.width
        keys = graph.linear(x, *self.weights.linear("encoder.out_projection", width, inputs))
        self._keys = graph.op("Reshape", keys, grouped)  # (B, m, f)
        values = graph.op("Mul", graph.op("Add", self._keys, embedded), "scale")
        self._flat, self._values, self._grouped = keys, values, grouped
        self._source("keys", self._keys, width)

    def _windows(self, x: str, kernel: int) -> str:
        """Map (B, m, d) to the window (B, m, kernel * d) of each position, zeros past an end."""
        if kernel == 1:
            return x
        graph, left = self.encoder, (kernel - 1) // 2

        def constant(*values: int) -> str:
            return graph.constant(values, np.int64)

        padded = graph.op("Pad", x, constant(0, left, 0, 0, kernel - 1 - left, 0))
        most = np.iinfo(np.int64).max
        places = [
            graph.op("Slice", padded, constant(place), constant(place - kernel + 1 or most), constant(1))
            for place in range(kernel)
        ]
        return str(graph.op("Concat", *places, axis=2))

    def _source(self, name: str, value: str, width: int) -> str:
        """Hand a tensor (B, m, width) from the encoder to the decoder; return its name there."""
        name = self.prefix + name
        self.sources.append(name)
        self.encoder.output(name, value)
        return self.decoder.floats(name, "B", "m", width)

    def step(self) -> None:
        """Add the decoder's step up to what enters the output layer."""
        graph, architecture = self.decoder, self.architecture
        width, layers = architecture.embedding, architecture.decoder_layers
        embedded = self._embedded(graph, "decoder", "previous", "position")  # (R, f)
        inputs = layers[0].width
        x = graph.linear(embedded, *self.weights.linear("decoder.in_projection", inputs, width))
        self._common = graph.op(
            "FusedMatMul", f"{self.prefix}keys", graph.op("Reshape", embedded, "grouped"),
            transB=1, alpha=SQRT_HALF,
        )  # (B, m, K): what the embeddings add to all blocks' scores
        slots, later = self._kept_inputs(), list[str]()
        attentions: list[str] = []
        for number, (layer, attends) in enumerate(zip(layers, architecture.attends, strict=True)):
            window = [*slots[number], x]
            later += window[1:]
            windows = graph.op("Concat", *window, axis=1) if slots[number] else x
            name, share = f"decoder.blocks.{number}", 0.5 if attends else SQRT_HALF
            hidden, kept = self._block(graph, name, x, inputs, layer, windows, share)
            parts = [hidden, kept]
            if attends:
                context, attention = self._attend(number, hidden, layer.width)
                parts.append(context)
                attentions.append(attention)
            x, inputs = graph.op("Sum", *parts), layer.width
        graph.output(f"{self.state}.next", graph.op("Concat", *later, axis=1) if later else self.state)
        self.attention = graph.mean(attentions)
        features = architecture.output_embedding
        self.features = graph.linear(x, *self.weights.linear("decoder.out_projection", features, inputs))
        self.output = padded_output(*self._output(features))

    def _kept_inputs(self) -> list[list[str]]:
        """Return the earlier inputs of each block's convolution, each (R, inputs)."""
        graph = self.decoder
        graph.floats(self.state, "rows of before", self.state_width)
        sizes = [size for block in self._slots for size in block]
        if not sizes:
            return [[] for _ in self._slots]
        rows = graph.op("Gather", self.state, "rows", axis=0)
        split = graph.constant(sizes, np.int64)
        parts = graph.op("Split", rows, split, outputs=len(sizes), axis=1) if len(sizes) > 1 else [rows]
        ends = [0, *accumulate(map(len, self._slots))]
        return [parts[start:end] for start, end in zip(ends, ends[1:], strict=False)]

    def _attend(self, number: int, hidden: str, d: int) -> tuple[str, str]:
        """Attend from half a GLU's output (R, d); return half the context and the attention."""
        encoder, graph, f = self.encoder, self.decoder, self.architecture.embedding
        owner = number
        if self.architecture.attention_weights == "shared":
            owner = self.architecture.attends.index(True)
        if owner == number:
            name = f"decoder.blocks.{number}.attention."
            weight, bias = self.weights.linear(f"{name}in_projection", f, d)
            self._in = weight * (2 * SQRT_HALF), bias * SQRT_HALF  # of half the hidden values
            weight, bias = self.weights.linear(f"{name}out_projection", d, f)
            self._out = weight * 0.5, bias * 0.5
        keys, values, own = f"{self.prefix}keys", f"{self.prefix}values", list[str]()
        if d <= f:  # the maps are applied to the source
            if owner == number:
                shape = encoder.constant([-1, f], np.int64)
                folded = encoder.linear(self._flat, self._in[0].T, None)
                mapped = encoder.linear(encoder.op("Reshape", self._values, shape), *self._out)
                biased = encoder.op("Mul", self._keys, encoder.constant(self._in[1]))
                axis = encoder.constant([2], np.int64)
                biased = encoder.op("Add", encoder.op("ReduceSum", biased, axis), "bias")
                folded, mapped = (encoder.op("Reshape", one, self._grouped) for one in (folded, mapped))
                self._source(f"keys{number}", folded, d)
                self._source(f"values{number}", mapped, d)
                self._source(f"bias{number}", biased, 1)
            keys, values, bias = (f"{self.prefix}{one}{owner}" for one in ("keys", "values", "bias"))
            query = hidden
        else:
            if values not in self.sources:
                self._source("values", self._values, f)
                self._source("bias", "bias", 1)
            bias = f"{self.prefix}bias"
            query = graph.linear(hidden, *self._in)
        query = graph.op("Reshape", query, "grouped")
        scores = graph.op("FusedMatMul", keys, query, transB=1)  # (B, m, K)
        scores = graph.op("Sum", scores, self._common, bias)
        attention = graph.op("Softmax", graph.op("Transpose", scores, perm=[0, 2, 1]), axis=2)
        context = graph.op("MatMul", attention, values)  # (B, K, d), or (B, K, f)
        columns = d if d <= f else f
        context = graph.op("Reshape", context, graph.constant([-1, columns], np.int64))
        return context if d <= f else graph.linear(context, *self._out), attention

    def _output(self, features: int) -> tuple[Array, Array]:
        if not self.architecture.selects_vocabulary:
            return self.weights.linear("decoder.output", self.types[1], features)
        table = self.weights.take("decoder.output.table", self.types[1], features)
        return table, self.weights.take("decoder.output.bias", self.types[1])

    def shortlisted(self, graph: _Builder) -> str:
        """Return the logits (B, K, S) of types whose rows of the output layer are inputs."""
        weight = graph.floats(f"{self.prefix}output.weight", self.architecture.output_embedding, "S")
        bias = graph.floats(f"{self.prefix}output.bias", "S")
        # A row of zeros: a single one would be added up in another order than several.
        ends = graph.constant([0, 0, 1, 0], np.int64)
        rows = graph.op("MatMul", graph.op("Pad", self.features, ends), weight)
        one = [graph.constant([value], np.int64) for value in (0, -1)]
        logits = graph.op("Add", graph.op("Slice", rows, *one), bias)
        masked = graph.op("Add", graph.op("Reshape", logits, "grouped"), "mask")
        return str(graph.op("Reshape", masked, graph.op("Shape", logits)))
