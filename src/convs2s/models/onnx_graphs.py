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

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
from onnx import TensorProto

from convs2s.config.architecture import ConvS2SArchitecture, Layer, NetworkSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.onnx_builder import FLOATS, INDICES, AnyArray, Graph, Value

ROOT_OF_HALF = float(np.sqrt(0.5))
GROUP = 32  # Types of which the most probable stands for all in the first pass over them
BARRED = -1e30  # Logit of a type that may not be chosen: infinite ones have no differences
STACKS = {"source": "encoder", "target": "decoder"}

OutputWeights = tuple[AnyArray, AnyArray]
"""An output layer's weight (types, f_out) and bias (types,)."""


class Weights:
    """A network's weights; ``ValueError`` says that they are not those of its architecture."""

    def __init__(
        self,
        arrays: Mapping[str, AnyArray],
        architecture: NetworkSettings,
        types: tuple[int, int],
    ) -> None:
        """Take ConvS2S weights by their names, and the sizes of both vocabularies."""
        self._arrays = dict(arrays)
        self.architecture = cast(ConvS2SArchitecture, architecture)
        self.types = dict(zip(STACKS, types, strict=True))

    def take(self, name: str, *shape: int) -> AnyArray:
        """Return a weight, which is used once."""
        array = self._arrays.pop(name, np.zeros(0))
        is_float = array.dtype.kind in "fV"  # V: bfloat16
        if array.shape != shape or not is_float or not np.isfinite(array).all():
            raise ValueError(name)
        return array.astype(np.float32, copy=False)

    def linear(self, name: str, outputs: int, *inputs: int) -> tuple[AnyArray, AnyArray]:
        """Return a normalized weight (outputs, inputs) and its bias (outputs,)."""
        v = self.take(f"{name}.weight_v", outputs, *inputs).reshape(outputs, -1)
        norm = np.sqrt(np.square(v, dtype=np.float64).sum(1))  # (outputs,)
        g = self.take(f"{name}.weight_g", outputs)
        factor = (g / norm).astype(np.float32)
        bias = self.take(f"{name}.bias", outputs)
        return v * factor[:, None], bias

    def output(self) -> OutputWeights:
        """Return those of the output layer, which is the last to be taken."""
        types = self.types["target"]
        width = self.architecture.output_embedding
        if self.architecture.selection:
            weight = self.take("decoder.output.table", types, width)
            bias = self.take("decoder.output.bias", types)
        else:
            weight, bias = self.linear("decoder.output", types, width)
        if self._arrays:
            raise ValueError(*self._arrays)
        return weight, bias


def encoder(networks: Sequence[Weights], precision: str) -> tuple[Graph, dict[str, int]]:
    """Return the graph that makes what the decoder reads of a source, and the width of each part.

    It reads ``source`` (B, m). Beside the parts (B, m, width) it makes ``words`` (B, 1, m), -inf
    where the source has no word, else 0.
    """
    graph = Graph(precision)
    source = graph.input("source", INDICES, "B", "m")
    zero = graph.constant(0)
    low = graph.constant(-np.inf)
    padding = graph.op("Equal", source, graph.index(PADDING))  # (B, m)
    end = graph.op("Equal", source, graph.index(END))
    words = graph.op("Where", padding | end, low, zero)
    graph.output("words", graph.op("Unsqueeze", words, graph.integers(1)))
    padding = graph.op("Unsqueeze", padding, graph.integers(2))  # (B, m, 1)
    present = graph.op("Where", padding, zero, graph.constant(1))
    length = graph.op("ReduceSum", present, graph.integers(1))  # (B, 1, 1)
    scale = graph.op("Sqrt", length)  # m * sqrt(1/m), as in length_scale
    masks = _Masks(
        present=present,
        bias=graph.op("Where", padding, low, zero),
        scale=scale * graph.constant(ROOT_OF_HALF),
    )
    widths: dict[str, int] = {}
    for number, weights in enumerate(networks):
        for part, (value, width) in _encode(graph, weights, masks).items():
            name = f"{number}.{part}"
            widths[name] = width
            graph.output(name, value)
    return graph, widths


class _Masks(NamedTuple):
    """What an encoder needs of where the source is padding."""

    present: Value  # (B, m, 1), 0 there, else 1
    bias: Value  # (B, m, 1), -inf there, else 0
    scale: Value  # (B, 1, 1), sqrt(m) * sqrt(0.5) of the sentence's own m


