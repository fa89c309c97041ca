"""Build ONNX graphs of ConvS2S from its weights, without torch: the encoder and a decoder step.

The graphs compute the same as ``convs2s.models.convs2s``, with fewer operations:

- Constant factors such as sqrt(0.5) are multiplied into the weights.
- A block's query is W h + b + g, with the output h of its convolution and the embedding g of the
  last target token (section 3.3). Its product with the encoder's output z is
  h (W^T z) + b z + g z. W^T z and b z do not depend on the hypotheses, so the encoder's graph
  computes them once per sentence instead of once per hypothesis and step.
- The output projection of a weighted mean of values is the weighted mean of their projections. So
  the encoder's graph projects the values, and the decoder's graph takes the mean.

Several networks share one graph. The result of a row must not depend on the other rows of the
batch:

- ONNX Runtime packs the weights once. So a product adds its terms in the same order for any number
  of rows.
- In int8, inputs of linear maps are rounded with a fixed scale, or with a scale of their own row.
- Scores are computed as (B, m, K). A product with m columns would add its terms in another order if
  m is large.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, f embedding width, d
block width, f_out input width of the output layer.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from convs2s.config.architecture import ConvS2SArchitecture, Layer, NetworkSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.onnx_builder import (
    FLOATS,
    INDICES,
    MIDDLE,
    AnyArray,
    Graph,
    Value,
    element_type_of,
)
from convs2s.models.steps import SQRT_HALF

STACKS = {"source": "encoder", "target": "decoder"}
"""The part of the network that reads each side. The names of the part's weights begin with it."""

Map = tuple[AnyArray, AnyArray]
"""The weight (outputs, inputs) and the bias (outputs,) of a linear map."""


class OutputMap(NamedTuple):
    """The output layer of a network: its map, and the fixed scale of the bytes that it reads."""

    weight: AnyArray  # (types, inputs)
    bias: AnyArray  # (types,)
    scale: float | None = None  # None: it reads fp32


class Weights:
    """The weights of a ConvS2S network, each of which can be taken once.

    All methods raise a ValueError if the weights are not those of the architecture.
    """

    def __init__(
        self,
        arrays: Mapping[str, AnyArray],
        architecture: NetworkSettings,
        types: tuple[int, int],
        scales: Mapping[str, float] | None = None,
    ) -> None:
        """Hold weights by name; ``types`` are the sizes of the source and target vocabulary.

        ``scales`` are the fixed scales of int8 that ``int8_scales.calibrate`` returns. If they are
        None or empty, the network computes in fp32, or in int8 with a scale for each row.
        """
        self._arrays = dict(arrays)
        self._scales = scales or {}
        # What represents 0 in the inputs of convolutions, in their type.
        self.zero = np.uint8(MIDDLE) if self._scales else np.float32(0)
        self.architecture = cast(ConvS2SArchitecture, architecture)
        self.types = dict(zip(STACKS, types, strict=True))

    def take(self, name: str, *shape: int) -> AnyArray:
        """Remove a weight of this shape and return it in fp32.

        Raises:
            ValueError: the weight is missing, or has another shape, or is not finite.
        """
        array = self._arrays.pop(name, None)
        if array is None or array.shape != shape:
            raise ValueError(name)
        is_float = array.dtype.kind in "fV"  # the kind of bfloat16 is V in numpy
        if not is_float or not np.isfinite(array).all():
            raise ValueError(name)
        return array.astype(np.float32, copy=False)

    def scale(self, place: str) -> float | None:
        """Return the fixed scale of what linear maps read at a place; None without fixed scales.

        Raises:
            ValueError: there are fixed scales, but none for this place.
        """
        if not self._scales:
            return None
        if place not in self._scales:
            raise ValueError(place)
        return self._scales[place]

    def linear(
        self,
        name: str,
        outputs: int,
        *inputs: int,
        share: float | AnyArray = 1.0,
    ) -> Map:
        """Return a weight-normalized map, multiplied by ``share``.

        The stored weight is (outputs, *inputs). The weight of the result is a matrix, which has all
        of these inputs as columns. ``share`` is one factor for all outputs, or an array with a
        factor for each output.
        """
        v = self.take(f"{name}.weight_v", outputs, *inputs)
        v = v.reshape(outputs, -1)  # (outputs, all inputs)
        squares = np.square(v, dtype=np.float64)
        norm = np.sqrt(squares.sum(1))  # (outputs,)
        g = self.take(f"{name}.weight_g", outputs)
        factor = (g / norm).astype(np.float32)
        weight = v * factor[:, None]
        bias = self.take(f"{name}.bias", outputs)
        shares = np.broadcast_to(np.float32(share), outputs)  # (outputs,)
        return weight * shares[:, None], bias * shares

    def output(self) -> OutputMap:
        """Return the output layer. Call this after all other weights have been taken.

        Raises:
            ValueError: weights are left over.
        """
        types = self.types["target"]
        width = self.architecture.output_embedding
        if self.architecture.selection:
            weight = self.take("decoder.output.table", types, width)
            bias = self.take("decoder.output.bias", types)
        else:
            weight, bias = self.linear("decoder.output", types, width)
        if self._arrays:
            raise ValueError(*self._arrays)
        return OutputMap(weight, bias, self.scale("decoder.output"))


