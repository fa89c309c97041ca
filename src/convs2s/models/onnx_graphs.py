"""ConvS2S as graphs of ONNX, made of its weights without torch: encoder, decoder step, output.

Constant factors are multiplied into the weights. A block's query is W h + b + g, of the
convolution's output h and the embedding g of the last target token (section 3.3). Its product with
the encoder's output z is h (W^T z) + b z + g z, and the output projection of a mean of values is
the mean of their projections. So both maps of attention are applied to the source once ("folded"),
in place of to each hypothesis at each step.

Several networks make one graph. No row of a result depends on the others: products add
up in one order however many rows there are, as weights are packed once, and in int8 each row has a
scale of its own. Scores are computed as (B, m, K): a product with m columns would add up in another
order where m is large.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, f embedding width, d
block width, S target types in whole groups of ``GROUP``.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from convs2s.config.architecture import ConvS2SArchitecture, Layer, NetworkSettings
from convs2s.data.vocabulary import END, PADDING

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # or it reports to its maker, from 1.29 on
from onnxruntime import InferenceSession as InferenceSession
from onnxruntime import OrtValue as OrtValue
from onnxruntime import SessionOptions

AnyArray = NDArray[Any]

ROOT_OF_HALF = float(np.sqrt(0.5))
GROUP = 32  # Types of which the most probable stands for all in the first pass over them
LARGEST = 127  # Magnitude of an 8-bit value: -128 is left out, so that signs are symmetric
BARRED = -1e30  # Logit of a type that may not be chosen: infinite ones have no differences
STACKS = {"source": "encoder", "target": "decoder"}
CPU = Path("/proc/cpuinfo")
OPSET, IR_VERSION = 21, 10
FLOATS, INDICES, TRUTHS = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Weights:
    """A network's weights; ``ValueError`` says that they are not those of its architecture."""

    def __init__(
        self, arrays: Mapping[str, AnyArray], architecture: NetworkSettings, types: tuple[int, int]
    ) -> None:
        """Take ConvS2S weights by their names, and the sizes of both vocabularies."""
        self._arrays, self.architecture = dict(arrays), cast(ConvS2SArchitecture, architecture)
        self.types = dict(zip(STACKS, types, strict=True))

    def take(self, name: str, *shape: int) -> AnyArray:
        """Return a weight, which is used once."""
        array = self._arrays.pop(name, np.zeros(0))
        if array.shape != shape or array.dtype.kind not in "fV" or not np.isfinite(array).all():
            raise ValueError(name)
        return array.astype(np.float32, copy=False)

    def linear(self, name: str, outputs: int, *inputs: int) -> tuple[AnyArray, AnyArray]:
        """Return a normalized weight (outputs, inputs) and its bias (outputs,)."""
        v = self.take(f"{name}.weight_v", outputs, *inputs).reshape(outputs, -1)
        norm = np.sqrt(np.square(v, dtype=np.float64).sum(1))
        factor = (self.take(f"{name}.weight_g", outputs) / norm).astype(np.float32)
        return v * factor[:, None], self.take(f"{name}.bias", outputs)

    def output(self) -> tuple[AnyArray, AnyArray]:
        """Return the output layer's weight (types, features) and bias (types,), the last ones."""
        shape = self.types["target"], self.architecture.output_embedding
        if self.architecture.selection:
            table = self.take("decoder.output.table", *shape)
            weight, bias = table, self.take("decoder.output.bias", shape[0])
        else:
            weight, bias = self.linear("decoder.output", *shape)
        if self._arrays:
            raise ValueError(*self._arrays)
        return weight, bias


