"""Decoding in steps that are recorded once and replayed: a CUDA graph in place of many launches.

A step of a few hundred rows takes a GPU less time than a CPU takes to start its operations one by
one. A recording repeats them in the same memory and in the same shapes. So all of a decoder's state
stays where it is, sentences that are done stay in the batch, and batches are filled up to a few
sizes, so that the next one can use the recording of one before. What changes with the length of the
output (what may not come next) and the search itself are outside of the recording.

Shapes: B sentences, K hypotheses of each, m source length, S target types.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from convs2s.data.vocabulary import END, PADDING
from convs2s.models.attended_source import VECTOR
from convs2s.models.convs2s_inference import InferenceConvS2S
from convs2s.models.ensemble import Average, DecoderState, Ensemble, ShortlistedTypes
from convs2s.models.in_place import InPlaceConvS2SState
from convs2s.models.kernels.quantized_linear import LinearMap, Precision
from convs2s.models.kernels.topk import topk_of_sums
from convs2s.models.network import Network

ROWS = 16
"""Sentences of a batch are filled up to a multiple of it."""

MOST_RECORDINGS = 8
"""Kept at a time, those used last: each holds its batch's state and the memory of a step."""

Predicted = tuple[Tensor, Tensor | None]
"""Log-probabilities (B, K, S) and attention (B, K, m)."""


class Recording(Protocol):
    """What a device was told to do, and can do again in the same memory."""

    def record(self, work: Callable[[], Predicted]) -> Predicted:
        """Note what ``work`` tells the device to do, undone; return where its results will be."""

    def replay(self) -> None:
        """Do it."""


class CudaRecording:
    """A CUDA graph."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._graph = torch.cuda.CUDAGraph()

    def record(self, work: Callable[[], Predicted]) -> Predicted:
        """Note what ``work`` tells the GPU to do, undone; return where its results will be."""
        # Other threads may go on to use the GPU meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            return work()

    def replay(self) -> None:
        """Do it."""
        self._graph.replay()


Shape = tuple[int, int, int]
"""Sentences, source length in whole vectors, and hypotheses of each."""


class RecordedEnsemble(Ensemble):
    """An ensemble of ConvS2S networks whose searches replay recorded steps."""

    def __init__(
        self,
        networks: Sequence[Network],
        average: Average = "probabilities",
        precision: Precision = "fp32",
        recording: Callable[[], Recording] = CudaRecording,
    ) -> None:
        """Take networks for inference.

        Args:
            networks: one or several.
            average: what of the networks is averaged at each step.
            precision: as of ``Ensemble``.
            recording: makes an empty one.

        Raises:
            NotImplementedError: one of the networks is no ConvS2S network.
        """
        super().__init__(networks, average, precision)
        found = [one for one in self._inference if isinstance(one, InferenceConvS2S)]
        if len(found) < len(networks):
            raise NotImplementedError("only steps of ConvS2S networks are recorded")
        self._convs2s, self._recording = found, recording
        self._idle: dict[Shape, RecordedDecoder] = {}  # the one used last stands last

    def filled(self, source: Tensor, shortlist: ShortlistedTypes | None) -> Tensor:
        """Return the source (B', m) of a search: rows past the sentences are no sentences.

        A shortlist belongs to its batch, and so would a recording that reads it: there is none.
        """
        if shortlist is not None:
            return source
        missing = source.new_full((-len(source) % ROWS, source.shape[1]), PADDING)
        missing[:, 0] = END
        return torch.cat([source, missing])

    def start_search(
        self, source: Tensor, hypotheses: int, shortlist: ShortlistedTypes | None
    ) -> DecoderState:
        """Encode a source that ``filled`` has filled; with a shortlist do as ``start``."""
        if shortlist is not None:
            return self.start(source, hypotheses, shortlist)
        shape = len(source), -(-source.shape[1] // VECTOR), hypotheses
        decoder = self._idle.pop(shape, None)
        if decoder is not None:
            decoder.restart(source)
            return decoder
        while len(self._idle) >= MOST_RECORDINGS:
            del self._idle[next(iter(self._idle))]
        states = [InPlaceConvS2SState(one, source, hypotheses) for one in self._convs2s]
        outputs = [one.output for one in self._convs2s]
        when_done = partial(self._idle.__setitem__, shape)
        made = RecordedDecoder(states, outputs, self._average, self._recording(), when_done)
        made.length = source.shape[1]
        return made


class RecordedDecoder(DecoderState):
    """A decoder whose first step is run, whose second is recorded, and whose others are replayed.

    Attributes:
        length: m, of the source that is decoded.
    """

    keeps_all = True
    length: int

    def __init__(
        self,
        states: Sequence[InPlaceConvS2SState],
        outputs: Sequence[LinearMap],
        average: Average,
        recording: Recording,
        when_done: Callable[["RecordedDecoder"], None],
    ) -> None:
        """Take what each network has read of the source.

        Args:
            states: one for each network.
            outputs: the networks' maps from features to logits of S types.
            average: what of the networks is averaged at each step.
            recording: an empty one.
            when_done: is given the decoder once nothing more is asked of it.
        """
        super().__init__(states, outputs, None, average)
        self._in_place, self._recording, self._when_done = states, recording, when_done
        self._previous: Tensor | None = None  # (B, K), in its place
        self._predicted: Predicted | None = None  # where a step's results are

    def restart(self, source: Tensor) -> None:
        """Begin with another source (B, m) of as many sentences and as many whole vectors."""
        self.length = source.shape[1]
        for state in self._in_place:
            state.restart(source)

    def best(
        self,
        previous: Tensor,
        scores: Tensor,
        count: int,
        constrain: Callable[[Tensor, slice], None],
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Predict, and return the most probable continuations, as every ``DecoderState`` does."""
        predictions, attention = self._replayed(previous)
        constrain(predictions, slice(None))
        totals, places = topk_of_sums(predictions, scores, count)
        return totals, places, None if attention is None else attention[:, :, : self.length]

    def _replayed(self, previous: Tensor) -> Predicted:
        """Predict from each hypothesis's last token (B, K)."""
        if self._previous is None:  # running it once sets up what may not be while recording
            self._previous = previous.clone()
            return self.step(self._previous)
        own = self._previous
        own.copy_(previous)
        if self._predicted is None:
            self._predicted = self._recording.record(lambda: self.step(own))
        self._recording.replay()
        return self._predicted

    def release(self) -> None:
        """Be done with this source: another one may use the recording."""
        self._when_done(self)