class _Part:
    """The encoder of a network, or a step of its decoder, as a part of a graph."""

    def __init__(
        self,
        graph: Graph,
        weights: Weights,
        side: str,
    ) -> None:
        """Begin the part of the network that reads ``side``: ``source`` or ``target``."""
        self.graph = graph
        self.op = graph.op
        self.weights = weights
        self.architecture = weights.architecture
        self.side = side
        self.name = STACKS[side]

    def quantize(self, place: str, x: Value) -> Value:
        """Return what linear maps read at a place: bytes, or ``x`` if there is no fixed scale."""
        self.graph.quantized[f"{self.name}.{place}"] = x
        scale = self.scale(place)
        return x if scale is None else self.graph.quantize(x, scale)

    def scale(self, place: str) -> float | None:
        """Return the fixed scale of what linear maps read at a place; None without fixed scales."""
        return self.weights.scale(f"{self.name}.{place}")

    def linear(
        self,
        name: str,
        place: str,
        x: Value,
        outputs: int,
        *inputs: int,
        share: float | AnyArray = 1.0,
    ) -> Value:
        """Map rows (rows, inputs) to (rows, outputs) by the weights ``name``, times ``share``.

        ``x`` is the result of ``quantize`` for this place.
        """
        weight, bias = self.weights.linear(
            f"{self.name}.{name}", outputs, *inputs, share=share
        )
        return self.graph.linear(x, weight, bias, self.scale(place))

    def project(
        self,
        name: str,
        x: Value,
        outputs: int,
        inputs: int,
    ) -> Value:
        """Map rows in fp32 to (rows, outputs) by the weights ``name``.

        No other weights read these rows, so the place has the name of the weights.
        """
        return self.linear(name, name, self.quantize(name, x), outputs, inputs)

    def embed(self, tokens: Value, positions: Value) -> Value:
        """Embed tokens (..., n) at positions (n,), or all at one position ().

        Positions past the end of the position table share its last row.
        """
        name = f"{self.name}.embedding"
        width = self.architecture.embedding
        types = self.weights.types[self.side]
        table = self.weights.take(f"{name}.tokens", types, width)
        embedded = self.op("Gather", table, tokens)
        rows = self.architecture.positions.rows(self.side)
        if rows is None:
            return embedded
        table = self.weights.take(f"{name}.positions", rows, width)
        positions = self.op("Min", positions, rows - 1)
        return embedded + self.op("Gather", table, positions)

    def block(
        self,
        name: str,
        layer: Layer,
        x: Value,
        quantized: Value,
        inputs: int,
        window: Value,
        share: float,
    ) -> tuple[Value, Value]:
        """Add the convolution and the residual of a block; return the outputs (rows, d) of both.

        ``x`` (rows, inputs) is the block's input, and ``quantized`` is how linear maps read it.
        ``window`` (rows, kernel * inputs) is what the convolution reads. The convolution's output
        is multiplied by ``share``, the residual by sqrt(0.5).
        """
        d = layer.width
        # The first d outputs are values, which are multiplied by the share. The others are gates.
        shares = np.repeat([share, 1.0], d)  # (2d,)
        # (rows, 2d)
        values_and_gates = self.linear(
            f"{name}.convolution",
            name,
            window,
            2 * d,
            layer.kernel,
            inputs,
            share=shares,
        )
        value, gate = self.graph.ops(
            "Split", 2, values_and_gates, axis=1, num_outputs=2
        )
        hidden = value * self.op("Sigmoid", gate)
        if inputs == d:
            return hidden, x * SQRT_HALF
        residual = self.linear(
            f"{name}.residual", name, quantized, d, inputs, share=SQRT_HALF
        )
        return hidden, residual


