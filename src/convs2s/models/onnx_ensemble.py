"""ConvS2S networks on a CPU, in fp32 or int8, by ONNX Runtime: without torch.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, S target types.
"""

import math
from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models import onnx_graphs as graphs
from convs2s.models.onnx_builder import AnyArray, InferenceSession
from convs2s.models.onnx_graphs import BARRED, GROUP, Weights
from convs2s.models.onnx_search import search
from convs2s.models.steps import VECTOR, Candidates, Limits, Numbers, Shortlisted

VECTORS = 64
"""Numbers of fp32 that a softmax adds up at a time once a row has as many: several vectors, to
which a longer source is padded for the same reason as a short one to ``VECTOR``."""

SPECIAL = 3  # Types that a step may have to leave out: <pad>, <unk> and </s>

PART_NUMBERS = 1 << 19
PART_ROWS = 32
"""Predictions of a part of a batch: few enough numbers to stay in a cache (2 MB), but not of fewer
rows, as a matrix product reads all weights however few its rows are."""


class OnnxEnsemble:
    """Networks over the same vocabularies; a single one is the common case."""

    attends = True

    def __init__(self, networks: Sequence[Weights], precision: str, average: str) -> None:
        """Make graphs of the networks' weights, which are used up.

        Raises:
            ValueError: weights are not those of their architecture.
        """
        self.precision = precision
        self._average = average
        self._architectures = [network.architecture for network in networks]
        encoder, parts = graphs.encoder(networks, precision)
        decoder, self.states = graphs.decoder(networks, precision, parts)
        self._layers = [network.output() for network in networks]
        self._parts = ["words", *parts]
        self.types = np.arange(networks[0].types["target"])  # (S,)
        self._graphs = {
            "encoder": encoder,
            "decoder": decoder,
            "output": graphs.output(self._layers, precision, average, False),
            "search": search(decoder, self._layers, precision, average, parts, self.states),
        }
        self._sessions: dict[str, InferenceSession] = {}
        self._lock = Lock()

    def session(self, name: str) -> InferenceSession:
        """Return what runs a graph, made when it is first needed."""
        with self._lock:
            if name not in self._sessions:
                self._sessions[name] = self._graphs[name].session()
            return self._sessions[name]

    def positions(self, side: str) -> int | None:
        """Return the most tokens of a side, ``</s>`` counted, that every network has room for."""
        limits = [architecture.positions.rows(side) for architecture in self._architectures]
        return min((limit for limit in limits if limit is not None), default=None)

    def start_search(
        self, source: Indices, hypotheses: int, shortlist: Shortlisted | None
    ) -> "OnnxDecoder":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        parts = self._encode(source)
        if shortlist is None:
            return OnnxDecoder(self, parts, hypotheses, self.session("output"), self.types, None)
        layers = []
        for weight, bias in self._layers:
            layers.append((weight[shortlist.types], bias[shortlist.types]))
        output = graphs.output(layers, self.precision, self._average, True).session()
        missing = -len(shortlist.types) % GROUP
        mask = np.pad(shortlist.mask, ((0, 0), (0, missing)))  # (B, S in whole groups)
        barred = np.where(mask, np.float32(BARRED), np.float32(0))
        return OnnxDecoder(self, parts, hypotheses, output, shortlist.types, barred)

    def search_alone(
        self,
        source: Indices,
        hypotheses: int,
        minimum: int,
        maximum: int,
        unknown_penalty: float,
    ) -> Iterator[tuple[list[float], list[int], list[int], list[int]]]:
        """Search for one source (1, m) in one call; return each step's ``Candidates``, as lists.

        Outputs have ``minimum`` to ``maximum`` tokens without ``</s>``.
        """
        given = self._encode(source)
        given |= self._start_of_search(hypotheses, unknown_penalty)
        given["minimum"] = np.array(minimum)
        given["maximum"] = np.array(maximum)
        names = ["best", "parents", "chosen", "at", "ends"]
        best, parents, chosen, places, ends = self.session("search").run(names, given)
        scores_of_steps = best.tolist()
        parents_of_steps = parents.tolist()
        tokens_of_steps = chosen.tolist()
        if len(best) > maximum:
            # In the last step, after ``maximum`` tokens, nothing but </s> may follow.
            scores = ends[maximum, 0]  # (K,)
            order = np.argsort(-scores, kind="stable")
            scores_of_steps[maximum] = scores[order].tolist()
            parents_of_steps[maximum] = order.tolist()
            tokens_of_steps[maximum] = [END] * hypotheses
        return zip(
            scores_of_steps,
            parents_of_steps,
            tokens_of_steps,
            places[:, 0].tolist(),
            strict=True,
        )

    def _start_of_search(self, hypotheses: int, unknown_penalty: float) -> dict[str, AnyArray]:
        """Return what the graph of a whole search reads beside a sentence and its limits."""
        types = len(self.types)
        groups = math.ceil(types / GROUP)
        penalties = np.zeros((2, groups * GROUP), np.float32)
        penalties[:, PADDING] = np.inf
        penalties[:, types:] = np.inf  # what fills up the last group
        penalties[1, END] = np.inf
        penalties[:, UNKNOWN] = unknown_penalty
        # All hypotheses are the same one: only the first may go on.
        scores = np.full((1, hypotheses), -np.inf, np.float32)
        scores[0, 0] = 0.0
        given = {
            "hypotheses": np.array([hypotheses]),
            "candidates": np.array([2 * hypotheses]),
            "groups": np.array([min(2, groups) * hypotheses]),
            "penalties": penalties,
            "scores.first": scores,
            "finished.first": np.zeros(1, np.int64),
            "previous.first": np.full((1, hypotheses), END),
            "rows.first": np.arange(hypotheses),
        }
        for state, width in self.states.items():
            given[f"{state}.first"] = np.zeros((hypotheses, width), np.float32)
        return given

    def _encode(self, source: Indices) -> dict[str, AnyArray]:
        """Return what the encoder makes of padded source indices (B, m)."""
        length = source.shape[1]
        whole = VECTOR if length <= VECTORS else VECTORS
        padded = np.pad(source, ((0, 0), (0, -length % whole)), constant_values=PADDING)
        encoded = self.session("encoder").run(self._parts, {"source": padded})
        return dict(zip(self._parts, encoded, strict=True))