class Graph:
    """A graph that grows, node by node."""

    def __init__(self, precision: str, name: str = "") -> None:
        """Begin with nothing; maps are computed in fp32 or int8.

        Graphs that are put together have different names.
        """
        self._is_int8, self._name = precision == "int8", name
        self._nodes, self._inputs, self._outputs = list[Any](), list[Any](), list[Any]()
        self._constants: dict[str, AnyArray] = {}

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list where it has several."""
        names = [f"{self._name}{len(self._nodes)}.{number}" for number in range(outputs)]
        domain = "com.microsoft" if kind in ("FusedMatMul", "MatMulIntegerToFloat") else ""
        self._nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name: str, kind: int, *shape: int | str) -> str:
        """Add an input; return its name."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, value: str, kind: int = FLOATS) -> None:
        """Have a value among the results, under a name."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, kind, None))

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        """Add a constant; return its name."""
        name = f"{self._name}constant.{len(self._constants)}"
        self._constants[name] = np.array(value, dtype, order="C")
        return name

    def integers(self, *values: int) -> str:
        """Add a list of integers, such as axes; return its name."""
        return self.constant(values, np.int64)

    def rows(self, x: str, columns: int) -> str:
        """Return (..., columns) as (rows, columns)."""
        return str(self.op("Reshape", x, self.integers(-1, columns)))

    def columns(self, x: str, width: int) -> str:
        """Return (B, K, width) as (B, width, K).

        The second keeps ONNX Runtime from making the first a part of a product, four times slower.
        """
        turned = self.op("Transpose", x, perm=[0, 2, 1])
        return str(self.op("Reshape", turned, self.integers(0, width, -1)))

    def linear(self, x: str, weight: AnyArray, bias: AnyArray) -> Any:
        """Map (rows, inputs) by a weight (outputs, inputs) and a bias (outputs,)."""
        added = self.constant(bias)
        if not self._is_int8:
            return self.op("Gemm", x, self.constant(weight.T), added)
        scale = np.maximum(np.abs(weight).max(1) / LARGEST, np.finfo(np.float32).tiny)
        rounded = self.constant(np.rint(weight / scale[:, None]).T, np.int8)
        largest = self.op("ReduceMax", self.op("Abs", x), self.integers(1))  # (rows, 1)
        # Unsigned bytes around 128 by signed ones: the kernels' fast case. 0 / 0 is some byte.
        step, middle = self.constant(1 / LARGEST), self.constant(128, np.uint8)
        x = self.op("QuantizeLinear", self.op("Div", x, largest), step, middle)
        y = self.op("MatMulIntegerToFloat", x, rounded, step, self.constant(scale), middle)
        return self.op("Add", self.op("Mul", y, largest), added)

    def block(
        self,
        weights: Weights,
        name: str,
        x: str,
        window: str,
        inputs: int,
        layer: Layer,
        share: float,
    ) -> list[str]:
        """Return the share of a block's gated convolution and that of its residual, sqrt(0.5)."""
        d = layer.width
        factor = np.repeat(np.array([share, 1.0], np.float32), d)
        weight, bias = weights.linear(f"{name}.convolution", 2 * d, layer.kernel, inputs)
        both = self.linear(window, weight * factor[:, None], bias * factor)
        value, gate = self.op("Split", both, outputs=2, axis=1, num_outputs=2)
        hidden = self.op("Mul", value, self.op("Sigmoid", gate))
        if inputs == d:
            return [hidden, self.op("Mul", x, self.constant(ROOT_OF_HALF))]
        weight, bias = weights.linear(f"{name}.residual", d, inputs)
        return [hidden, self.linear(x, weight * ROOT_OF_HALF, bias * ROOT_OF_HALF)]

    def embed(self, weights: Weights, side: str, tokens: str, positions: str) -> Any:
        """Embed tokens (..., n) of a side that stand at positions (n,), or all at one."""
        name, a = f"{STACKS[side]}.embedding", weights.architecture
        table = self.constant(weights.take(f"{name}.tokens", weights.types[side], a.embedding))
        embedded = self.op("Gather", table, tokens)
        rows = a.positions.rows(side)
        if rows is None:
            return embedded
        table = self.constant(weights.take(f"{name}.positions", rows, a.embedding))
        last = self.op("Min", positions, self.constant(rows - 1, np.int64))
        return self.op("Add", embedded, self.op("Gather", table, last))

    def join(self, other: "Graph") -> None:
        """Add the nodes and constants of another, which find their inputs here by their names."""
        self._nodes += other._nodes
        self._constants |= other._constants

    def result(self, value: str, kind: int) -> None:
        """Have a value among the results, under its own name."""
        self._outputs.append(helper.make_tensor_value_info(value, kind, None))

    def loop(self, body: "Graph", starts: Sequence[str], results: Mapping[str, int]) -> None:
        """Run a body as long as its first result is true; have ``results`` of all its runs.

        Its inputs are the number of the run, whether it goes on, and what it hands on, which is
        ``starts`` in the first run; its results are these but the number, and then ``results``.
        """
        own = list[TensorProto]()
        for name, array in body._constants.items():
            if array.ndim < 2 or array.dtype == np.int8:  # 1.05 times as fast in the body
                own.append(numpy_helper.from_array(array, name))
            else:
                self._constants[name] = array
        inner = helper.make_graph(body._nodes, "body", body._inputs, body._outputs, own)
        inputs = ["", self.constant(True, np.bool_), *starts]
        lasts = [f"{start}.last" for start in starts]
        self._nodes.append(helper.make_node("Loop", inputs, [*lasts, *results], body=inner))
        for name, kind in results.items():
            self.result(name, kind)

    def mean(self, several: Sequence[str]) -> str:
        """Return the mean of values."""
        return several[0] if len(several) == 1 else self.op("Mean", *several)

    def session(self) -> InferenceSession:
        """Return what runs the graph, with one thread: batches have threads of their own."""
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors alone
        if not (CPU.is_file() and "vnni" in CPU.read_text()):  # sums of signed bytes would overflow
            options.add_session_config_entry("session.x64quantprecision", "1")
        constants = []
        for name, array in self._constants.items():
            if array.ndim < 2:
                constants.append(numpy_helper.from_array(array, name))
                continue
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)  # large ones stay where they are
            tensor = TensorProto(name=name, dims=array.shape, data_type=kind)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=name)
            constants.append(tensor)
            options.add_external_initializers([name], [OrtValue.ortvalue_from_numpy(array)])
        return InferenceSession(self._model(constants), options, ["CPUExecutionProvider"])

    def save(self, path: Path) -> None:
        """Write the graph and all that it holds as a file for ONNX Runtime."""
        arrays = self._constants.items()
        path.write_bytes(self._model([numpy_helper.from_array(one, name) for name, one in arrays]))

    def _model(self, constants: Sequence[TensorProto]) -> bytes:
        graph = helper.make_graph(self._nodes, "graph", self._inputs, self._outputs, constants)
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION)
        return bytes(model.SerializeToString())


