"""Decoding in steps that are recorded once and replayed: a CUDA graph in place of many launches.

A step of a few hundred rows takes a GPU less time than a CPU takes to start its operations one by
one. A recording repeats them in the same memory and in the same shapes. So a decoder's state is
updated in place, sentences that are done stay in the batch, and batches are filled up to a few
sizes, so that a later one can use the recording. What changes with the length of the output (the
constraints on the next token) and the search itself are outside of the recording.

Shapes: B sentences, K hypotheses of each, m source length, S target types.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.ensemble import DecoderState, Ensemble
from convs2s.models.incremental import ConvS2SState, DecodingConvS2S
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.network import Network
from convs2s.models.steps import (
    VECTOR,
    Average,
    Candidates,
    Limits,
    Numbers,
    Precision,
    Shortlisted,
)

ROWS = 16  # sentences of a batch are filled up to a multiple of it

MOST_RECORDINGS = 8
"""Recordings kept, the last used: each holds its batch's state and the memory of a step."""

Predicted = tuple[Tensor, Tensor | None]  # log-probabilities (B, K, S) and attention (B, K, m)
Shape = tuple[int, int, int]  # sentences, source length in whole vectors, and hypotheses of each


class Recording:
    """A CUDA graph: a device's operations, which it can repeat in the same memory."""

    def __init__(self) -> None:
        self._graph = torch.cuda.CUDAGraph()

    def record(self, work: Callable[[], Predicted]) -> Predicted:
        """Capture ``work``, which the GPU does not run yet; return where its results will be."""
        # Other threads may go on using the GPU meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            return work()

    def replay(self) -> None:
        """Run the graph."""
        self._graph.replay()


class InPlaceConvS2SState(ConvS2SState):
    """A state of fixed shapes that is updated in place; the order of the rows is a tensor too.

    The attention of a step is as long as the source padded to whole vectors.
    """

    def __init__(self, decoding: DecodingConvS2S, source: Tensor, hypotheses: int) -> None:
        """Encode padded source indices (B, m), to decode K hypotheses of each."""
        encoded = decoding.encode(source)
        super().__init__(decoding, encoded, encoded.keys.shape[1], hypotheses)
        self._decoding = decoding

    def restart(self, source: Tensor) -> None:
        """Begin with another source, which has the shape of the first once both are padded."""
        for part, new in zip(self._encoded, self._decoding.encode(source), strict=True):
            part.copy_(new)
        self._windows.clear()
        torch.arange(len(self._rows), out=self._rows)

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        self._rows[: len(rows)].copy_(rows)


class RecordedEnsemble(Ensemble):
    """An ensemble whose searches replay recorded steps, where all its networks are ConvS2S."""

    def __init__(
        self,
        networks: Sequence[Network],
        average: Average = "probabilities",
        precision: Precision = "fp32",
        recording: Callable[[], Recording] = Recording,
    ) -> None:
        """Take networks for inference; ``recording`` makes an empty one."""
        super().__init__(networks, average, precision)
        self._convs2s = [one for one in self._inference if isinstance(one, DecodingConvS2S)]
        self._recording = recording
        self._idle: dict[Shape, RecordedDecoder] = {}  # the last used at the end

    @torch.inference_mode()
    def start_search(
        self, source: Indices, hypotheses: int, shortlist: Shortlisted | None
    ) -> DecoderState:
        """Encode the source; with a shortlist, which belongs to its batch, nothing is recorded."""
        if shortlist is not None or len(self._convs2s) < len(self._inference):
            return super().start_search(source, hypotheses, shortlist)
        given = torch.from_numpy(source).to(self._device)  # (B, m)
        missing = given.new_full((-len(given) % ROWS, given.shape[1]), PADDING)
        missing[:, 0] = END
        filled = torch.cat([given, missing])  # (B', m)
        shape = (len(filled), math.ceil(source.shape[1] / VECTOR), hypotheses)
        decoder = self._idle.pop(shape, None)
        if decoder is not None:
            decoder.restart(given, filled)
            return decoder
        while len(self._idle) >= MOST_RECORDINGS:
            longest_idle = next(iter(self._idle))
            del self._idle[longest_idle]
        return RecordedDecoder(
            [InPlaceConvS2SState(network, filled, hypotheses) for network in self._convs2s],
            [network.output for network in self._convs2s],
            given,
            self._average,
            recording=self._recording(),
            shape=shape,
            idle=self._idle,
        )


class RecordedDecoder(DecoderState):
    """A decoder whose first step is run, whose second is recorded, and whose others are replayed.

    Its states have B' rows, of which the first B are sentences.
    """

    keeps_all = True

    def __init__(
        self,
        states: Sequence[InPlaceConvS2SState],
        outputs: Sequence[LinearMap],
        source: Tensor,
        average: Average,
        recording: Recording,
        shape: Shape,
        idle: dict[Shape, "RecordedDecoder"],
    ) -> None:
        """Take what ``DecoderState`` takes, an empty recording, and where it waits when idle."""
        super().__init__(states, outputs, source, average)
        self._in_place = states
        self._recording = recording
        self._shape = shape
        self._idle = idle
        rows, _, hypotheses = shape
        # (B', K), where a step reads each hypothesis's last token
        self._previous = source.new_full((rows, hypotheses), END)
        self._is_set_up = False
        self._predicted: Predicted | None = None  # where a recorded step's results are

    def restart(self, source: Tensor, filled: Tensor) -> None:
        """Begin with another source (B, m), filled up to as many rows and whole vectors."""
        self._no_word = (source == PADDING) | (source == END)
        for state in self._in_place:
            state.restart(filled)

    @torch.inference_mode()
    def best(
        self,
        previous: Indices,
        scores: Numbers,
        count: int,
        limits: Limits,
    ) -> Candidates:
        """Predict, and return the most probable continuations, as every ``DecoderState`` does."""
        sentences = len(previous)
        self._previous[:sentences].copy_(self._to_device(previous))
        if not self._is_set_up:  # the first step sets up what cannot be while recording
            self._is_set_up = True
            predictions, attention = self.step(self._previous)
        else:
            if self._predicted is None:
                self._predicted = self._recording.record(lambda: self.step(self._previous))
            self._recording.replay()
            predictions, attention = self._predicted
        if attention is not None:
            attention = attention[:sentences, :, : self._no_word.shape[1]]  # (B, K, m)
        return self._best(predictions[:sentences], attention, scores, count, limits)

    def release(self) -> None:
        """Leave the recording to another source."""
        self._idle[self._shape] = self
