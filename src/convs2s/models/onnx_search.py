"""The whole search of one sentence as one graph of ONNX: decoder steps, output layers, hypotheses.

Step by step a third of the time is Python and the passing of arrays.

Shapes: K hypotheses, m source length, S target types in whole groups of ``GROUP``, T steps.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from convs2s.data.vocabulary import END
from convs2s.models.onnx_builder import FLOATS, INDICES, TRUTHS, Graph, Value
from convs2s.models.onnx_graphs import GROUP, OutputWeights, predict


class _Handed(NamedTuple):
    """What a step hands on to the next one."""

    name: str
    kind: int
    shape: tuple[int | str, ...]
    later: str  # name of what the step makes of it


def search(
    step: Graph,
    layers: Sequence[OutputWeights],
    precision: str,
    average: str,
    parts: Mapping[str, int],
    states: Mapping[str, int],
) -> Graph:
    """Return the graph of one sentence's whole search, of a decoder's step and output layers.

    The graph reads what the encoder makes and

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
    graph = Graph(precision, "search.")
    body = Graph(precision, "body.")
    body.join(step)
    body.input("position", INDICES)
    body.input("goes_on", TRUTHS)
    logs = predict(body, layers, average, False)  # (K, S)
    ends = body.op("Gather", logs, body.index(END), axis=1)  # (K,)
    ends = body.op("Unsqueeze", ends, body.integers(0)) + body.value("scores")  # (1, K)
    best, parents, chosen = _continuations(body, logs)
    handed = _next_step(body, best, parents, chosen)
    for state, width in states.items():
        handed.append(_Handed(state, FLOATS, ("K", width), f"{state}.next"))
    starts = []
    for name, kind, shape, later in handed:
        body.input(name, kind, *shape)
        body.result(later, kind)
        starts.append(graph.input(f"{name}.first", kind, *shape))
    results = {
        "best": (best.name, FLOATS),
        "parents": (parents.name, INDICES),
        "chosen": (chosen.name, INDICES),
        "at": ("places", INDICES),
        "ends": (ends.name, FLOATS),
    }
    for name, kind in results.values():
        body.result(name, kind)
    _add_inputs(graph, parts)
    kinds = {name: kind for name, (_, kind) in results.items()}
    graph.loop(body, starts, kinds)
    return graph


def _add_inputs(graph: Graph, parts: Mapping[str, int]) -> None:
    """Add what stays the same in all steps: limits, penalties, and the encoded source."""
    for name in ("maximum", "minimum"):
        graph.input(name, INDICES)
    for name in ("hypotheses", "candidates", "groups"):
        graph.input(name, INDICES, 1)
    graph.input("penalties", FLOATS, 2, "S")
    graph.input("words", FLOATS, 1, 1, "m")
    for name, width in parts.items():
        graph.input(name, FLOATS, 1, "m", width)


def _continuations(body: Graph, logs: Value) -> tuple[Value, Value, Value]:
    """Return scores, parents and types of the best continuations, by log-probabilities (K, S)."""
    op = body.op
    flat = body.integers(-1)
    size = body.integers(GROUP)
    is_early = body.value("position") < body.value("minimum")
    row = op("Cast", is_early, to=INDICES)  # 1 where </s> may not follow yet
    penalties = op("Gather", body.value("penalties"), row)  # (S,)
    totals = logs - penalties
    totals = totals + op("Transpose", body.value("scores"), perm=[1, 0])  # (K, S)
    grouped = op("Reshape", totals, body.integers(-1, GROUP))  # (K * S / GROUP, GROUP)
    maxima = op("ReduceMax", grouped, body.integers(1), keepdims=0)
    _, groups = body.ops("TopK", 2, maxima, body.value("groups"), sorted=0)
    members = op("Reshape", op("Gather", grouped, groups), flat)  # (groups * GROUP,)
    best, index = body.ops("TopK", 2, members, body.value("candidates"))
    group = op("Gather", groups, index / size)
    place = group * size + index % size  # in (K, S)
    types = op("Shape", logs, start=1)  # (1,): S
    parents = place / types
    chosen = place % types
    return best, parents, chosen


def _next_step(body: Graph, best: Value, parents: Value, chosen: Value) -> list[_Handed]:
    """Say whether the search goes on; return what it hands on."""
    op = body.op
    zero = body.integers(0)
    one_row = body.integers(1, -1)
    hypotheses = body.value("hypotheses")
    ended = op("Equal", chosen, body.index(END))  # (candidates,)
    # The first K that do not end go on: among equals TopK takes the first. Each hypothesis can end
    # in one way, so that K of 2K candidates do not.
    order = op("Cast", ended, to=INDICES)  # 1 where one ends, else 0
    _, going = body.ops("TopK", 2, order, hypotheses, largest=0)  # (K,)
    scores = op("Reshape", op("Gather", best, going), one_row)
    # An output is finished by an end that is one of the K best candidates.
    is_possible = op("Greater", best, body.constant(-np.inf))
    finished = op("Slice", ended & is_possible, zero, hypotheses)  # (K,)
    count = op("ReduceSum", op("Cast", finished, to=INDICES))  # (1,)
    count = body.value("finished") + count
    has_few = count < hypotheses
    has_room = body.value("position") < body.value("maximum")
    goes_on = has_few & has_room
    body.result(op("Squeeze", goes_on).name, TRUTHS)
    previous = op("Reshape", op("Gather", chosen, going), one_row)
    rows = op("Gather", parents, going)
    return [
        _Handed("scores", FLOATS, (1, "K"), scores.name),
        _Handed("finished", INDICES, (1,), count.name),
        _Handed("previous", INDICES, (1, "K"), previous.name),
        _Handed("rows", INDICES, ("K",), rows.name),
    ]