def encoder(networks: Sequence[Weights], precision: str) -> tuple[Graph, list[str]]:
    """Return the graph of the encoders, and the names of its outputs that the decoder reads.

    The graph reads ``source`` (B, m), padded indices. Its outputs are:

    - ``words`` (B, 1, m): 0 at a word of the source, -inf at ``</s>`` and padding;
    - for network N and block M, the parts ``N.keys``, ``N.biasM``, ``N.keysM`` and ``N.valuesM``
      (B, m, width), which ``_attended`` describes. The names of the parts are returned.
    """
    graph = Graph(precision)
    op = graph.op
    source = graph.input("source", INDICES, ["B", "m"])
    padding = op("Equal", source, PADDING)  # (B, m)
    no_word = padding | op("Equal", source, END)
    words = op("Where", no_word, -np.inf, 0.0)
    words = op("Unsqueeze", words, [1])  # (B, 1, m)
    graph.output("words", words)
    padding = op("Unsqueeze", padding, [2])  # (B, m, 1)
    present = op("Where", padding, 0.0, 1.0)  # (B, m, 1)
    mask = op("Where", padding, -np.inf, 0.0)  # (B, m, 1)
    length = op("ReduceSum", present, [1])  # (B, 1, 1)
    # The context is multiplied by the square root of the length (section 3.4), and by the factor
    # sqrt(0.5) of the values, which ``_attended`` leaves out.
    scale = op("Sqrt", length) * SQRT_HALF  # (B, 1, 1)
    by_sentence = _by_sentence(graph, source)
    parts = []
    for number, weights in enumerate(networks):
        part = _Part(graph, weights, "source")
        embedded, z = _encode(part, source, by_sentence, present)
        attended = _attended(part, by_sentence, embedded, z, scale, mask)
        for name, value in attended.items():
            full_name = f"{number}.{name}"
            parts.append(full_name)
            graph.output(full_name, value)
    return graph, parts


def _encode(
    part: _Part,
    source: Value,
    by_sentence: Value,
    present: Value,
) -> tuple[Value, Value]:
    """Add a network's encoder; return the embedded source (B, m, f) and its output z (B * m, f).

    ``by_sentence`` is the shape [B, m, -1]. ``present`` (B, m, 1) is 0 at padding, else 1.
    """
    graph = part.graph
    op = graph.op
    f = part.architecture.embedding
    layers = part.architecture.encoder_layers
    length = op("Shape", source, start=1)  # (1,), the last dimension of the source: m
    length = op("Squeeze", length)  # ()
    positions = op("Range", 0, length, 1)  # (m,)
    embedded = part.embed(source, positions)
    embedded_rows = graph.rows(embedded, f)  # (B * m, f)
    inputs = layers[0].width
    x = part.project("in_projection", embedded_rows, inputs, f)  # (B * m, d)
    for number, layer in enumerate(layers):
        name = f"blocks.{number}"
        masked = op("Reshape", x, by_sentence) * present  # (B, m, inputs)
        x = graph.rows(masked, inputs)  # (B * m, inputs)
        quantized = part.quantize(name, x)  # (B * m, inputs)
        quantized_by_sentence = op("Reshape", quantized, by_sentence)  # (B, m, inputs)
        # (B * m, kernel * inputs)
        window = _windows(
            graph, quantized_by_sentence, layer, inputs, part.weights.zero
        )
        hidden, residual = part.block(
            name, layer, x, quantized, inputs, window, SQRT_HALF
        )
        x = hidden + residual  # (B * m, d) of this block
        inputs = layer.width
    z = part.project("out_projection", x, f, inputs)  # (B * m, f)
    return embedded, z


