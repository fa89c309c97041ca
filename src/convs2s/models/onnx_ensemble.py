"""ConvS2S networks on a CPU, in fp32 or int8, by ONNX Runtime: without torch.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, S target types.
"""

import math
from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.onnx_builder import AnyArray, InferenceSession
from convs2s.models.onnx_graphs import Weights, decoder, encoder
from convs2s.models.onnx_search import (
    BARRED,
    FREE,
    GROUP,
    NOT_THE_END,
    THE_END_ALONE,
    continuations,
    penalties,
    search,
)
from convs2s.models.steps import VECTOR, Candidates, Limits, Numbers, Shortlisted, least_positions

VECTORS = 64
"""Numbers of fp32 that a softmax adds up at a time once a row has as many: several vectors, to
which a longer source is padded for the same reason as a short one to ``VECTOR``."""

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
        encoding, parts = encoder(networks, precision)
        step, self.states = decoder(networks, precision, parts)
        self._parts = ["words", *parts]
        self._layers = [network.output() for network in networks]
        self.types = np.arange(networks[0].types["target"])
        output = continuations(self._layers, precision, average, self.types)
        self._graphs = {
            "encoder": encoding,
            "decoder": step,
            "output": output,
            "search": search(precision, step, output, parts, self.states),
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
        return least_positions(one.positions.rows(side) for one in self._architectures)

    def start_search(
        self, source: Indices, hypotheses: int, shortlist: Shortlisted | None
    ) -> "OnnxDecoder":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        parts = self._encode(source)
        if shortlist is None:
            return OnnxDecoder(self, parts, hypotheses, self.session("output"), len(self.types))
        types = shortlist.types
        layers = [(weight[types], bias[types]) for weight, bias in self._layers]
        output = continuations(layers, self.precision, self._average, types, True)
        missing = -len(types) % GROUP
        mask = np.pad(shortlist.mask, ((0, 0), (0, missing)))  # (B, S in whole groups)
        barred = np.where(mask, np.float32(BARRED), np.float32(0))
        return OnnxDecoder(self, parts, hypotheses, output.session(), len(types), barred)

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
        # All hypotheses are the same one: only the first may go on.
        scores = np.full((1, hypotheses), -np.inf, np.float32)
        scores[0, 0] = 0.0
        given = self._encode(source)
        given |= search_inputs(len(self.types), hypotheses, 2 * hypotheses, unknown_penalty)
        given["hypotheses"] = np.array([hypotheses])
        given["minimum"] = np.array(minimum)
        given["maximum"] = np.array(maximum)
        given["scores.first"] = scores
        given["finished.first"] = np.zeros((1, 1), np.int64)
        given["previous.first"] = np.full((1, hypotheses), END)
        given["rows.first"] = np.arange(hypotheses)
        for state, zeros in self.first_states(hypotheses).items():
            given[f"{state}.first"] = zeros
        names = [f"{name} of steps" for name in Candidates._fields]
        found = self.session("search").run(names, given)  # (T, 1, C) each, and (T, 1, K)
        lists = [steps[:, 0].tolist() for steps in found]
        return zip(*lists, strict=True)

    def first_states(self, rows: int) -> dict[str, AnyArray]:
        """Return the networks' states before the first step."""
        states = {}
        for name, width in self.states.items():
            states[name] = np.zeros((rows, width), np.float32)
        return states

    def _encode(self, source: Indices) -> dict[str, AnyArray]:
        """Return what the encoder makes of padded source indices (B, m)."""
        length = source.shape[1]
        whole = VECTOR if length <= VECTORS else VECTORS
        missing = -length % whole
        padded = np.pad(source, ((0, 0), (0, missing)), constant_values=PADDING)
        encoded = self.session("encoder").run(self._parts, {"source": padded})
        return dict(zip(self._parts, encoded, strict=True))


def search_inputs(
    types: int,
    hypotheses: int,
    candidates: int,
    unknown_penalty: float,
) -> dict[str, AnyArray]:
    """Return what the output layers of so many types read beside a step's results."""
    groups = math.ceil(types / GROUP)
    return {
        "penalties": penalties(groups * GROUP, unknown_penalty),
        "candidates": np.array([candidates]),
        "groups": np.array([min(candidates, hypotheses * groups)]),
    }


class OnnxDecoder:
    """The incremental state of decoding one batch."""

    keeps_all = False

    def __init__(
        self,
        ensemble: OnnxEnsemble,
        parts: dict[str, AnyArray],
        hypotheses: int,
        output: InferenceSession,
        types: int,
        mask: Numbers | None = None,
    ) -> None:
        """Take what the encoder made of B sentences, and the output layers of so many types.

        ``mask`` (B, S) is BARRED where a sentence may not use a type, else 0; None: it may use all.
        """
        rows = len(parts["words"]) * hypotheses  # R
        self._decoder = ensemble.session("decoder")
        self._output = output
        self._parts = parts
        self._hypotheses = hypotheses
        self._types = types
        self._mask = mask
        self._position = 0
        self._rows = np.arange(rows)  # of the states that the next step goes on from
        self._states = ensemble.first_states(rows)

    def best(
        self,
        previous: Indices,
        scores: Numbers,
        count: int,
        limits: Limits,
    ) -> Candidates:
        """Predict, and return the most probable continuations of each sentence's hypotheses.

        ``previous`` and ``scores`` (B, K): each hypothesis's last token and log-probability.
        """
        batch, hypotheses = previous.shape
        places, *features = self._read(previous)
        limit = FREE if limits.may_end else NOT_THE_END
        given: dict[str, AnyArray] = {
            "scores": scores,
            "limits": np.where(limits.must_end, THE_END_ALONE, limit),
        }
        if self._mask is not None:
            given["mask"] = self._mask
        for number, x in enumerate(features):
            given[f"{number}.features"] = x.reshape(batch, hypotheses, -1)
        alike = search_inputs(self._types, hypotheses, count, limits.unknown_penalty)
        most_rows = max(PART_ROWS, PART_NUMBERS // self._types)
        sentences = max(1, most_rows // hypotheses)  # of a part
        parts = []
        for start in range(0, batch, sentences):
            part = slice(start, start + sentences)
            for name, array in given.items():
                alike[name] = array[part]
            parts.append(self._output.run(["best", "parents", "chosen"], alike))
        best, parents, chosen = map(np.concatenate, zip(*parts, strict=True))
        return Candidates(best, parents, chosen, places)

    def _read(self, previous: Indices) -> list[AnyArray]:
        """Return the places (B, K) with the most attention, and what enters each output layer."""
        given = {
            "previous": previous,
            "position": np.array(self._position),
            "rows": self._rows,
            **self._parts,
            **self._states,
        }
        read = ["places"]
        read += [f"{number}.features" for number in range(len(self._states))]
        states = [f"{name}.next" for name in self._states]
        found = self._decoder.run([*read, *states], given)
        later = found[len(read) :]
        self._states = dict(zip(self._states, later, strict=True))
        self._position += 1
        self._rows = np.arange(previous.size)
        return list(found[: len(read)])

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