def encoder(networks: Sequence[Weights], precision: str) -> tuple[Graph, dict[str, int]]:
    """Return the graph that makes what the decoder reads of a source, and the width of each part.

    It reads ``source`` (B, m). Beside the parts (B, m, width) it makes ``words`` (B, 1, m), -inf
    where the source has no word, else 0.
    """
    graph, parts = Graph(precision), dict[str, int]()
    source = graph.input("source", INDICES, "B", "m")
    zero, low = graph.constant(0), graph.constant(-np.inf)
    padding = graph.op("Equal", source, graph.constant(PADDING, np.int64))
    end = graph.op("Equal", source, graph.constant(END, np.int64))
    words = graph.op("Where", graph.op("Or", padding, end), low, zero)
    graph.output("words", graph.op("Unsqueeze", words, graph.integers(1)))
    column = graph.op("Unsqueeze", padding, graph.integers(2))  # (B, m, 1)
    present = graph.op("Where", column, zero, graph.constant(1))
    scale = graph.op("Sqrt", graph.op("ReduceSum", present, graph.integers(1)))  # m * sqrt(1/m)
    masks = _Masks(
        present,
        graph.op("Where", column, low, zero),
        graph.op("Mul", scale, graph.constant(ROOT_OF_HALF)),
    )
    for number, weights in enumerate(networks):
        for name, (value, width) in _encode(graph, weights, masks).items():
            parts[f"{number}.{name}"] = width
            graph.output(f"{number}.{name}", value)
    return graph, parts


