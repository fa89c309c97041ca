"""ConvS2S as graphs of ONNX, made of its weights without torch: encoder and decoder step.

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
block width.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from convs2s.config.architecture import ConvS2SArchitecture, Layer, NetworkSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.onnx_builder import FLOATS, INDICES, AnyArray, Graph, Value

ROOT_OF_HALF = float(np.sqrt(0.5))
STACKS = {"source": "encoder", "target": "decoder"}

Map = tuple[AnyArray, AnyArray]
"""A map's weight (outputs, inputs) and bias (outputs,)."""


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

    def linear(
        self,
        name: str,
        outputs: int,
        *inputs: int,
        share: float | AnyArray = 1.0,
    ) -> Map:
        """Return a map whose weight is normalized, times ``share``, of all outputs or of each."""
        v = self.take(f"{name}.weight_v", outputs, *inputs)
        v = v.reshape(outputs, -1)
        squares = np.square(v, dtype=np.float64)
        norm = np.sqrt(squares.sum(1))  # (outputs,)
        g = self.take(f"{name}.weight_g", outputs)
        factor = (g / norm).astype(np.float32)
        weight = v * factor[:, None]
        bias = self.take(f"{name}.bias", outputs)
        shares = np.broadcast_to(np.float32(share), outputs)
        return weight * shares[:, None], bias * shares

    def output(self) -> Map:
        """Return the output layer, which is the last to be taken."""
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


def encoder(networks: Sequence[Weights], precision: str) -> tuple[Graph, list[str]]:
    """Return the graph that makes what the decoder reads of a source, and the names of its parts.

    It reads ``source`` (B, m). Beside the parts (B, m, width) it makes ``words`` (B, 1, m), -inf
    where the source has no word, else 0.
    """
    graph = Graph(precision)
    op = graph.op
    source = graph.input("source", INDICES, ["B", "m"])
    padding = op("Equal", source, PADDING)  # (B, m)
    no_word = padding | op("Equal", source, END)
    words = op("Where", no_word, -np.inf, 0.0)
    graph.output("words", op("Unsqueeze", words, [1]))
    padding = op("Unsqueeze", padding, [2])  # (B, m, 1)
    present = op("Where", padding, 0.0, 1.0)
    barred = op("Where", padding, -np.inf, 0.0)
    length = op("ReduceSum", present, [1])  # (B, 1, 1)
    scale = op("Sqrt", length) * ROOT_OF_HALF  # m * sqrt(1/m), as in length_scale
    by_sentence = _by_sentence(graph, source)
    parts = []
    for number, weights in enumerate(networks):
        embedded, z = _encode(graph, weights, source, by_sentence, present)
        summed = op("Reshape", z, by_sentence) + embedded  # (B, m, f)
        values = graph.rows(summed * scale, weights.architecture.embedding)  # (B * m, f)
        attended = _attended(graph, weights, by_sentence, z, values, barred)
        for part, value in attended.items():
            name = f"{number}.{part}"
            parts.append(name)
            graph.output(name, value)
    return graph, parts


def _encode(
    graph: Graph,
    weights: Weights,
    source: Value,
    by_sentence: Value,
    present: Value,
) -> tuple[Value, Value]:
    """Add a network's encoder; return the embedded source (B, m, f) and its result (B * m, f).

    ``present`` (B, m, 1) is 0 where the source is padding, else 1.
    """
    op = graph.op
    architecture = weights.architecture
    f = architecture.embedding
    inputs = architecture.encoder_layers[0].width
    length = op("Shape", source, start=1)  # (1,): m
    length = op("Squeeze", length)
    positions = op("Range", 0, length, 1)  # (m,)
    embedded = _embed(graph, weights, "source", source, positions)
    x = graph.rows(embedded, f)  # (B * m, f)
    x = graph.linear(x, *weights.linear("encoder.in_projection", inputs, f))  # (B * m, d)
    for number, layer in enumerate(architecture.encoder_layers):
        kept = op("Reshape", x, by_sentence) * present  # (B, m, d)
        x = graph.rows(kept, inputs)
        window = _windows(graph, kept, layer, inputs)  # (B * m, kernel * d)
        name = f"encoder.blocks.{number}"
        hidden = _convolution(graph, weights, name, window, inputs, layer, ROOT_OF_HALF)
        x = hidden + _residual(graph, weights, name, x, inputs, layer.width)
        inputs = layer.width
    z = graph.linear(x, *weights.linear("encoder.out_projection", f, inputs))
    return embedded, z


