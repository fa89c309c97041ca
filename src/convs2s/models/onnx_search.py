"""Build ONNX graphs of the output layers and of the search.

``continuations`` returns the graph of one step, for a search whose loop is in Python. ``search``
returns one graph of all steps, for a single sentence. If Python called a graph for each step,
these calls would take a third of a sentence's time.

Shapes: B sentences, K hypotheses of each, R = B * K rows, C candidates of each sentence, S target
types including those that fill the last group of ``GROUP`` types, T steps, f_out input width of an
output layer.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from onnx import TensorProto

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models.onnx_builder import (
    BYTES,
    FLOATS,
    INDICES,
    AnyArray,
    Graph,
    Value,
    element_type_of,
)
from convs2s.models.onnx_graphs import OutputMap

GROUP = 32
"""Number of types in a group. The search for the best types first compares the groups' maxima."""

MASKED_LOGIT = -1e30
"""Logit of a type that a sentence may not use.

It is finite, because the difference of two infinite logits would not be a number.
"""

# The rows of the penalties. Each row says what is allowed as the next token of a sentence.
FREE = 0
NOT_THE_END = 1
THE_END_ALONE = 2


def search_inputs(
    types: int,
    hypotheses: int,
    candidates: int,
    unknown_penalty: float,
) -> dict[str, AnyArray]:
    """Return the inputs of a ``continuations`` graph that are the same for all sentences.

    ``types`` is the number of target types, ``hypotheses`` is K, ``candidates`` is C.
    """
    groups = math.ceil(types / GROUP)  # of each hypothesis
    filled_types = groups * GROUP  # S
    # The types that fill the last group, and padding, may never be chosen.
    penalties = np.zeros((3, 1, filled_types), np.float32)
    penalties[..., types:] = np.inf
    penalties[..., PADDING] = np.inf
    penalties[..., UNKNOWN] = unknown_penalty
    penalties[NOT_THE_END, :, END] = np.inf
    penalties[THE_END_ALONE] = np.inf
    penalties[THE_END_ALONE, :, END] = 0.0
    return {
        "penalties": penalties,
        "candidates": np.array([candidates]),
        "groups": np.array([min(candidates, hypotheses * groups)]),
        "shape": np.array([-1, hypotheses, filled_types]),
    }


def predict(
    graph: Graph,
    layers: Sequence[OutputMap],
    average: str,
    mask: Value | None = None,
    shape: Value | None = None,
) -> Value:
    """Add the output layers of the networks; return the averaged log-probabilities.

    This adds an input ``N.features`` for each network N, (R, f_out) or (B, K, f_out). ``mask`` and
    ``shape`` are inputs of ``continuations``; a mask needs the shape. The result is (B, K, S) with
    a mask, else (R, S).
    """
    op = graph.op
    logs = []
    for number, (weight, bias, scale) in enumerate(layers):
        # Fill up the last group with types that are never chosen. Their logits are below those of
        # masked types.
        missing = -len(bias) % GROUP
        weight = np.pad(weight, ((0, missing), (0, 0)))
        bias = np.pad(bias, (0, missing), constant_values=2 * MASKED_LOGIT)
        width = weight.shape[1]
        element_type = FLOATS if scale is None else BYTES
        features = graph.input(f"{number}.features", element_type)
        feature_rows = graph.rows(features, width)  # (R, f_out)
        logits = graph.linear(feature_rows, weight, bias, scale)  # (R, S)
        if mask is None or shape is None:
            logs.append(op("LogSoftmax", logits))
            continue
        logits = op("Reshape", logits, shape) + mask  # (B, K, S)
        largest = op("ReduceMax", logits, [2])  # (B, K, 1)
        logits = logits - largest
        # The shortlist contains the types of all sentences of the batch. For each sentence, the
        # types of the others add zeros to the sum, but change the order of its terms. In fp64 the
        # order does not change the result. A LogSoftmax in fp64 would take 14 times as long.
        shares = op("Exp", logits)
        shares = op("Cast", shares, to=TensorProto.DOUBLE)
        total = op("ReduceSum", shares, [2])  # (B, K, 1)
        normalizer = op("Log", total)
        normalizer = op("Cast", normalizer, to=FLOATS)
        logs.append(logits - normalizer)
    if len(logs) == 1 or average == "log_probabilities":
        return graph.mean(logs)
    # The logarithm of the mean probability. The largest logarithm is subtracted first, so that not
    # all exponentials become 0.
    largest_log = op("Max", *logs)
    relative = [op("Exp", log - largest_log) for log in logs]
    mean = graph.mean(relative)
    return op("Log", mean) + largest_log