class _Masks(NamedTuple):
    """What an encoder needs of where the source is padding."""

    present: str  # (B, m, 1), 0 there, else 1
    bias: str  # (B, m, 1), -inf there, else 0
    scale: str  # (B, 1, 1), sqrt(m) * sqrt(0.5) of the sentence's own m


def _encode(graph: Graph, weights: Weights, masks: _Masks) -> dict[str, tuple[str, int]]:
    """Add a network's encoder; return what its decoder reads, (B, m, width) each."""
    a = weights.architecture
    f, inputs = a.embedding, a.encoder_layers[0].width
    grouped = graph.op("Concat", graph.op("Shape", "source"), graph.integers(-1), axis=0)
    length = graph.op("Shape", "source", start=1)  # (1,): m
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    positions = graph.op("Range", zero, graph.op("Squeeze", length), one)
    embedded = graph.embed(weights, "source", "source", positions)  # (B, m, f)
    x = graph.linear(graph.rows(embedded, f), *weights.linear("encoder.in_projection", inputs, f))
    for number, layer in enumerate(a.encoder_layers):
        present = graph.op("Mul", graph.op("Reshape", x, grouped), masks.present)
        x = graph.rows(present, inputs)
        left = (layer.kernel - 1) // 2
        places = [
            graph.op("Pad", present, graph.integers(0, -move, 0, 0, move, 0)) if move else present
            for move in range(-left, layer.kernel - left)
        ]  # each moved along the source, with zeros from past its ends
        window = graph.rows(graph.op("Concat", *places, axis=2), layer.kernel * inputs)
        name = f"encoder.blocks.{number}"
        parts = graph.block(weights, name, x, window, inputs, layer, ROOT_OF_HALF)
        x, inputs = graph.op("Add", *parts), layer.width
    keys = graph.linear(x, *weights.linear("encoder.out_projection", f, inputs))
    whole = graph.op("Reshape", keys, grouped)  # (B, m, f)
    values = graph.rows(graph.op("Mul", graph.op("Add", whole, embedded), masks.scale), f)
    sources = {"keys": (graph.op("Mul", whole, graph.constant(ROOT_OF_HALF)), f)}
    for number, layer in enumerate(a.decoder_layers):
        if not a.attends[number] or (a.attention_weights == "shared" and len(sources) > 1):
            continue
        d, name = layer.width, f"decoder.blocks.{number}.attention"
        weight, bias = weights.linear(f"{name}.in_projection", f, d)
        # The decoder asks with half of what a block's query is computed of.
        folded = graph.linear(keys, weight.T * (2 * ROOT_OF_HALF), np.zeros(d))
        own = graph.op("Mul", whole, graph.constant(bias * ROOT_OF_HALF))
        own = graph.op("Add", graph.op("ReduceSum", own, graph.integers(2)), masks.bias)
        weight, bias = weights.linear(f"{name}.out_projection", d, f)
        mapped = graph.linear(values, weight * 0.5, bias * 0.5)
        sources[f"keys{number}"] = graph.op("Reshape", folded, grouped), d
        sources[f"values{number}"] = graph.op("Reshape", mapped, grouped), d
        sources[f"bias{number}"] = own, 1
    return sources


def decoder(
    networks: Sequence[Weights], precision: str, parts: Mapping[str, int]
) -> tuple[Graph, dict[str, int]]:
    """Return the graph of a step up to the output layers, and the width of each network's state.

    It reads ``previous`` (B, K), ``position`` (), ``rows`` (R,) of the states that it goes on from,
    and what the encoder makes. It makes ``places`` (B, K) with the most attention, and of each
    network ``features`` (R, f_out) and the next state.
    """
    graph, states, attentions = Graph(precision, "decoder."), dict[str, int](), list[str]()
    previous = graph.input("previous", INDICES, "B", "K")
    graph.input("position", INDICES)
    graph.input("rows", INDICES, "R")
    graph.input("words", FLOATS, "B", 1, "m")
    for name, width in parts.items():
        graph.input(name, FLOATS, "B", "m", width)
    grouped = graph.op("Concat", graph.op("Shape", previous), graph.integers(-1), axis=0)
    for number, weights in enumerate(networks):
        states[f"{number}.state"], attention = _decode(graph, weights, f"{number}.", grouped)
        attentions.append(attention)
    places = graph.op("Add", graph.mean(attentions), "words")
    graph.output("places", graph.op("ArgMax", places, axis=2, keepdims=0), INDICES)
    return graph, states


