"""Decode with ConvS2S networks on a CPU, in fp32 or int8, with ONNX Runtime and without torch.

Shapes: B sentences, K hypotheses of each, R = B * K rows, m source length, C candidates of each
sentence, S target types, T steps, f_out input width of an output layer.
"""

from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.onnx_builder import AnyArray, InferenceSession, RunOptions
from convs2s.models.onnx_graphs import Weights, decoder, encoder
from convs2s.models.onnx_search import (
    FREE,
    GROUP,
    MASKED_LOGIT,
    NOT_THE_END,
    THE_END_ALONE,
    continuations,
    search,
    search_inputs,
)
from convs2s.models.steps import (
    VECTOR,
    Candidates,
    Limits,
    Numbers,
    Shortlisted,
    least_positions,
)

VECTORS = 64
"""Number of fp32 values that a softmax adds at a time if a row has at least this many.

Sources that are longer than this are padded to a multiple of this length. The reason is the same as
for shorter sources, which are padded to a multiple of ``VECTOR``.
"""

PART_NUMBERS = 1 << 19
"""Maximum number of log-probabilities that the output layers compute in one call (2 MB of fp32).

More would not stay in a cache. A batch is computed in parts of at most this size.
"""

PART_ROWS = 32
"""Minimum number of rows of a part, which may then have more numbers than ``PART_NUMBERS``.

A matrix product reads all weights for each part, however small the part is.
"""


class OnnxEnsemble:
    """An ensemble of ConvS2S networks with the same vocabularies, often a single network."""

    attends = True

    def __init__(
        self,
        networks: Sequence[Weights],
        precision: str,
        average: str,
    ) -> None:
        """Build the graphs of the networks. This takes all weights out of ``networks``.

        Raises:
            ValueError: the weights are not those of their architecture.
        """
        self.precision = precision
        self._average = average
        self._architectures = [network.architecture for network in networks]
        encoder_graph, parts = encoder(networks, precision)
        step, self.states = decoder(networks, precision, parts)
        self._encoder_outputs = ["words", *parts]
        self._output_layers = [network.output() for network in networks]
        self.types = np.arange(networks[0].types["target"])
        output = continuations(self._output_layers, precision, average, self.types)
        self._graphs = {
            "encoder": encoder_graph,
            "decoder": step,
            "output": output,
            "search": search(precision, step, output, parts, self.states),
        }
        self._sessions: dict[str, InferenceSession] = {}
        self._lock = Lock()

    def session(self, name: str) -> InferenceSession:
        """Return the session that runs a graph: encoder, decoder, output or search.

        It is made at its first use. Threads may call this at the same time.
        """
        with self._lock:
            if name not in self._sessions:
                graph = self._graphs[name]
                self._sessions[name] = graph.session()
            return self._sessions[name]

    def positions(self, side: str) -> int | None:
        """Return the maximum number of tokens of a side, including ``</s>``; None means no limit.

        ``side`` is ``source`` or ``target``.
        """
        return least_positions(
            architecture.positions.rows(side) for architecture in self._architectures
        )

    def start(
        self,
        source: Indices,
        hypotheses: int,
        shortlist: Shortlisted | None,
    ) -> "OnnxDecoder":
        """Encode padded source indices (B, m); return a decoder for K hypotheses of each sentence.

        ``shortlist`` restricts the target types; None allows all.
        """
        types = self.types
        mask = None
        if shortlist is None:
            output = self.session("output")
        else:
            types = shortlist.types
            layers = []
            for layer in self._output_layers:
                weight = layer.weight[types]
                layers.append(layer._replace(weight=weight, bias=layer.bias[types]))
            graph = continuations(
                layers, self.precision, self._average, types, is_masked=True
            )
            output = graph.session()
            # The graph fills up the last group of types. So add a column for each of these types.
            missing = -len(types) % GROUP
            filled = np.pad(shortlist.mask, ((0, 0), (0, missing)))  # (B, S)
            mask = np.where(filled, np.float32(MASKED_LOGIT), np.float32(0))
            mask = mask[:, None]  # (B, 1, S)
        parts = self._encode(source)
        return OnnxDecoder(self, parts, hypotheses, output, len(types), mask)

    def search_alone(
        self,
        source: Indices,
        hypotheses: int,
        minimum: int,
        maximum: int,
        unknown_penalty: float,
        run_options: RunOptions,
    ) -> Iterator[tuple[list[float], list[int], list[int], list[int]]]:
        """Search for the best outputs of one source (1, m), in one call of ONNX Runtime.

        Outputs have ``minimum`` to ``maximum`` tokens without ``</s>``. Return the fields of
        ``Candidates`` for each step, as lists: scores, parents and tokens (C), and places (K).
        Another thread may end the call through ``run_options``.
        """
        # Before the first step all hypotheses are empty. Only the first one may be continued, or
        # all K outputs would be the same.
        scores = np.full((1, hypotheses), -np.inf, np.float32)
        scores[0, 0] = 0.0
        given = self._encode(source)
        # At most K of the 2K candidates end, so at least K are left to go on.
        candidates = 2 * hypotheses
        given |= search_inputs(len(self.types), hypotheses, candidates, unknown_penalty)
        given["hypotheses"] = np.array([hypotheses])
        # (maximum + 1,), the row of the penalties for each step.
        limits = np.full(maximum + 1, FREE)
        limits[:minimum] = NOT_THE_END
        # This comes last: for a short source, the maximum may be below the minimum.
        limits[maximum] = THE_END_ALONE
        given["limits of steps"] = limits
        given["steps"] = np.array(len(limits))
        given["scores.first"] = scores
        given["finished.first"] = np.zeros((1, 1), np.int64)
        given["previous.first"] = np.full((1, hypotheses), END)
        given["rows.first"] = np.arange(hypotheses)
        for state, zeros in self.first_states(hypotheses).items():
            given[f"{state}.first"] = zeros
        names = [f"{name} of steps" for name in Candidates._fields]
        # ``fields`` are scores, parents and tokens (T, 1, C), and places (T, 1, K).
        fields = self.session("search").run(names, given, run_options)
        lists = [field[:, 0].tolist() for field in fields]
        return zip(*lists, strict=True)

    def first_states(self, rows: int) -> dict[str, AnyArray]:
        """Return the state (rows, width) of each network before the first step, by its name."""
        return {name: np.tile(row, (rows, 1)) for name, row in self.states.items()}

    def _encode(self, source: Indices) -> dict[str, AnyArray]:
        """Encode padded source indices (B, m); return the outputs of the encoder's graph."""
        length = source.shape[1]
        multiple = VECTOR if length <= VECTORS else VECTORS
        missing = -length % multiple
        padded = np.pad(source, ((0, 0), (0, missing)), constant_values=PADDING)
        encoded = self.session("encoder").run(self._encoder_outputs, {"source": padded})
        return dict(zip(self._encoder_outputs, encoded, strict=True))