def _attended(
    part: _Part,
    by_sentence: Value,
    embedded: Value,
    z: Value,
    scale: Value,
    mask: Value,
) -> dict[str, Value]:
    """Add what the decoder's blocks attend to, and return it by name.

    ``by_sentence`` is the shape [B, m, -1]. ``embedded`` (B, m, f) is the embedded source, and
    ``z`` (B * m, f) is the output of the encoder. ``scale`` (B, 1, 1) is the factor of the context.
    ``mask`` (B, m, 1) is -inf at padding, else 0.

    In the decoder, the scores of block M are the sum of three terms:

    - the product of the target embeddings and ``keys`` (B, m, f), the same for all blocks;
    - the product of the output of the block's convolution and ``keysM`` (B, m, d);
    - ``biasM`` (B, m, 1), which is -inf at padding.

    The context is the weighted mean of ``valuesM`` (B, m, d).
    """
    graph = part.graph
    weights = part.weights
    architecture = part.architecture
    f = architecture.embedding
    keys = graph.op("Reshape", z, by_sentence)  # (B, m, f)
    quantized_keys = part.quantize("keys", z)  # (B * m, f)
    values = graph.rows(keys + embedded, f)
    quantized_values = part.quantize("values", values)  # (B * m, f)
    parts = {"keys": keys * SQRT_HALF}
    for number, layer in enumerate(architecture.decoder_layers):
        if _attention_of(architecture, number) != number:
            continue  # The block has no attention, or shares that of another block.
        d = layer.width
        name = f"decoder.blocks.{number}.attention"
        weight, bias = weights.linear(f"{name}.in_projection", f, d)
        products = keys * (bias * SQRT_HALF)  # (B, m, f)
        summed = graph.op("ReduceSum", products, [2])  # (B, m, 1)
        parts[f"bias{number}"] = summed + mask
        # The factor 2 cancels a factor 0.5: the decoder multiplies these keys by the output of a
        # convolution that has this factor (see ``_decode``).
        folded = weight.T * (2 * SQRT_HALF)  # (d, f)
        no_bias = np.zeros(d, np.float32)
        # (B * m, d)
        block_keys = graph.linear(quantized_keys, folded, no_bias, part.scale("keys"))
        parts[f"keys{number}"] = graph.op("Reshape", block_keys, by_sentence)
        # The context goes through two sums, each of which is multiplied by sqrt(0.5).
        out_weight, out_bias = weights.linear(f"{name}.out_projection", d, f, share=0.5)
        # The scale of the context is applied after the product. So the inputs of the product are as
        # large in long sentences as in short ones, and one fixed scale of int8 fits them all.
        block_values = graph.linear(
            quantized_values, out_weight, no_bias, part.scale("values")
        )
        block_values = graph.op("Reshape", block_values, by_sentence)  # (B, m, d)
        parts[f"values{number}"] = block_values * scale + out_bias
    return parts


def _attention_of(architecture: ConvS2SArchitecture, number: int) -> int | None:
    """Return the number of the block whose attention a decoder's block uses.

    This is the block itself, or the first block with attention if all share its weights. None means
    that the block has no attention.
    """
    attends = architecture.attends
    if not attends[number]:
        return None
    if architecture.attention_weights == "shared":
        return attends.index(True)
    return number