def _attended(
    graph: Graph,
    weights: Weights,
    by_sentence: Value,
    z: Value,
    values: Value,
    barred: Value,
) -> dict[str, Value]:
    """Return what the decoder's blocks attend to (B, m, width), of z and the values (B * m, f).

    ``barred`` (B, m, 1) is -inf where the source is padding, else 0.
    """
    architecture = weights.architecture
    f = architecture.embedding
    keys = graph.op("Reshape", z, by_sentence)  # (B, m, f)
    parts = {"keys": keys * ROOT_OF_HALF}
    for number, layer in enumerate(architecture.decoder_layers):
        if _attention_of(architecture, number) != number:  # it has none of its own
            continue
        d = layer.width
        name = f"decoder.blocks.{number}.attention"
        weight, bias = weights.linear(f"{name}.in_projection", f, d)
        products = keys * (bias * ROOT_OF_HALF)  # (B, m, f)
        parts[f"bias{number}"] = graph.op("ReduceSum", products, [2]) + barred  # (B, m, 1)
        # The decoder asks with half of what a block's query is computed of.
        folded = weight.T * (2 * ROOT_OF_HALF)
        own_keys = graph.linear(z, folded, np.zeros(d))  # (B * m, d)
        parts[f"keys{number}"] = graph.op("Reshape", own_keys, by_sentence)
        projection = weights.linear(f"{name}.out_projection", d, f, share=0.5)
        own_values = graph.linear(values, *projection)  # (B * m, d)
        parts[f"values{number}"] = graph.op("Reshape", own_values, by_sentence)
    return parts


def _attention_of(architecture: ConvS2SArchitecture, number: int) -> int | None:
    """Return the block whose attention a block of the decoder has; None without attention."""
    attends = architecture.attends
    if not attends[number]:
        return None
    return attends.index(True) if architecture.attention_weights == "shared" else number


def _by_sentence(graph: Graph, tokens: Value) -> Value:
    """Return the shape [B, n, -1], which rows that belong to tokens (B, n) get back."""
    shape = graph.op("Shape", tokens)
    return graph.op("Concat", shape, [-1], axis=0)


def _embed(
    graph: Graph,
    weights: Weights,
    side: str,
    tokens: Value,
    positions: Value,
) -> Value:
    """Embed tokens (..., n) of a side that stand at positions (n,), or all at one."""
    name = f"{STACKS[side]}.embedding"
    width = weights.architecture.embedding
    table = weights.take(f"{name}.tokens", weights.types[side], width)
    embedded = graph.op("Gather", table, tokens)
    rows = weights.architecture.positions.rows(side)
    if rows is None:
        return embedded
    table = weights.take(f"{name}.positions", rows, width)
    positions = graph.op("Min", positions, rows - 1)
    return embedded + graph.op("Gather", table, positions)


def _windows(
    graph: Graph,
    x: Value,
    layer: Layer,
    inputs: int,
) -> Value:
    """Return the window (B * m, kernel * inputs) around each position of x (B, m, inputs)."""
    left = (layer.kernel - 1) // 2
    moved = []  # x along the source, with zeros from past its ends
    for move in range(-left, layer.kernel - left):
        pads = [0, -move, 0, 0, move, 0]
        moved.append(graph.op("Pad", x, pads))
    windows = graph.op("Concat", *moved, axis=2)  # (B, m, kernel * inputs)
    return graph.rows(windows, layer.kernel * inputs)


def _convolution(
    graph: Graph,
    weights: Weights,
    name: str,
    window: Value,
    inputs: int,
    layer: Layer,
    share: float,
) -> Value:
    """Return a block's gated convolution (rows, d) times ``share``."""
    d = layer.width
    shares = np.repeat([share, 1.0], d)  # not of the gate
    convolution = weights.linear(
        f"{name}.convolution",
        2 * d,
        layer.kernel,
        inputs,
        share=shares,
    )
    both = graph.linear(window, *convolution)  # (rows, 2d)
    value, gate = graph.ops("Split", 2, both, axis=1, num_outputs=2)
    return value * graph.op("Sigmoid", gate)


def _residual(
    graph: Graph,
    weights: Weights,
    name: str,
    x: Value,
    inputs: int,
    d: int,
) -> Value:
    """Return a block's residual (rows, d), of its input (rows, inputs), times sqrt(0.5)."""
    if inputs == d:
        return x * ROOT_OF_HALF
    return graph.linear(x, *weights.linear(f"{name}.residual", d, inputs, share=ROOT_OF_HALF))