def listing(layers: Sequence[OutputMap]) -> Graph:
    """Return the graph of the output layers for an export: the most probable types of each row.

    The graph reads ``count`` (1,), and ``N.features`` (R, f_out) of each network N. Its outputs:

    - ``values`` and ``tokens`` (R, count): log-probabilities and indices of the most probable
      types, the most probable first;
    - ``end`` (R,): the log-probability of ``</s>``.
    """
    graph = Graph("fp32")
    logs = predict(graph, layers, "probabilities")
    # The graph does not read this input. Earlier exports had it, and programs may still pass it.
    graph.input("groups", INDICES, [1])
    count = graph.input("count", INDICES, [1])
    values, tokens = graph.ops("TopK", 2, logs, count)
    end = graph.op("Gather", logs, END, axis=1)
    graph.output("values", values)
    graph.output("tokens", tokens, INDICES)
    graph.output("end", end)
    return graph


def continuations(
    layers: Sequence[OutputMap],
    precision: str,
    average: str,
    types: Indices,
    is_masked: bool = False,
) -> Graph:
    """Return the graph that computes the best continuations of each sentence.

    The output layers compute the logits of ``types``. The graph reads:

    - ``N.features`` (B, K, f_out) of each network N;
    - ``scores`` (B, K): the log-likelihoods of the hypotheses;
    - ``penalties`` (3, 1, S): what is subtracted from the log-probabilities;
    - ``limits`` (B,) or (1,): the row of the penalties that applies to each sentence, or to all;
    - ``candidates`` (1,): C, the number of continuations of each sentence;
    - ``groups`` (1,): the number of groups of types in which the continuations are searched;
    - ``shape`` (3,): [-1, K, S];
    - ``mask`` (B, 1, S), if ``is_masked``: MASKED_LOGIT if a sentence may not use a type, else 0.

    Its outputs ``best``, ``parents`` and ``chosen`` (B, C) are the scores, parents and tokens of
    ``Candidates``.
    """
    graph = Graph(precision, "output.")
    op = graph.op
    # Fill up the last group, as ``predict`` does.
    missing = -len(types) % GROUP
    types = np.pad(types, (0, missing), constant_values=PADDING)  # (S,)
    scores = graph.input("scores", FLOATS, ["B", "K"])
    limits = graph.input("limits", INDICES, ["limits"])
    rows_of_penalties = graph.input("penalties", FLOATS, [3, 1, "S"])
    count = graph.input("candidates", INDICES, [1])
    group_count = graph.input("groups", INDICES, [1])
    shape = graph.input("shape", INDICES, [3])
    mask: Value | None = None
    if is_masked:
        mask = graph.input("mask", FLOATS, ["B", 1, "S"])
    logs = predict(graph, layers, average, mask, shape)
    if not is_masked:
        logs = op("Reshape", logs, shape)  # (B, K, S)
    penalties = op("Gather", rows_of_penalties, limits)  # (B, 1, S)
    scores_so_far = op("Unsqueeze", scores, [2])  # (B, K, 1)
    totals = logs - penalties + scores_so_far  # (B, K, S)
    best, flat = _best(graph, totals, count, group_count)  # (B, C)
    if is_masked:
        # If a sentence may use few types, the C best include masked ones.
        best = op("Where", best < MASKED_LOGIT / 2, -np.inf, best)
    parents = flat / len(types)  # (B, C), rounded down
    chosen = op("Gather", types, flat % len(types))
    graph.output("best", best)
    graph.output("parents", parents, INDICES)
    graph.output("chosen", chosen, INDICES)
    return graph


def _best(
    graph: Graph,
    totals: Value,
    count: Value,
    group_count: Value,
) -> tuple[Value, Value]:
    """Add the search for the best totals of each sentence; return them and their indices (B, C).

    ``totals`` are (B, K, S), and the indices are those of the flattened (K, S). The C best totals
    are in at most C groups of types, namely those with the largest maxima. So the first pass finds
    these groups, and the second pass compares only their members.

    Of equal totals, the one with the lowest index comes first: TopK takes the first of equal
    values, and the second pass reads the groups in ascending order. So the order does not depend on
    the batch, whose shortlist decides which types share a group.
    """
    op = graph.op
    grouped = op("Reshape", totals, [0, -1, GROUP])  # (B, K * S / GROUP, GROUP)
    maxima = op("ReduceMax", grouped, [2], keepdims=0)  # (B, K * S / GROUP)
    _, groups = graph.ops("TopK", 2, maxima, group_count, sorted=0)  # (B, groups)
    # Sort the groups in ascending order.
    groups, _ = graph.ops("TopK", 2, groups, group_count, largest=0)
    group_indices = op("Unsqueeze", groups, [2])  # (B, groups, 1)
    members = op("GatherND", grouped, group_indices, batch_dims=1)  # (B, groups, GROUP)
    members = op("Reshape", members, [0, -1])  # (B, groups * GROUP)
    best, index = graph.ops("TopK", 2, members, count)  # (B, C)
    rank = index / GROUP  # (B, C), which of the chosen groups
    group = op("GatherElements", groups, rank, axis=1)  # (B, C)
    first = group * GROUP
    member = index % GROUP
    return best, first + member