def _encode(graph: Graph, weights: Weights, masks: _Masks) -> dict[str, tuple[Value, int]]:
    """Add a network's encoder; return what its decoder reads (B, m, width), and each width."""
    architecture = weights.architecture
    f = architecture.embedding
    inputs = architecture.encoder_layers[0].width
    source = graph.value("source")
    by_sentence = _shape_by_sentence(graph, source)
    length = graph.op("Shape", source, start=1)  # (1,): m
    first = graph.index(0)
    step = graph.index(1)
    positions = graph.op("Range", first, graph.op("Squeeze", length), step)
    embedded = _embed(graph, weights, "source", source, positions)  # (B, m, f)
    rows = graph.rows(embedded, f)  # (B * m, f)
    x = graph.linear(rows, *weights.linear("encoder.in_projection", inputs, f))  # (B * m, d)
    for number, layer in enumerate(architecture.encoder_layers):
        present = graph.op("Reshape", x, by_sentence) * masks.present  # (B, m, d)
        x = graph.rows(present, inputs)
        window = _windows(graph, present, layer, inputs)  # (B * m, kernel * d)
        name = f"encoder.blocks.{number}"
        hidden, kept = _block(graph, weights, name, x, window, inputs, layer, ROOT_OF_HALF)
        x = hidden + kept
        inputs = layer.width
    z = graph.linear(x, *weights.linear("encoder.out_projection", f, inputs))  # (B * m, f)
    keys = graph.op("Reshape", z, by_sentence)  # (B, m, f)
    values = graph.rows((keys + embedded) * masks.scale, f)  # (B * m, f)
    parts = {"keys": (keys * graph.constant(ROOT_OF_HALF), f)}
    for number, layer in enumerate(architecture.decoder_layers):
        is_shared = architecture.attention_weights == "shared" and len(parts) > 1
        if is_shared or not architecture.attends[number]:
            continue
        d = layer.width
        name = f"decoder.blocks.{number}.attention"
        weight, bias = weights.linear(f"{name}.in_projection", f, d)
        # The decoder asks with half of what a block's query is computed of.
        folded = weight.T * (2 * ROOT_OF_HALF)
        folded_keys = graph.linear(z, folded, np.zeros(d))  # (B * m, d)
        products = keys * graph.constant(bias * ROOT_OF_HALF)  # (B, m, f)
        score = graph.op("ReduceSum", products, graph.integers(2))  # (B, m, 1), of the bias
        score = score + masks.bias
        weight, bias = weights.linear(f"{name}.out_projection", d, f)
        folded_values = graph.linear(values, weight * 0.5, bias * 0.5)
        parts[f"keys{number}"] = (graph.op("Reshape", folded_keys, by_sentence), d)
        parts[f"values{number}"] = (graph.op("Reshape", folded_values, by_sentence), d)
        parts[f"bias{number}"] = (score, 1)
    return parts


def _shape_by_sentence(graph: Graph, tokens: Value) -> Value:
    """Return the shape [B, n, -1], which rows that belong to tokens (B, n) get back."""
    shape = graph.op("Shape", tokens)
    return graph.op("Concat", shape, graph.integers(-1), axis=0)


def _embed(graph: Graph, weights: Weights, side: str, tokens: Value, positions: Value) -> Value:
    """Embed tokens (..., n) of a side that stand at positions (n,), or all at one."""
    name = f"{STACKS[side]}.embedding"
    width = weights.architecture.embedding
    table = weights.take(f"{name}.tokens", weights.types[side], width)
    embedded = graph.op("Gather", graph.constant(table), tokens)
    rows = weights.architecture.positions.rows(side)
    if rows is None:
        return embedded
    table = weights.take(f"{name}.positions", rows, width)
    position_table = graph.constant(table)
    positions = graph.op("Min", positions, graph.index(rows - 1))
    return embedded + graph.op("Gather", position_table, positions)


def _windows(graph: Graph, x: Value, layer: Layer, inputs: int) -> Value:
    """Return the window (B * m, kernel * inputs) around each position of x (B, m, inputs)."""
    left = (layer.kernel - 1) // 2
    moved = []  # x along the source, with zeros from past its ends
    for move in range(-left, layer.kernel - left):
        if move == 0:
            moved.append(x)
        else:
            pads = graph.integers(0, -move, 0, 0, move, 0)
            moved.append(graph.op("Pad", x, pads))
    windows = graph.op("Concat", *moved, axis=2)  # (B, m, kernel * inputs)
    return graph.rows(windows, layer.kernel * inputs)