def _decode(graph: Graph, weights: Weights, prefix: str, grouped: str) -> tuple[int, str]:
    """Add a network's step; return the width of its state, and its attention (B, K, m).

    ``grouped`` is the shape [B, K, -1].
    """
    a = weights.architecture
    f, inputs = a.embedding, a.decoder_layers[0].width
    widths = [inputs, *(layer.width for layer in a.decoder_layers)]
    kept = [
        width
        for width, layer in zip(widths, a.decoder_layers, strict=False)
        for _ in range(layer.kernel - 1)
    ]  # the inputs that convolutions read again
    state = graph.input(f"{prefix}state", FLOATS, "R'", sum(kept))
    slots, later, attentions = list[str](), list[str](), list[str]()
    if kept:
        split = graph.op("Gather", state, "rows"), graph.integers(*kept)
        found = graph.op("Split", *split, outputs=len(kept), axis=1)
        slots = [found] if len(kept) == 1 else found
    embedded = graph.embed(weights, "target", "previous", "position")  # (B, K, f)
    x = graph.linear(graph.rows(embedded, f), *weights.linear("decoder.in_projection", inputs, f))
    common = graph.op("MatMul", f"{prefix}keys", graph.columns(embedded, f))
    owner = a.attends.index(True)
    for number, (layer, attends) in enumerate(zip(a.decoder_layers, a.attends, strict=True)):
        window, slots = [*slots[: layer.kernel - 1], x], slots[layer.kernel - 1 :]
        later += window[1:]
        share = 0.5 if attends else ROOT_OF_HALF
        window = graph.op("Concat", *window, axis=1) if layer.kernel > 1 else x
        name = f"decoder.blocks.{number}"
        parts = graph.block(weights, name, x, window, inputs, layer, share)
        if attends:
            keys, values, bias = (
                f"{prefix}{one}{owner if a.attention_weights == 'shared' else number}"
                for one in ("keys", "values", "bias")
            )
            query = graph.columns(graph.op("Reshape", parts[0], grouped), layer.width)
            scores = graph.op("Sum", graph.op("MatMul", keys, query), common, bias)  # (B, m, K)
            attentions += [graph.op("Softmax", graph.op("Transpose", scores, perm=[0, 2, 1]))]
            context = graph.op("MatMul", attentions[-1], values)  # (B, K, d)
            parts.append(graph.rows(context, layer.width))
        x, inputs = graph.op("Sum", *parts), layer.width
    graph.output(f"{state}.next", graph.op("Concat", *later, axis=1) if later else state)
    features = weights.linear("decoder.out_projection", a.output_embedding, inputs)
    graph.output(f"{prefix}features", graph.linear(x, *features))
    return sum(kept), graph.mean(attentions)