class OnnxDecoder:
    """The incremental state of decoding one batch."""

    keeps_all = False  # ``keep`` may drop sentences

    def __init__(
        self,
        ensemble: OnnxEnsemble,
        parts: dict[str, AnyArray],
        hypotheses: int,
        output: InferenceSession,
        types: int,
        mask: Numbers | None,
    ) -> None:
        """Begin before the first step of B sentences.

        ``parts`` are the outputs of the encoder's graph, ``hypotheses`` is K. ``output`` is the
        session of a ``continuations`` graph, and ``types`` is the number of its target types.
        ``mask`` is an input of that graph; None allows all types.
        """
        rows = len(parts["words"]) * hypotheses  # R
        self._decoder = ensemble.session("decoder")
        self._output = output
        self._parts = parts
        self._hypotheses = hypotheses
        self._types = types
        self._mask = mask
        self._position = 0
        # The row of the states that each hypothesis continues.
        self._rows = np.arange(rows)
        self._states = ensemble.first_states(rows)

    def best(
        self,
        previous: Indices,
        scores: Numbers,
        count: int,
        limits: Limits,
    ) -> Candidates:
        """Predict, and return the most probable continuations of each sentence's hypotheses.

        ``previous`` and ``scores`` (B, K) are the last token and the log-likelihood of each
        hypothesis. ``count`` is the number of continuations of each sentence.
        """
        batch, hypotheses = previous.shape
        # ``given`` are the graph's inputs that have a row for each sentence. Each call of the graph
        # gets some of these rows.
        places, given = self._read(previous)
        given["scores"] = scores
        if self._mask is not None:
            given["mask"] = self._mask
        inputs = search_inputs(self._types, hypotheses, count, limits.unknown_penalty)
        limit = FREE if limits.may_end else NOT_THE_END
        if limits.must_end.any():
            given["limits"] = np.where(limits.must_end, THE_END_ALONE, limit)
        else:
            # One row of penalties for all sentences takes less time than a copy for each.
            inputs["limits"] = np.array([limit])
        part_rows = max(PART_ROWS, PART_NUMBERS // self._types)
        part_sentences = max(1, part_rows // hypotheses)
        results = []
        for start in range(0, batch, part_sentences):
            part = slice(start, start + part_sentences)
            for name, array in given.items():
                inputs[name] = array[part]
            results.append(self._output.run(["best", "parents", "chosen"], inputs))
        joined = [np.concatenate(arrays) for arrays in zip(*results, strict=True)]
        best, parents, chosen = joined
        return Candidates(best, parents, chosen, places)

    def _read(self, previous: Indices) -> tuple[Indices, dict[str, AnyArray]]:
        """Run the decoder's step on the last tokens (B, K).

        Return the source position with the highest attention for each hypothesis (B, K), and the
        input of each network's output layer (B, K, f_out), by its name. This updates the states and
        advances the position.
        """
        given = {
            "previous": previous,
            "position": np.array(self._position),
            "rows": self._rows,
            **self._parts,
            **self._states,
        }
        outputs = ["places"]
        for number, name in enumerate(self._states):
            outputs += [f"{number}.features", f"{name}.next"]
        arrays = self._decoder.run(outputs, given)
        results = dict(zip(outputs, arrays, strict=True))
        features = {}
        for number, name in enumerate(self._states):
            self._states[name] = results[f"{name}.next"]
            x = results[f"{number}.features"]  # (R, f_out)
            features[f"{number}.features"] = x.reshape(*previous.shape, -1)
        self._position += 1
        self._rows = np.arange(previous.size)  # each hypothesis continues its own row
        return results["places"], features

    def select(self, rows: Indices) -> None:
        """Continue from other hypotheses in the next step.

        ``rows`` (R,) are indices of the R hypotheses, which are numbered sentence by sentence.
        """
        self._rows = rows

    def keep(self, sentences: Indices) -> None:
        """Drop all sentences but these; ``sentences`` are indices of the B sentences."""
        by_sentence = self._rows.reshape(-1, self._hypotheses)  # (B, K)
        self._rows = by_sentence[sentences].reshape(-1)
        self._parts = {name: part[sentences] for name, part in self._parts.items()}
        if self._mask is not None:
            self._mask = self._mask[sentences]

    def release(self) -> None:
        """Do nothing: this decoder holds nothing that another search can use."""
