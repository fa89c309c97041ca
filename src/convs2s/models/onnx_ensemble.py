"""ConvS2S networks on a CPU, in fp32 or int8, by ONNX Runtime: without torch.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, S target types.
"""

from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models import onnx_graphs as graphs
from convs2s.models.onnx_graphs import BARRED, GROUP, AnyArray, InferenceSession, Weights
from convs2s.models.steps import Candidates, Limits, Numbers, Shortlisted

VECTOR, VECTORS = 16, 64
"""Numbers of fp32 that a softmax adds up at a time: the widest vector's, and those of several once
a row has as many. The source is padded to whole ones, or a row with more padding would be added up
in another order: no sentence's rounding may depend on the others of its batch."""

SPECIAL = 3  # Types that a step may have to leave out: <pad>, <unk> and </s>

PART_NUMBERS, PART_ROWS = 1 << 19, 32
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
        self.precision, self._average = precision, average
        self._architectures = [network.architecture for network in networks]
        encoder, parts = graphs.encoder(networks, precision)
        decoder, self.states = graphs.decoder(networks, precision, parts)
        self._layers = [network.output() for network in networks]
        self._parts = ["words", *parts]
        self.types = np.arange(networks[0].types["target"])  # (S,)
        output = graphs.output(self._layers, precision, average, False)
        search = graphs.search(decoder, self._layers, precision, average, parts, self.states)
        self._graphs = {"encoder": encoder, "decoder": decoder, "output": output, "search": search}
        self._sessions, self._lock = dict[str, InferenceSession](), Lock()

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
        layers = [(weight[shortlist.types], bias[shortlist.types]) for weight, bias in self._layers]
        output = graphs.output(layers, self.precision, self._average, True).session()
        mask = np.pad(shortlist.mask, ((0, 0), (0, -len(shortlist.types) % GROUP)))
        masked = np.where(mask, np.float32(BARRED), np.float32(0))
        return OnnxDecoder(self, parts, hypotheses, output, shortlist.types, masked)

    def search_alone(
        self, source: Indices, hypotheses: int, minimum: int, maximum: int, unknown_penalty: float
    ) -> Iterator[tuple[list[float], list[int], list[int], list[int]]]:
        """Search for one source (1, m) in one call; return each step's ``Candidates``, as lists.

        Outputs have ``minimum`` to ``maximum`` tokens without ``</s>``.
        """
        types = len(self.types)
        groups = -(-types // GROUP)
        penalties = np.zeros((2, groups * GROUP), np.float32)
        penalties[:, PADDING] = penalties[:, types:] = penalties[1, END] = np.inf
        penalties[:, UNKNOWN] = unknown_penalty
        given = self._encode(source) | {
            "minimum": np.array(minimum),
            "maximum": np.array(maximum),
            "hypotheses": np.array([hypotheses]),
            "candidates": np.array([2 * hypotheses]),
            "groups": np.array([min(2, groups) * hypotheses]),
            "penalties": penalties,
            # All hypotheses are the same one: only the first may go on.
            "scores.first": np.array([[0.0, *[-np.inf] * (hypotheses - 1)]], np.float32),
            "finished.first": np.zeros(1, np.int64),
            "previous.first": np.full((1, hypotheses), END),
            "rows.first": np.arange(hypotheses),
        }
        for state, width in self.states.items():
            given[f"{state}.first"] = np.zeros((hypotheses, width), np.float32)
        results = ["best", "parents", "chosen", "at", "ends"]
        best, parents, chosen, at, ends = self.session("search").run(results, given)
        steps = [one.tolist() for one in (best, parents, chosen, at[:, 0])]
        if len(best) > maximum:
            order = np.argsort(-ends[-1, 0], kind="stable")
            last = ends[-1, 0, order].tolist(), order.tolist(), [END] * hypotheses
            for step, forced in zip(steps, last, strict=False):
                step[-1] = forced
        return zip(*steps, strict=True)

    def _encode(self, source: Indices) -> dict[str, AnyArray]:
        """Return what the encoder makes of padded source indices (B, m)."""
        length = source.shape[1]
        whole = VECTOR if length <= VECTORS else VECTORS
        source = np.pad(source, ((0, 0), (0, -length % whole)), constant_values=PADDING)
        encoded = self.session("encoder").run(self._parts, {"source": source})
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
        self._types, self._mask, self._hypotheses = types, mask, hypotheses
        self._decoder, self._output, self._position = ensemble.session("decoder"), output, 0
        rows = len(parts["words"]) * hypotheses
        self._rows, self._parts = np.arange(rows), parts
        widths = ensemble.states.items()
        self._states = {name: np.zeros((rows, width), np.float32) for name, width in widths}
        self._features = [f"{number}.features" for number in range(len(widths))]

    def best(self, previous: Indices, scores: Numbers, count: int, limits: Limits) -> Candidates:
        """Predict, and return the most probable continuations of each sentence's hypotheses.

        ``previous`` and ``scores`` (B, K): each hypothesis's last token and log-probability.
        """
        batch, width = previous.shape
        places, *features = self._read(previous)
        values, tokens, end = self._predict(features, width, count + SPECIAL)
        values, tokens = values.reshape(batch, width, -1), tokens.reshape(batch, width, -1)
        _limit(values, tokens, end.reshape(batch, width), limits)
        totals = (values + scores[:, :, None]).reshape(batch, -1)
        order = np.argsort(-totals, axis=1, kind="stable")[:, :count]
        sentences = np.arange(batch)[:, None]
        chosen = self._types[tokens.reshape(batch, -1)[sentences, order]]
        return Candidates(totals[sentences, order], order // values.shape[2], chosen, places)

    def _read(self, previous: Indices) -> list[AnyArray]:
        """Return the places (B, K) with the most attention, and what enters each output layer."""
        step = {"previous": previous, "position": np.array(self._position), "rows": self._rows}
        names = ["places", *self._features, *(f"{state}.next" for state in self._states)]
        found = self._decoder.run(names, step | self._parts | self._states)
        count = 1 + len(self._features)
        self._states = dict(zip(self._states, found[count:], strict=True))
        self._position += 1
        self._rows = np.arange(previous.size)
        return list(found[:count])

    def _predict(self, features: Sequence[AnyArray], width: int, count: int) -> list[AnyArray]:
        """Return log-probabilities and types (R, count), and </s>'s log-probability (R,).

        It goes through the batch in parts that stay in the cache.
        """
        groups = min(count, -(-len(self._types) // GROUP))
        given: dict[str, AnyArray] = {"groups": np.array([groups])}
        given["count"] = np.array([min(count, groups * GROUP, len(self._types))])
        sentences = max(1, max(PART_ROWS, PART_NUMBERS // len(self._types)) // width)
        parts = list[list[AnyArray]]()
        for start in range(0, len(features[0]), sentences * width):
            rows = slice(start, start + sentences * width)
            if self._mask is not None:
                own = self._mask[start // width : start // width + sentences]
                given["mask"] = np.repeat(own, width, 0)
            given |= {name: x[rows] for name, x in zip(self._features, features, strict=True)}
            parts.append(self._output.run(["values", "tokens", "end"], given))
        if len(parts) == 1:
            return parts[0]
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def select(self, rows: Indices) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._rows = rows

    def keep(self, sentences: Indices) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        self._rows = self._rows.reshape(-1, self._hypotheses)[sentences].reshape(-1)
        self._parts = {name: one[sentences] for name, one in self._parts.items()}
        self._mask = None if self._mask is None else self._mask[sentences]

    def release(self) -> None:
        """Give up what others can use, which is nothing."""


def _limit(values: Numbers, tokens: Indices, end: Numbers, limits: Limits) -> None:
    """Bar from log-probabilities (B, K, C) of tokens what may not come; ``end`` (B, K) is </s>'s.

    The special tokens stand at their own indices among the types of a shortlist as well.
    """
    values[(tokens == PADDING) | (values < BARRED / 2)] = -np.inf
    if limits.unknown_penalty:
        values[tokens == UNKNOWN] -= limits.unknown_penalty
    if not limits.may_end:
        values[(tokens == END) & ~limits.must_end[:, None, None]] = -np.inf
    if limits.must_end.any():
        values[limits.must_end], tokens[limits.must_end] = -np.inf, END
        values[limits.must_end, :, 0] = end[limits.must_end]