def output(
    layers: Sequence[tuple[AnyArray, AnyArray]], precision: str, average: str, is_masked: bool
) -> Graph:
    """Return the graph of the output layers: each network's weight (S', f_out) and bias (S',).

    It reads each network's ``features`` (R, f_out), how many ``groups`` (1,) are looked into for
    ``count`` (1,) types, and, if ``is_masked``, ``mask`` (R, S), BARRED where a row may not use a
    type. It makes their ``values`` and ``tokens`` (R, count), the most probable first, and ``end``
    (R,), the log-probability of ``</s>``.
    """
    graph = Graph(precision)
    if is_masked:
        graph.input("mask", FLOATS, "R", "S")
    for name in ("groups", "count"):
        graph.input(name, INDICES, 1)
    for number, (weight, _) in enumerate(layers):
        graph.input(f"{number}.features", FLOATS, "R", weight.shape[1])
    mean = _predict(graph, layers, average, is_masked)
    grouped = graph.op("Reshape", mean, graph.integers(0, -1, GROUP))
    maxima = graph.op("ReduceMax", grouped, graph.integers(2), keepdims=0)
    groups = graph.op("TopK", maxima, "groups", outputs=2, sorted=0)[1]
    groups = graph.op("Unsqueeze", groups, graph.integers(2))  # (R, groups, 1)
    flat = graph.integers(0, -1)
    members = graph.op("Reshape", graph.op("GatherND", grouped, groups, batch_dims=1), flat)
    values, chosen = graph.op("TopK", members, "count", outputs=2)
    tokens = graph.op("Mul", groups, graph.integers(GROUP))
    tokens = graph.op("Reshape", graph.op("Add", tokens, graph.integers(*range(GROUP))), flat)
    graph.output("values", values)
    graph.output("tokens", graph.op("GatherElements", tokens, chosen, axis=1), INDICES)
    graph.output("end", graph.op("Gather", mean, graph.constant(END, np.int64), axis=1))
    return graph


def _predict(
    graph: Graph, layers: Sequence[tuple[AnyArray, AnyArray]], average: str, is_masked: bool
) -> str:
    """Return log-probabilities (R, S) of each network's ``features``."""
    logs = list[str]()
    for number, (weight, bias) in enumerate(layers):
        missing = -len(bias) % GROUP
        weight = np.pad(weight, ((0, missing), (0, 0)))
        bias = np.pad(bias, (0, missing), constant_values=2 * BARRED)
        logits = graph.linear(f"{number}.features", weight, bias)
        if not is_masked:
            logs.append(graph.op("LogSoftmax", logits))
            continue
        logits = graph.op("Add", logits, "mask")
        logits = graph.op("Sub", logits, graph.op("ReduceMax", logits, graph.integers(1)))
        # A sum in fp64 is the same whatever types the batch's other sentences add. LogSoftmax in
        # fp64 is 14 times slower.
        shares = graph.op("Cast", graph.op("Exp", logits), to=TensorProto.DOUBLE)
        total = graph.op("Log", graph.op("ReduceSum", shares, graph.integers(1)))
        logs.append(graph.op("Sub", logits, graph.op("Cast", total, to=FLOATS)))
    if len(logs) == 1 or average == "log_probabilities":
        return graph.mean(logs)
    most = graph.op("Max", *logs)  # the log of the mean probability
    shares = [graph.op("Exp", graph.op("Sub", one, most)) for one in logs]
    return str(graph.op("Add", graph.op("Log", graph.mean(shares)), most))


