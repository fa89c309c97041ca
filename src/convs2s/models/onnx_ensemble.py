"""ConvS2S networks on a CPU, in fp32 or int8, by ONNX Runtime: without torch.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, S target types.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import onnxruntime

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models.onnx_graphs import (
    GROUP,
    SQRT_HALF,
    Array,
    Graph,
    NetworkWeights,
    graphs_of,
    padded_output,
)
from convs2s.models.steps import Candidates, Limits, Numbers, Shortlisted

VECTOR, VECTORS = 16, 64
"""Numbers of fp32 that a softmax adds up at a time: the widest vector's, and those of several once
a row has as many. The source is padded to whole ones, or a row with more padding would be added up
in another order: no sentence's rounding may depend on the others of its batch."""

RESULTS = ("values", "tokens", "end", "places")
"""Outputs of a step, before the states."""

BARRED = 3  # Types that a step may have to leave out: <pad>, <unk> and </s>


class OnnxEnsemble:
    """Networks over the same vocabularies; a single one is the common case."""

    attends = True

    def __init__(self, networks: Sequence[NetworkWeights], precision: str, average: str) -> None:
        """Make sessions of the networks' weights, which are used up."""
        self.precision = precision
        self._architectures = [network.architecture for network in networks]
        self._graphs = graphs_of(networks, precision, average)
        types = networks[0].types[1]
        self._types = np.pad(np.arange(types), (0, -types % GROUP))
        self._encoder, self._decoder = map(_session, self._graphs[:2])

    @cached_property
    def _shortlisted(self) -> onnxruntime.InferenceSession:
        return _session(self._graphs.shortlisted)

    def positions(self, side: str) -> int | None:
        """Return the most tokens of a side, ``</s>`` counted, that every network has room for."""
        limits = [getattr(one, f"{side}_positions") for one in self._architectures]
        return min((limit for limit in limits if limit is not None), default=None)

    def start_search(
        self, source: Indices, hypotheses: int, shortlist: Shortlisted | None
    ) -> "OnnxDecoder":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        length = source.shape[1]
        whole = VECTOR if length <= VECTORS else VECTORS
        source = np.pad(source, ((0, 0), (0, -length % whole)), constant_values=PADDING)
        is_token = (source != PADDING)[:, :, None]  # (B, m, 1)
        lengths = is_token.sum(1, keepdims=True, dtype=np.float32)  # (B, 1, 1)
        given = {
            "source": source,
            "positions": np.arange(source.shape[1]),
            "present": is_token.astype(np.float32),
            "bias": np.where(is_token, np.float32(0), -np.inf),
            "scale": np.sqrt(lengths) * np.float32(SQRT_HALF),
        }
        sources = dict(
            zip(self._graphs.sources, self._encoder.run(self._graphs.sources, given), strict=True)
        )
        words = np.where((source == PADDING) | (source == END), -np.inf, np.float32(0))
        inputs = sources | {"words": words[:, None]}
        states = self._graphs.states
        if shortlist is None:
            return OnnxDecoder(self._decoder, inputs, {}, states, hypotheses, self._types)
        missing = -len(shortlist.types) % GROUP
        mask = np.pad(shortlist.mask, ((0, 0), (0, missing)), constant_values=True)
        inputs["mask"] = np.where(mask, -np.inf, np.float32(0))[:, None]
        fixed: dict[str, Array] = {}
        for number, (weight, bias) in enumerate(self._graphs.outputs):
            weight, bias = padded_output(weight[shortlist.types], bias[shortlist.types])
            fixed[f"network{number}.output.weight"] = weight.T
            fixed[f"network{number}.output.bias"] = bias
        return OnnxDecoder(self._shortlisted, inputs, fixed, states, hypotheses, np.pad(shortlist.types, (0, missing)))


def _session(graph: Graph) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # batches have threads
    options.log_severity_level = 3  # errors alone
    # Where products of signed bytes would overflow, as of CPUs without VNNI, unsigned ones.
    options.add_session_config_entry("session.x64quantprecision", "1")
    values = map(onnxruntime.OrtValue.ortvalue_from_numpy, graph.constants.values())
    options.add_external_initializers(list(graph.constants), list(values))
    model = graph.model.SerializeToString()
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