def search(
    precision: str,
    step: Graph,
    output: Graph,
    parts: Iterable[str],
    states: Mapping[str, AnyArray],
) -> Graph:
    """Return the graph of the whole search for one sentence.

    Each run of its loop is a step of the search. It runs the graph ``step`` of the decoder, then
    ``output``, the graph of ``continuations``. ``parts`` are the names of the encoder's outputs
    that ``step`` reads, and ``states`` maps the name of each state to its row before the first
    step. The graph reads:

    - ``words`` and the ``parts``: the outputs of the encoder's graph;
    - ``penalties``, ``candidates``, ``groups`` and ``shape``, as ``continuations`` does;
    - ``hypotheses`` (1,): K;
    - ``steps`` (): the maximum of T;
    - ``limits of steps`` (steps,): the row of the penalties that applies to each step;
    - the values before the first step: ``scores.first`` (1, K), ``previous.first`` (1, K),
      ``rows.first`` (K,), ``N.state.first`` (K, width) of each network N, and ``finished.first``
      (1, 1), the number of finished outputs.

    Its outputs are the fields of ``Candidates`` for all T steps: ``scores of steps``, ``parents of
    steps`` and ``tokens of steps`` (T, 1, C), and ``places of steps`` (T, 1, K).
    """
    graph = Graph(precision, "search.")
    names = ["steps", "limits of steps", "hypotheses", "candidates", "groups", "shape"]
    names += ["finished.first", "previous.first", "rows.first"]
    for name in names:
        graph.input(name, INDICES)
    for name in ("penalties", "words", *parts, "scores.first"):
        graph.input(name, FLOATS)
    for state, first in states.items():
        graph.input(f"{state}.first", element_type_of(first))
    # The body looks up the limits of the step, runs the decoder's step and the output layers, and
    # chooses what the next step continues. These parts read each other's results by name.
    body = Graph(precision, "body.")
    position = body.op("Unsqueeze", body.value("position"), [0])  # (1,)
    limits = body.op("Gather", body.value("limits of steps"), position)  # (1,)
    body.alias("limits", limits)
    body.join(step)
    body.join(output)
    goes_on, carried = _next_step(body)
    for state in states:
        carried[state] = body.value(f"{state}.next")
    results = {
        "scores of steps": body.value("best"),
        "parents of steps": body.value("parents"),
        "tokens of steps": body.value("chosen"),
        "places of steps": body.value("places"),
    }
    graph.loop(body, graph.value("steps"), goes_on, carried, results)
    return graph


def _next_step(body: Graph) -> tuple[Value, dict[str, Value]]:
    """Add the choice of the hypotheses that the next step continues.

    Return whether the search goes on, because fewer than K outputs are finished, and what the next
    step reads, by name.
    """
    op = body.op
    best = body.value("best")  # (1, C)
    parents = body.value("parents")  # (1, C)
    chosen = body.value("chosen")  # (1, C)
    hypotheses = body.value("hypotheses")  # (1,)
    ended = op("Equal", chosen, END)  # (1, C)
    # The K best candidates that do not end go on. There are at least K of them: only one
    # continuation of each hypothesis is ``</s>``, so at most K of the 2K candidates end. TopK finds
    # them among the zeros. Of equal numbers it takes the first, which are the best candidates.
    order = op("Cast", ended, to=INDICES)  # (1, C), 1 for a candidate that ends, else 0
    # (1, K), the indices of the candidates that go on.
    _, going = body.ops("TopK", 2, order, hypotheses, largest=0)
    scores = op("GatherElements", best, going, axis=1)
    previous = op("GatherElements", chosen, going, axis=1)
    rows = op("GatherElements", parents, going, axis=1)
    rows = op("Squeeze", rows, [0])  # (K,)
    # An output is finished if its ``</s>`` is among the K best candidates.
    is_possible = op("Greater", best, -np.inf)
    can_end = ended & is_possible  # (1, C)
    # (1, K), the columns 0 to K - 1.
    finished = op("Slice", can_end, [0], hypotheses, [1])
    finished = op("Cast", finished, to=INDICES)
    newly_finished = op("ReduceSum", finished)  # (1, 1)
    count = body.value("finished") + newly_finished  # (1, 1)
    goes_on = op("Squeeze", count < hypotheses)  # ()
    carried = {"scores": scores, "finished": count, "previous": previous, "rows": rows}
    return goes_on, carried