def _by_sentence(graph: Graph, tokens: Value) -> Value:
    """Return the shape [B, n, -1] for tokens (B, n).

    A Reshape to this shape turns rows (B * n, width) into (B, n, width).
    """
    shape = graph.op("Shape", tokens)
    return graph.op("Concat", shape, [-1], axis=0)


def _windows(
    graph: Graph,
    x: Value,
    layer: Layer,
    inputs: int,
    zero: np.generic,
) -> Value:
    """Return the window (B * m, kernel * inputs) around each position of x (B, m, inputs).

    Inputs past the ends of the source are ``zero``.
    """
    left = (layer.kernel - 1) // 2
    moved = []
    for move in range(-left, layer.kernel - left):
        # Move the inputs, so that each position gets the one that is ``move`` positions later. Pad
        # reads how many positions to add before each dimension, then after each dimension. A
        # negative number removes positions.
        if move == 0:
            moved.append(x)
        else:
            moved.append(graph.op("Pad", x, [0, -move, 0, 0, move, 0], zero))
    windows = graph.op("Concat", *moved, axis=2)  # (B, m, kernel * inputs)
    return graph.rows(windows, layer.kernel * inputs)


def decoder(
    networks: Sequence[Weights],
    precision: str,
    parts: Sequence[str],
) -> tuple[Graph, dict[str, AnyArray]]:
    """Return the graph of a decoder step without output layers, and its states before a search.

    The graph reads:

    - ``previous`` (B, K): the last token of each hypothesis;
    - ``position`` (): the position of these tokens;
    - ``rows`` (R,): the row of the states that each hypothesis continues;
    - ``words`` and the ``parts``: the outputs of the encoder's graph;
    - ``N.state`` (R', width) of each network N: the state after the last step, which had R' rows.

    Its outputs are:

    - ``places`` (B, K): the source position with the highest mean attention of all networks;
    - ``N.features`` (R, f_out) of each network N: the input of its output layer;
    - ``N.state.next`` (R, width) of each network N: the state that the next step reads.

    States and features are bytes if the network has fixed scales.

    The second result maps each name ``N.state`` to the state (width,) of a hypothesis before the
    first step, which is the same for all hypotheses.
    """
    graph = Graph(precision, "decoder.")
    graph.input("previous", INDICES, ["B", "K"])
    graph.input("position", INDICES, [])
    graph.input("rows", INDICES, ["R"])
    words = graph.input("words", FLOATS, ["B", 1, "m"])
    for name in parts:
        graph.input(name, FLOATS, ["B", "m", f"width of {name}"])
    states: dict[str, AnyArray] = {}
    attentions = []
    for number, weights in enumerate(networks):
        part = _Part(graph, weights, "target")
        state, attention = _decode(part, f"{number}.")
        states[f"{number}.state"] = state
        attentions.append(attention)
    attention = graph.mean(attentions) + words  # (B, K, m)
    places = graph.op("ArgMax", attention, axis=2, keepdims=0)
    graph.output("places", places, INDICES)
    return graph, states