class OnnxDecoder:
    """The incremental state of decoding one batch."""

    keeps_all = False

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        sources: dict[str, Array],
        fixed: dict[str, Array],
        states: dict[str, int],
        hypotheses: int,
        types: Indices,
    ) -> None:
        """Take the inputs that have a row for each sentence, and those that stay as they are.

        ``types`` (S,) are those to choose from.
        """
        self._sources, self._types, self._hypotheses = sources, types, hypotheses
        self._position = 0
        self._session, self._binding = session, session.io_binding()
        rows = len(sources["words"]) * hypotheses
        self._rows = np.arange(rows)
        self._states = list(states)
        zeros = {name: np.zeros((rows, width), np.float32) for name, width in states.items()}
        self._bind(zeros | fixed | sources)
        self._outputs = [*RESULTS, *(f"{name}.next" for name in states)]

    def _bind(self, arrays: Mapping[str, Array]) -> None:
        for name, array in arrays.items():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(np.array(array, order="C", copy=None))
            self._binding.bind_ortvalue_input(name, value)

    def best(self, previous: Indices, scores: Numbers, count: int, limits: Limits) -> Candidates:
        """Return at most ``count`` of each sentence's best continuations.

        ``previous`` and ``scores`` (B, K) are each hypothesis's last token and log-likelihood.
        """
        batch, beam = previous.shape
        groups = min(count + BARRED, -(-len(self._types) // GROUP))
        step = {
            "previous": previous.reshape(-1),
            "position": np.array(self._position),
            "grouped": np.array([batch, beam, -1]),
            "groups": np.array([groups]),
            "count": np.array([min(count + BARRED, groups * GROUP)]),
            "rows": self._rows,
        }
        self._bind(step)
        for name in self._outputs:  # anew: the last step's are the states
            self._binding.bind_output(name)
        self._session.run_with_iobinding(self._binding)
        found = self._binding.get_outputs()
        values, tokens, end, places = (one.numpy() for one in found[: len(RESULTS)])
        for name, value in zip(self._states, found[len(RESULTS) :], strict=True):
            self._binding.bind_ortvalue_input(name, value)
        self._position += 1
        self._rows = np.arange(batch * beam)
        values, tokens = values.reshape(batch, beam, -1), tokens.reshape(batch, beam, -1)
        _limit(values, tokens, end.reshape(batch, beam), limits)
        totals = (values + scores[:, :, None]).reshape(batch, -1)
        order = np.argsort(-totals, axis=1, kind="stable")[:, :count]
        sentences = np.arange(batch)[:, None]
        chosen = tokens.reshape(batch, -1)[sentences, order]
        parents = order // values.shape[2]
        return Candidates(totals[sentences, order], parents, self._types[chosen], places)

    def select(self, rows: Indices) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._rows = rows

    def keep(self, sentences: Indices) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        self._rows = self._rows.reshape(-1, self._hypotheses)[sentences].reshape(-1)
        self._sources = {name: one[sentences] for name, one in self._sources.items()}
        self._bind(self._sources)

    def release(self) -> None:
        """Give up what others can use, which is nothing."""


def _limit(values: Numbers, tokens: Indices, end: Numbers, limits: Limits) -> None:
    """Bar from log-probabilities (B, K, C) of tokens what may not come; ``end`` (B, K) is </s>'s.

    The special tokens stand at their own indices among the types of a shortlist as well.
    """
    values[tokens == PADDING] = -np.inf
    if limits.unknown_penalty:
        values[tokens == UNKNOWN] -= limits.unknown_penalty
    if not limits.may_end:
        values[(tokens == END) & ~limits.must_end[:, None, None]] = -np.inf
    if limits.must_end.any():
        values[limits.must_end], tokens[limits.must_end] = -np.inf, END
        values[limits.must_end, :, 0] = end[limits.must_end]