def search(
    step: Graph,
    layers: Sequence[tuple[AnyArray, AnyArray]],
    precision: str,
    average: str,
    parts: Mapping[str, int],
    states: Mapping[str, int],
) -> Graph:
    """Return the graph of one sentence's whole search, of a decoder's step and output layers.

    Step by step a third of the time is Python and the passing of arrays. The graph reads what the
    encoder makes and

        scores (1, K), finished (1,), previous (1, K), rows (K,) and states: all ``.first``, as
            they are before the first step.
        maximum (): how many tokens there are at most, without ``</s>``.
        minimum (): from how many on ``</s>`` may follow.
        hypotheses (1,), candidates (1,), groups (1,): K, how many continuations are looked at,
            and in how many groups of them.
        penalties (2, S): what types lose of their log-probability, where ``</s>`` may follow and
            where not.

    Of each of T steps it makes ``best``, ``parents`` and ``chosen`` (T, candidates) and ``at``
    (T, 1, K), as in ``Candidates``, and ``ends`` (T, 1, K), the log-likelihoods with ``</s>``:
    nothing else may follow ``maximum`` tokens.
    """
    graph, body, starts = Graph(precision, "search."), Graph(precision, "body."), list[str]()
    body.join(step)
    body.input("position", INDICES)
    body.input("goes_on", TRUTHS)
    logs = _predict(body, layers, average, False)  # (K, S)
    ends = body.op("Gather", logs, body.constant(END, np.int64), axis=1)
    ends = body.op("Add", body.op("Unsqueeze", ends, body.integers(0)), "scores")
    best, parents, chosen = _continuations(body, logs)
    for name, kind, shape, later in (
        *_next_step(body, best, parents, chosen),
        *((state, FLOATS, ("K", width), f"{state}.next") for state, width in states.items()),
    ):
        body.input(name, kind, *shape)
        body.result(later, kind)
        starts.append(graph.input(f"{name}.first", kind, *shape))
    results = {"best": best, "parents": parents, "chosen": chosen, "at": "places", "ends": ends}
    kinds = {name: FLOATS if name in ("best", "ends") else INDICES for name in results}
    for name, value in results.items():
        body.result(value, kinds[name])
    for name in ("maximum", "minimum"):
        graph.input(name, INDICES)
    for name in ("hypotheses", "candidates", "groups"):
        graph.input(name, INDICES, 1)
    graph.input("penalties", FLOATS, 2, "S")
    graph.input("words", FLOATS, 1, 1, "m")
    for name, width in parts.items():
        graph.input(name, FLOATS, 1, "m", width)
    graph.loop(body, starts, kinds)
    return graph


def _continuations(body: Graph, logs: str) -> tuple[str, str, str]:
    """Return scores, parents and types of the best continuations, by log-probabilities (K, S)."""
    op, flat, size = body.op, body.integers(-1), body.integers(GROUP)
    early = op("Cast", op("Less", "position", "minimum"), to=INDICES)
    totals = op("Sub", logs, op("Gather", "penalties", early))
    totals = op("Add", totals, op("Transpose", "scores", perm=[1, 0]))
    grouped = op("Reshape", totals, body.integers(-1, GROUP))
    maxima = op("ReduceMax", grouped, body.integers(1), keepdims=0)
    groups = op("TopK", maxima, "groups", outputs=2, sorted=0)[1]
    members = op("Reshape", op("Gather", grouped, groups), flat)
    best, index = op("TopK", members, "candidates", outputs=2)
    place = op("Mul", op("Gather", groups, op("Div", index, size)), size)
    place = op("Add", place, op("Mod", index, size))  # in (K, S)
    types = op("Shape", logs, start=1)
    return best, op("Div", place, types), op("Mod", place, types)


def _next_step(
    body: Graph, best: str, parents: str, chosen: str
) -> list[tuple[str, int, tuple[int | str, ...], str]]:
    """Say whether the search goes on; return what it hands on: name, kind, shape and new value."""
    op, zero, one_row = body.op, body.integers(0), body.integers(1, -1)
    ended = op("Equal", chosen, body.constant(END, np.int64))
    # The first K that do not end go on: among equals TopK takes the first. Each hypothesis can end
    # in one way, so that K of 2K candidates do not.
    going = op("TopK", op("Cast", ended, to=INDICES), "hypotheses", outputs=2, largest=0)[1]
    scores = op("Reshape", op("Gather", best, going), one_row)
    finished = op("And", ended, op("Greater", best, body.constant(-np.inf)))
    finished = op("Cast", op("Slice", finished, zero, "hypotheses"), to=INDICES)
    finished = op("Add", "finished", op("ReduceSum", finished))
    goes_on = op("And", op("Less", finished, "hypotheses"), op("Less", "position", "maximum"))
    body.result(op("Squeeze", goes_on), TRUTHS)
    previous = op("Reshape", op("Gather", chosen, going), one_row)
    return [
        ("scores", FLOATS, (1, "K"), scores),
        ("finished", INDICES, (1,), finished),
        ("previous", INDICES, (1, "K"), previous),
        ("rows", INDICES, ("K",), op("Gather", parents, going)),
    ]