def _block(
    graph: Graph,
    weights: Weights,
    name: str,
    x: Value,
    window: Value,
    inputs: int,
    layer: Layer,
    share: float,
) -> tuple[Value, Value]:
    """Return a block's gated convolution times ``share``, and its residual times sqrt(0.5)."""
    d = layer.width
    factor = np.repeat(np.array([share, 1.0], np.float32), d)  # not of the gate
    weight, bias = weights.linear(f"{name}.convolution", 2 * d, layer.kernel, inputs)
    both = graph.linear(window, weight * factor[:, None], bias * factor)  # (rows, 2d)
    value, gate = graph.ops("Split", 2, both, axis=1, num_outputs=2)
    hidden = value * graph.op("Sigmoid", gate)  # (rows, d)
    if inputs == d:
        return hidden, x * graph.constant(ROOT_OF_HALF)
    weight, bias = weights.linear(f"{name}.residual", d, inputs)
    return hidden, graph.linear(x, weight * ROOT_OF_HALF, bias * ROOT_OF_HALF)


def decoder(
    networks: Sequence[Weights], precision: str, parts: Mapping[str, int]
) -> tuple[Graph, dict[str, int]]:
    """Return the graph of a step up to the output layers, and the width of each network's state.

    It reads ``previous`` (B, K), ``position`` (), ``rows`` (R,) of the states that it goes on from,
    and what the encoder makes. It makes ``places`` (B, K) with the most attention, and of each
    network ``features`` (R, f_out) and the next state.
    """
    graph = Graph(precision, "decoder.")
    previous = graph.input("previous", INDICES, "B", "K")
    graph.input("position", INDICES)
    graph.input("rows", INDICES, "R")
    words = graph.input("words", FLOATS, "B", 1, "m")
    for name, width in parts.items():
        graph.input(name, FLOATS, "B", "m", width)
    by_sentence = _shape_by_sentence(graph, previous)
    states: dict[str, int] = {}
    attentions = []
    for number, weights in enumerate(networks):
        width, attention = _decode(graph, weights, f"{number}.", by_sentence)
        states[f"{number}.state"] = width
        attentions.append(attention)
    attention = graph.mean(attentions) + words
    places = graph.op("ArgMax", attention, axis=2, keepdims=0)
    graph.output("places", places, INDICES)
    return graph, states


def _decode(graph: Graph, weights: Weights, prefix: str, by_sentence: Value) -> tuple[int, Value]:
    """Add a network's step; return the width of its state, and its attention (B, K, m).

    ``by_sentence`` is the shape [B, K, -1]. The state (R, width) has the inputs of the convolutions
    that they read again, those of a block after those of the block below, the oldest first.
    """
    architecture = weights.architecture
    layers = architecture.decoder_layers
    f = architecture.embedding
    kept = _kept_widths(layers)
    state = graph.input(f"{prefix}state", FLOATS, "R'", sum(kept))
    earlier: list[Value] = []
    if kept:
        ordered = graph.op("Gather", state, graph.value("rows"))  # (R, width)
        earlier = graph.ops("Split", len(kept), ordered, graph.integers(*kept), axis=1)
    previous = graph.value("previous")
    embedded = _embed(graph, weights, "target", previous, graph.value("position"))  # (B, K, f)
    inputs = layers[0].width
    rows = graph.rows(embedded, f)  # (R, f)
    x = graph.linear(rows, *weights.linear("decoder.in_projection", inputs, f))  # (R, d)
    common = graph.value(f"{prefix}keys") @ graph.columns(embedded, f)  # (B, m, K)
    owner = architecture.attends.index(True)  # of weights that are shared
    later: list[Value] = []  # inputs that the next step reads again
    attentions = []
    for number, layer in enumerate(layers):
        count = layer.kernel - 1
        places = [*earlier[:count], x]
        earlier = earlier[count:]
        later += places[1:]
        window = x
        if count:
            window = graph.op("Concat", *places, axis=1)  # (R, kernel * d)
        name = f"decoder.blocks.{number}"
        attends = architecture.attends[number]
        share = 0.5 if attends else ROOT_OF_HALF
        hidden, residual = _block(graph, weights, name, x, window, inputs, layer, share)
        terms = [hidden, residual]
        if attends:
            own = owner if architecture.attention_weights == "shared" else number
            query = graph.op("Reshape", hidden, by_sentence)  # (B, K, d)
            query = graph.columns(query, layer.width)  # (B, d, K)
            products = graph.value(f"{prefix}keys{own}") @ query  # (B, m, K)
            scores = graph.op("Sum", products, common, graph.value(f"{prefix}bias{own}"))
            scores = graph.op("Transpose", scores, perm=[0, 2, 1])  # (B, K, m)
            attention = graph.op("Softmax", scores)
            attentions.append(attention)
            context = attention @ graph.value(f"{prefix}values{own}")  # (B, K, d)
            terms.append(graph.rows(context, layer.width))
        x = graph.op("Sum", *terms)  # (R, d) of this block
        inputs = layer.width
    following = graph.op("Concat", *later, axis=1) if later else state
    graph.output(f"{state.name}.next", following)
    weight, bias = weights.linear("decoder.out_projection", architecture.output_embedding, inputs)
    graph.output(f"{prefix}features", graph.linear(x, weight, bias))
    return sum(kept), graph.mean(attentions)