class OnnxDecoder:
    """The incremental state of decoding one batch."""

    keeps_all = False

    def __init__(
        self,
        ensemble: OnnxEnsemble,
        parts: dict[str, AnyArray],
        hypotheses: int,
        output: InferenceSession,
        types: Indices,
        mask: Numbers | None,
    ) -> None:
        """Take what the encoder made of B sentences, and the output layers of types (S,).

        ``mask`` (B, S) is BARRED where a sentence may not use a type, else 0; None: it may use all.
        """
        self._decoder = ensemble.session("decoder")
        self._output = output
        self._parts = parts
        self._hypotheses = hypotheses
        self._types = types
        self._mask = mask
        self._position = 0
        rows = len(parts["words"]) * hypotheses  # R
        self._rows = np.arange(rows)  # of the states that the next step goes on from
        self._states = {}
        for name, width in ensemble.states.items():
            self._states[name] = np.zeros((rows, width), np.float32)
        self._features = [f"{number}.features" for number in range(len(ensemble.states))]

    def best(self, previous: Indices, scores: Numbers, count: int, limits: Limits) -> Candidates:
        """Predict, and return the most probable continuations of each sentence's hypotheses.

        ``previous`` and ``scores`` (B, K): each hypothesis's last token and log-probability.
        """
        batch, hypotheses = previous.shape
        places, *features = self._read(previous)
        values, types, end = self._predict(features, hypotheses, count + SPECIAL)
        values = values.reshape(batch, hypotheses, -1)  # (B, K, C)
        types = types.reshape(batch, hypotheses, -1)
        _limit(values, types, end.reshape(batch, hypotheses), limits)
        totals = (values + scores[:, :, None]).reshape(batch, -1)  # (B, K * C)
        order = np.argsort(-totals, axis=1, kind="stable")[:, :count]
        chosen = np.take_along_axis(types.reshape(batch, -1), order, axis=1)
        return Candidates(
            scores=np.take_along_axis(totals, order, axis=1),
            parents=order // values.shape[2],
            tokens=self._types[chosen],
            places=places,
        )

    def _read(self, previous: Indices) -> list[AnyArray]:
        """Return the places (B, K) with the most attention, and what enters each output layer."""
        given = {
            "previous": previous,
            "position": np.array(self._position),
            "rows": self._rows,
            **self._parts,
            **self._states,
        }
        read = ["places", *self._features]
        states = [f"{name}.next" for name in self._states]
        found = self._decoder.run([*read, *states], given)
        self._states = dict(zip(self._states, found[len(read) :], strict=True))
        self._position += 1
        self._rows = np.arange(previous.size)
        return list(found[: len(read)])

    def _predict(self, features: Sequence[AnyArray], hypotheses: int, count: int) -> list[AnyArray]:
        """Return log-probabilities and types (R, count), and </s>'s log-probability (R,).

        It goes through the batch in parts that stay in the cache.
        """
        types = len(self._types)
        groups = min(count, math.ceil(types / GROUP))
        given: dict[str, AnyArray] = {
            "groups": np.array([groups]),
            "count": np.array([min(count, groups * GROUP, types)]),
        }
        most_rows = max(PART_ROWS, PART_NUMBERS // types)
        sentences = max(1, most_rows // hypotheses)  # of a part
        parts = []
        for start in range(0, len(features[0]) // hypotheses, sentences):
            part = slice(start, start + sentences)
            if self._mask is not None:
                given["mask"] = np.repeat(self._mask[part], hypotheses, axis=0)
            rows = slice(part.start * hypotheses, part.stop * hypotheses)
            for name, x in zip(self._features, features, strict=True):
                given[name] = x[rows]
            parts.append(self._output.run(["values", "tokens", "end"], given))
        if len(parts) == 1:
            return list(parts[0])
        return [np.concatenate(several) for several in zip(*parts, strict=True)]

    def select(self, rows: Indices) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._rows = rows

    def keep(self, sentences: Indices) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        by_sentence = self._rows.reshape(-1, self._hypotheses)  # (B, K)
        self._rows = by_sentence[sentences].reshape(-1)
        self._parts = {name: part[sentences] for name, part in self._parts.items()}
        if self._mask is not None:
            self._mask = self._mask[sentences]

    def release(self) -> None:
        """Give up what others can use, which is nothing."""


def _limit(values: Numbers, tokens: Indices, end: Numbers, limits: Limits) -> None:
    """Bar from log-probabilities (B, K, C) of tokens what may not come; ``end`` (B, K) is </s>'s.

    The special tokens stand at their own indices among the types of a shortlist as well.
    """
    is_barred = (tokens == PADDING) | (values < BARRED / 2)
    values[is_barred] = -np.inf
    if limits.unknown_penalty:
        values[tokens == UNKNOWN] -= limits.unknown_penalty
    must_end = limits.must_end
    if not limits.may_end:
        ends_early = (tokens == END) & ~must_end[:, None, None]
        values[ends_early] = -np.inf
    if must_end.any():
        values[must_end] = -np.inf
        tokens[must_end] = END
        values[must_end, :, 0] = end[must_end]