def decoder(
    networks: Sequence[Weights], precision: str, parts: Sequence[str]
) -> tuple[Graph, dict[str, int]]:
    """Return the graph of a step up to the output layers, and the width of each network's state.

    It reads ``previous`` (B, K), ``position`` (), ``rows`` (R,) of the states that it goes on from,
    and what the encoder makes. It makes ``places`` (B, K) with the most attention, and of each
    network ``features`` (R, f_out) and the next state.
    """
    graph = Graph(precision, "decoder.")
    graph.input("previous", INDICES, ["B", "K"])
    graph.input("position", INDICES, [])
    graph.input("rows", INDICES, ["R"])
    words = graph.input("words", FLOATS, ["B", 1, "m"])
    for name in parts:
        graph.input(name, FLOATS, ["B", "m", f"width of {name}"])
    states: dict[str, int] = {}
    attentions = []
    for number, weights in enumerate(networks):
        width, attention = _decode(graph, weights, f"{number}.")
        states[f"{number}.state"] = width
        attentions.append(attention)
    attention = graph.mean(attentions) + words
    places = graph.op("ArgMax", attention, axis=2, keepdims=0)
    graph.output("places", places, INDICES)
    return graph, states


def _decode(graph: Graph, weights: Weights, prefix: str) -> tuple[int, Value]:
    """Add a network's step; return the width of its state, and its attention (B, K, m).

    The state (R, width) has the inputs of the convolutions that they read again, those of a block
    after those of the block below, the oldest first.
    """
    op = graph.op
    architecture = weights.architecture
    layers = architecture.decoder_layers
    f = architecture.embedding
    kept = _kept_widths(layers)
    state = graph.input(f"{prefix}state", FLOATS, ["R'", sum(kept)])
    earlier: list[Value] = []
    if kept:
        ordered = op("Gather", state, graph.value("rows"))  # (R, width)
        earlier = graph.ops("Split", len(kept), ordered, kept, axis=1)
    previous = graph.value("previous")
    by_sentence = _by_sentence(graph, previous)  # the shape [B, K, -1]
    embedded = _embed(graph, weights, "target", previous, graph.value("position"))  # (B, K, f)
    common = graph.value(f"{prefix}keys") @ graph.columns(embedded, f)  # (B, m, K)
    inputs = layers[0].width
    x = graph.rows(embedded, f)  # (R, f)
    x = graph.linear(x, *weights.linear("decoder.in_projection", inputs, f))  # (R, d)
    later: list[Value] = []  # inputs that the next step reads again
    attentions = []
    for number, layer in enumerate(layers):
        places = [*earlier[: layer.kernel - 1], x]
        earlier = earlier[layer.kernel - 1 :]
        later += places[1:]
        window = op("Concat", *places, axis=1)  # (R, kernel * d)
        name = f"decoder.blocks.{number}"
        owner = _attention_of(architecture, number)
        share = ROOT_OF_HALF if owner is None else 0.5
        hidden = _convolution(graph, weights, name, window, inputs, layer, share)
        residual = _residual(graph, weights, name, x, inputs, layer.width)
        terms = [hidden, residual]
        if owner is not None:
            query = op("Reshape", hidden, by_sentence)  # (B, K, d)
            query = graph.columns(query, layer.width)  # (B, d, K)
            products = graph.value(f"{prefix}keys{owner}") @ query  # (B, m, K)
            scores = op("Sum", products, common, graph.value(f"{prefix}bias{owner}"))
            scores = op("Transpose", scores, perm=[0, 2, 1])  # (B, K, m)
            attention = op("Softmax", scores)
            attentions.append(attention)
            context = attention @ graph.value(f"{prefix}values{owner}")  # (B, K, d)
            terms.append(graph.rows(context, layer.width))
        x = op("Sum", *terms)  # (R, d) of this block
        inputs = layer.width
    following = op("Concat", *later, axis=1) if later else state
    graph.output(f"{prefix}state.next", following)
    projection = weights.linear("decoder.out_projection", architecture.output_embedding, inputs)
    graph.output(f"{prefix}features", graph.linear(x, *projection))  # (R, f_out)
    return sum(kept), graph.mean(attentions)


def _kept_widths(layers: Sequence[Layer]) -> list[int]:
    """Return the widths of the inputs that the decoder's convolutions read again."""
    widths: list[int] = []
    inputs = layers[0].width
    for layer in layers:
        widths += [inputs] * (layer.kernel - 1)
        inputs = layer.width
    return widths