def _kept_widths(layers: Sequence[Layer]) -> list[int]:
    """Return the widths of the inputs that the decoder's convolutions read again."""
    widths: list[int] = []
    inputs = layers[0].width
    for layer in layers:
        widths += [inputs] * (layer.kernel - 1)
        inputs = layer.width
    return widths


def output(layers: Sequence[OutputWeights], precision: str, average: str, is_masked: bool) -> Graph:
    """Return the graph of the output layers: each network's weight (S', f_out) and bias (S',).

    It reads each network's ``features`` (R, f_out), how many ``groups`` (1,) are looked into for
    ``count`` (1,) types, and, if ``is_masked``, ``mask`` (R, S), BARRED where a row may not use a
    type. It makes their ``values`` and ``tokens`` (R, count), the most probable first, and ``end``
    (R,), the log-probability of ``</s>``.
    """
    graph = Graph(precision)
    if is_masked:
        graph.input("mask", FLOATS, "R", "S")
    group_count = graph.input("groups", INDICES, 1)
    count = graph.input("count", INDICES, 1)
    for number, (weight, _) in enumerate(layers):
        graph.input(f"{number}.features", FLOATS, "R", weight.shape[1])
    mean = predict(graph, layers, average, is_masked)  # (R, S)
    grouped = graph.op("Reshape", mean, graph.integers(0, -1, GROUP))  # (R, S / GROUP, GROUP)
    maxima = graph.op("ReduceMax", grouped, graph.integers(2), keepdims=0)
    _, groups = graph.ops("TopK", 2, maxima, group_count, sorted=0)
    groups = graph.op("Unsqueeze", groups, graph.integers(2))  # (R, groups, 1)
    flat = graph.integers(0, -1)
    members = graph.op("GatherND", grouped, groups, batch_dims=1)  # (R, groups, GROUP)
    members = graph.op("Reshape", members, flat)  # (R, groups * GROUP)
    values, chosen = graph.ops("TopK", 2, members, count)
    firsts = groups * graph.integers(GROUP)
    tokens = firsts + graph.integers(*range(GROUP))  # (R, groups, GROUP)
    tokens = graph.op("Reshape", tokens, flat)
    graph.output("values", values)
    graph.output("tokens", graph.op("GatherElements", tokens, chosen, axis=1), INDICES)
    graph.output("end", graph.op("Gather", mean, graph.index(END), axis=1))
    return graph


def predict(graph: Graph, layers: Sequence[OutputWeights], average: str, is_masked: bool) -> Value:
    """Return log-probabilities (R, S) of each network's ``features``."""
    logs = []
    for number, (weight, bias) in enumerate(layers):
        missing = -len(bias) % GROUP
        weight = np.pad(weight, ((0, missing), (0, 0)))
        bias = np.pad(bias, (0, missing), constant_values=2 * BARRED)
        logits = graph.linear(graph.value(f"{number}.features"), weight, bias)
        if not is_masked:
            logs.append(graph.op("LogSoftmax", logits))
            continue
        logits = logits + graph.value("mask")
        logits = logits - graph.op("ReduceMax", logits, graph.integers(1))
        # A sum in fp64 is the same whatever types the batch's other sentences add. LogSoftmax in
        # fp64 is 14 times slower.
        shares = graph.op("Cast", graph.op("Exp", logits), to=TensorProto.DOUBLE)
        total = graph.op("ReduceSum", shares, graph.integers(1))  # (R, 1)
        normalizer = graph.op("Cast", graph.op("Log", total), to=FLOATS)
        logs.append(logits - normalizer)
    if len(logs) == 1 or average == "log_probabilities":
        return graph.mean(logs)
    # The log of the mean probability.
    most = graph.op("Max", *logs)
    shares_of_most = [graph.op("Exp", one - most) for one in logs]
    return graph.op("Log", graph.mean(shares_of_most)) + most