def _decode(part: _Part, prefix: str) -> tuple[AnyArray, Value]:
    """Add a network's step; return a row of its first state, and its mean attention (B, K, m).

    The state (R, width) holds the inputs that the convolutions read again at the next position: the
    inputs of the bottom block first, and those of each block from the oldest to the newest.
    """
    graph = part.graph
    op = graph.op
    architecture = part.architecture
    layers = architecture.decoder_layers
    f = architecture.embedding
    kept_widths = _kept_widths(layers)
    first = np.full(sum(kept_widths), part.weights.zero)  # (width,)
    element_type = element_type_of(first)
    state = graph.input(f"{prefix}state", element_type, ["R'", len(first)])
    # The inputs that earlier steps have kept, for the blocks that are not yet computed.
    earlier: list[Value] = []
    if kept_widths:  # Split needs at least one output, but all kernels may be 1.
        ordered = op("Gather", state, graph.value("rows"))  # (R, width)
        earlier = graph.ops("Split", len(kept_widths), ordered, kept_widths, axis=1)
    previous = graph.value("previous")
    by_sentence = _by_sentence(graph, previous)  # the shape [B, K, -1]
    embedded = part.embed(previous, graph.value("position"))  # (B, K, f)
    embedded_columns = graph.columns(embedded, f)  # (B, f, K)
    keys = graph.value(f"{prefix}keys")
    common = keys @ embedded_columns  # (B, m, K), see ``_attend``
    inputs = layers[0].width
    embedded_rows = graph.rows(embedded, f)  # (R, f)
    x = part.project("in_projection", embedded_rows, inputs, f)  # (R, d)
    later: list[Value] = []  # inputs that the next step reads again
    attentions = []
    for number, layer in enumerate(layers):
        name = f"blocks.{number}"
        quantized = part.quantize(name, x)  # (R, inputs)
        kept = layer.kernel - 1  # number of earlier inputs in the window of this block
        window_inputs = [*earlier[:kept], quantized]
        earlier = earlier[kept:]
        later += window_inputs[1:]
        window = op("Concat", *window_inputs, axis=1)  # (R, kernel * inputs)
        owner = _attention_of(architecture, number)
        # The convolution's output has the factor sqrt(0.5) of its sum with the residual. With
        # attention, it also has the factor sqrt(0.5) of its sum with the context.
        share = SQRT_HALF if owner is None else 0.5
        hidden, residual = part.block(name, layer, x, quantized, inputs, window, share)
        terms = [hidden, residual]
        if owner is not None:
            hidden_by_sentence = op("Reshape", hidden, by_sentence)  # (B, K, d)
            query = graph.columns(hidden_by_sentence, layer.width)  # (B, d, K)
            attention, context = _attend(graph, prefix, owner, query, common)
            attentions.append(attention)
            terms.append(graph.rows(context, layer.width))
        x = op("Sum", *terms)  # (R, d) of this block
        inputs = layer.width
    next_state = op("Concat", *later, axis=1) if later else state
    graph.output(f"{prefix}state.next", next_state, element_type)
    output_width = architecture.output_embedding
    features = part.project("out_projection", x, output_width, inputs)  # (R, f_out)
    features = part.quantize("output", features)
    graph.output(f"{prefix}features", features, element_type)
    graph.attentions += attentions
    return first, graph.mean(attentions)


def _attend(
    graph: Graph,
    prefix: str,
    owner: int,
    query: Value,
    common: Value,
) -> tuple[Value, Value]:
    """Add a block's attention; return it (B, K, m), and the projected context (B, K, d).

    The attention has the weights of block ``owner``. ``query`` (B, d, K) is the output of the
    block's convolution, and ``common`` (B, m, K) is the term of the scores that is the same for all
    blocks.
    """
    keys = graph.value(f"{prefix}keys{owner}")  # (B, m, d)
    products = keys @ query  # (B, m, K)
    bias = graph.value(f"{prefix}bias{owner}")  # (B, m, 1)
    scores = graph.op("Sum", products, common, bias)  # (B, m, K)
    scores = graph.op("Transpose", scores, perm=[0, 2, 1])  # (B, K, m)
    attention = graph.op("Softmax", scores)
    values = graph.value(f"{prefix}values{owner}")  # (B, m, d)
    context = attention @ values  # (B, K, d)
    return attention, context


def _kept_widths(layers: Sequence[Layer]) -> list[int]:
    """Return the width of each input that the decoder's convolutions read again.

    A block whose kernel has the width k reads k - 1 inputs again.
    """
    widths: list[int] = []
    inputs = layers[0].width
    for layer in layers:
        widths += [inputs] * (layer.kernel - 1)
        inputs = layer.width
    return widths
