"""Output layers and the search as graphs of ONNX: a step's continuations, or one sentence's search.

Step by step a third of the time of one sentence is Python and the passing of arrays.

Shapes: B sentences, K hypotheses of each, R = B * K rows, C candidates, S target types in whole
groups of ``GROUP``, T steps.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from onnx import TensorProto

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models.onnx_builder import FLOATS, INDICES, Graph, Value
from convs2s.models.onnx_graphs import Map
from convs2s.models.steps import Numbers

GROUP = 32  # Types of which the most probable stands for all in the first pass over them
BARRED = -1e30  # Logit of a type that may not be chosen: infinite ones have no differences

# The rows of ``penalties``, by which a sentence's next token is limited.
FREE = 0
NOT_THE_END = 1
THE_END_ALONE = 2


@lru_cache(maxsize=8)
def penalties(types: int, of_unknown: float) -> Numbers:
    """Return what each type loses of its log-probability where the next token is limited (3, S)."""
    found = np.zeros((3, types), np.float32)
    found[:, PADDING] = np.inf
    found[:, UNKNOWN] = of_unknown
    found[NOT_THE_END, END] = np.inf
    found[THE_END_ALONE] = np.inf
    found[THE_END_ALONE, END] = 0.0
    return found


def _predict(
    graph: Graph,
    layers: Sequence[Map],
    average: str,
    shape: Value | None = None,
    mask: Value | None = None,
) -> Value:
    """Return log-probabilities (R, S) of each network's ``features`` (R, f_out) or (B, K, f_out).

    With a ``mask`` (B, 1, S), BARRED where a sentence may not use a type, else 0, they have the
    ``shape`` [B, K, S].
    """
    op = graph.op
    logs = []
    for number, (weight, bias) in enumerate(layers):
        missing = -len(bias) % GROUP
        weight = np.pad(weight, ((0, missing), (0, 0)))
        bias = np.pad(bias, (0, missing), constant_values=2 * BARRED)
        width = weight.shape[1]
        features = graph.input(f"{number}.features", FLOATS)
        logits = graph.linear(graph.rows(features, width), weight, bias)  # (R, S)
        if shape is None or mask is None:
            logs.append(op("LogSoftmax", logits))
            continue
        logits = op("Reshape", logits, shape) + mask
        largest = op("ReduceMax", logits, [2])  # (B, K, 1)
        logits = logits - largest
        # A sum in fp64 is the same whatever types the batch's other sentences add. LogSoftmax in
        # fp64 is 14 times slower.
        shares = op("Exp", logits)
        shares = op("Cast", shares, to=TensorProto.DOUBLE)
        total = op("ReduceSum", shares, [2])  # (B, K, 1)
        normalizer = op("Log", total)
        logs.append(logits - op("Cast", normalizer, to=FLOATS))
    if len(logs) == 1 or average == "log_probabilities":
        return graph.mean(logs)
    # The log of the mean probability.
    most = op("Max", *logs)
    shares_of_most = [op("Exp", one - most) for one in logs]
    mean = graph.mean(shares_of_most)
    return op("Log", mean) + most


def listing(layers: Sequence[Map]) -> Graph:
    """Return the graph of the output layers that an export has: the most probable types of a row.

    Of ``features`` (R, f_out) it makes the ``values`` and ``tokens`` (R, count) of ``count`` (1,)
    types, the most probable first, and ``end`` (R,), the log-probability of ``</s>``.
    """
    graph = Graph("fp32")
    logs = _predict(graph, layers, "probabilities")
    graph.input("groups", INDICES, [1])  # of former exports: whoever gives it may go on doing so
    count = graph.input("count", INDICES, [1])
    values, tokens = graph.ops("TopK", 2, logs, count)
    end = graph.op("Gather", logs, END, axis=1)
    graph.output("values", values)
    graph.output("tokens", tokens, INDICES)
    graph.output("end", end)
    return graph


def continuations(
    layers: Sequence[Map],
    precision: str,
    average: str,
    types: Indices,
    is_masked: bool = False,
) -> Graph:
    """Return the graph of the best continuations of each sentence, by output layers of ``types``.

    It reads each network's ``features`` (B, K, f_out), the hypotheses' ``scores`` (B, K), of each
    sentence ``limits`` (B,), the number of its row of ``penalties`` (3, S), how many
    ``candidates`` (1,) there are to be of a sentence, in how many ``groups`` (1,) of types, and, if
    ``is_masked``, ``mask`` (B, S), BARRED where a sentence may not use a type, else 0. It makes
    ``best``, ``parents`` and ``chosen`` (B, C), as in ``Candidates``.
    """
    graph = Graph(precision, "output.")
    op = graph.op
    missing = -len(types) % GROUP
    types = np.pad(types, (0, missing), constant_values=PADDING)  # (S,)
    scores = graph.input("scores", FLOATS, ["B", "K"])
    limits = graph.input("limits", INDICES, ["B"])
    stated = graph.input("penalties", FLOATS, [3, "S"])
    count = graph.input("candidates", INDICES, [1])
    group_count = graph.input("groups", INDICES, [1])
    hypotheses = op("Shape", scores)  # [B, K]
    shape = op("Concat", hypotheses, [len(types)], axis=0)
    if is_masked:
        mask = graph.input("mask", FLOATS, ["B", "S"])
        mask = op("Unsqueeze", mask, [1])  # (B, 1, S)
        logs = _predict(graph, layers, average, shape, mask)  # (B, K, S)
    else:
        logs = _predict(graph, layers, average)  # (R, S)
        logs = op("Reshape", logs, shape)
    losses = op("Gather", stated, limits)  # (B, S)
    losses = op("Unsqueeze", losses, [1])  # (B, 1, S)
    before = op("Unsqueeze", scores, [2])  # (B, K, 1)
    totals = logs - losses + before
    grouped = op("Reshape", totals, [0, -1, GROUP])  # (B, K * S / GROUP, GROUP)
    maxima = op("ReduceMax", grouped, [2], keepdims=0)
    _, groups = graph.ops("TopK", 2, maxima, group_count, sorted=0)
    places = op("Unsqueeze", groups, [2])  # (B, groups, 1)
    members = op("GatherND", grouped, places, batch_dims=1)  # (B, groups, GROUP)
    members = op("Reshape", members, [0, -1])
    best, index = graph.ops("TopK", 2, members, count)  # (B, C)
    rank = index / GROUP
    group = op("GatherElements", groups, rank, axis=1)
    place = group * GROUP + index % GROUP  # in (K, S)
    is_barred = best < BARRED / 2
    best = op("Where", is_barred, -np.inf, best)
    parents = place / len(types)
    chosen = op("Gather", types, place % len(types))
    graph.output("best", best)
    graph.output("parents", parents, INDICES)
    graph.output("chosen", chosen, INDICES)
    return graph


def search(
    precision: str,
    step: Graph,
    output: Graph,
    parts: Iterable[str],
    states: Iterable[str],
) -> Graph:
    """Return the graph of one sentence's whole search, of a decoder's step and ``continuations``.

    The graph reads what the encoder makes, ``penalties``, ``candidates`` and ``groups``, and

        scores (1, K), finished (1, 1), previous (1, K), rows (K,) and states: all ``.first``, as
            they are before the first step.
        maximum (): how many tokens there are at most, without ``</s>``, which alone may follow.
        minimum (): from how many on ``</s>`` may follow.
        hypotheses (1,): K.

    It makes the four parts of ``Candidates``, under names such as ``places of steps``: of each of T
    steps (T, 1, C), and places (T, 1, K).
    """
    graph = Graph(precision, "search.")
    for name in ("maximum", "minimum", "hypotheses", "candidates", "groups"):
        graph.input(name, INDICES)
    for name in ("penalties", "words", *parts):
        graph.input(name, FLOATS)
    body = Graph(precision, "body.")
    op = body.op
    position = body.value("position")
    has_room = position < body.value("maximum")
    may_not_end = op("Cast", position < body.value("minimum"), to=INDICES)  # FREE or NOT_THE_END
    limits = op("Where", has_room, may_not_end, THE_END_ALONE)
    body.call("limits", op("Unsqueeze", limits, [0]))
    body.join(step)
    body.join(output)
    goes_on, handed = _next_step(body, has_room)
    for state in states:
        handed[state] = (body.value(f"{state}.next"), FLOATS)
    results = {
        "scores of steps": (body.value("best"), FLOATS),
        "parents of steps": (body.value("parents"), INDICES),
        "tokens of steps": (body.value("chosen"), INDICES),
        "places of steps": (body.value("places"), INDICES),
    }
    graph.loop(body, goes_on, handed, results)
    return graph


def _next_step(body: Graph, has_room: Value) -> tuple[Value, dict[str, tuple[Value, int]]]:
    """Say whether the search goes on, and with what, after a step that had room for a token."""
    op = body.op
    best = body.value("best")  # (1, C)
    parents = body.value("parents")
    chosen = body.value("chosen")
    hypotheses = body.value("hypotheses")
    ended = op("Equal", chosen, END)
    # The first K that do not end go on: among equals TopK takes the first. Each hypothesis can end
    # in one way, so that K of 2K candidates do not.
    order = op("Cast", ended, to=INDICES)  # 1 where one ends, else 0
    _, going = body.ops("TopK", 2, order, hypotheses, largest=0)  # (1, K)
    scores = op("GatherElements", best, going, axis=1)
    previous = op("GatherElements", chosen, going, axis=1)
    rows = op("GatherElements", parents, going, axis=1)
    rows = op("Squeeze", rows, [0])  # (K,)
    # An output is finished by an end that is one of the K best candidates.
    is_possible = op("Greater", best, -np.inf)
    finished = op("Slice", ended & is_possible, [0], hypotheses, [1])  # (1, K)
    finished = op("Cast", finished, to=INDICES)
    count = body.value("finished") + op("ReduceSum", finished)  # (1, 1)
    has_few = count < hypotheses
    goes_on = op("Squeeze", has_few & has_room)
    handed: dict[str, tuple[Value, int]] = {
        "scores": (scores, FLOATS),
        "finished": (count, INDICES),
        "previous": (previous, INDICES),
        "rows": (rows, INDICES),
    }
    return goes_on, handed
