"""Decode on a GPU by steps that are recorded once as a CUDA graph and then replayed.

For a step of a few hundred rows, the CPU needs longer to launch the operations one by one than the
GPU needs to compute them. A CUDA graph launches all of them at once. It repeats exactly the
operations that were recorded, on the same memory and with the same shapes, and runs no Python in
between. Recorded steps therefore keep to these rules:

- The state of the decoder is updated in place, so that each tensor keeps its address.
- Finished sentences stay in the batch, because dropping them would change the shapes.
- Batches of several sentences are filled up with empty sentences to a few sizes, so that many later
  batches can use the recording. A batch of one sentence is not filled up.
- The search itself and the constraints on the next token are not recorded, because they depend on
  the length of the output.
- The first step is not recorded: libraries allocate their workspaces during their first calls,
  which is not allowed during a recording.

Shapes: B sentences, B' sentences after filling up, K hypotheses of each, m source length, m' source
length with the padding to whole vectors, S target types.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.ensemble import DecoderState, Ensemble
from convs2s.models.incremental import ConvS2SState, DecodingConvS2S
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.network import Network
from convs2s.models.steps import VECTOR, Average, Precision, Shortlisted

SENTENCE_MULTIPLE = 16
"""A batch of several sentences is filled up to a multiple of this number of sentences."""

MOST_RECORDINGS = 8
"""Maximum number of idle recordings that an ensemble keeps.

Each recording holds the state of its batch and the memory of a step. If there are this many, the
one that has been idle for the longest time is dropped before another one is made.
"""

Predicted = tuple[Tensor, Tensor | None]
"""The log-probabilities (B', K, S) of a step, and its attention (B', K, m') or None."""

Shape = tuple[int, ...]
"""(B', m', K). A batch can use a recording that was made for a batch of the same shape."""

_Result = TypeVar("_Result")


class Recording:
    """A CUDA graph: operations of a GPU that can be repeated in the same memory."""

    def __init__(self, pool: Any = None) -> None:
        """Make an empty recording.

        Recordings with the same ``pool``, which ``torch.cuda.graph_pool_handle`` returns, share
        memory: the replay of one overwrites the results of the others.
        """
        self._graph = torch.cuda.CUDAGraph()
        self._pool = pool

    def record(self, work: Callable[[], _Result]) -> _Result:
        """Record the operations of ``work`` without running them.

        Return the tensors that will hold the results after each ``replay``.
        """
        # In the mode "thread_local", other threads may go on using the GPU during the recording.
        with torch.cuda.graph(
            self._graph, self._pool, capture_error_mode="thread_local"
        ):
            return work()

    def replay(self) -> None:
        """Run the recorded operations."""
        self._graph.replay()


class InPlaceConvS2SState(ConvS2SState):
    """A state of fixed shapes that is updated in place."""

    def __init__(
        self,
        decoding: DecodingConvS2S,
        source: Tensor,
        hypotheses: int,
    ) -> None:
        """Encode source indices (B', m'), to decode K hypotheses of each sentence."""
        super().__init__(decoding, source, hypotheses)
        # (B' * K,), the rows that the next step continues. A recorded step always reads this
        # tensor, so ``select`` and ``restart`` must write into it.
        self._order = self._identity.clone()

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read the last tokens (B', K); the same as ``ConvS2SState.step``."""
        # ``ConvS2SState.step`` reads the order from ``_rows``, and then assigns another tensor.
        self._rows = self._order
        return super().step(previous)

    def restart(self, source: Tensor) -> None:
        """Begin another search, for a source (B', m')."""
        encoded = self._decoding.encode(source)
        for kept, new in zip(self._encoded, encoded, strict=True):
            kept.copy_(new)
        self._windows.clear()
        self._order.copy_(self._identity)

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) are indices of B * K rows.

        The rows after them, which belong to the empty sentences that fill up the batch, keep their
        order.
        """
        self._order[: len(rows)].copy_(rows)


class RecordedEnsemble(Ensemble):
    """An ensemble whose searches replay recorded steps if all its networks are ConvS2S."""

    def __init__(
        self,
        networks: Sequence[Network],
        average: Average = "probabilities",
        precision: Precision = "fp32",
        recording: Callable[[], Recording] = Recording,
    ) -> None:
        """Prepare networks for decoding; ``recording`` makes an empty recording."""
        super().__init__(networks, average, precision)
        self._recording = recording
        # Decoders whose search has ended, in the order in which they became idle. A decoder puts
        # itself here (``RecordedDecoder.release``), and ``start`` takes it out.
        self._idle: dict[Shape, RecordedDecoder] = {}

    @torch.inference_mode()
    def start(
        self,
        source: Indices | Tensor,
        hypotheses: int,
        shortlist: Shortlisted | None = None,
    ) -> DecoderState:
        """Encode padded source indices (B, m); return a decoder for K hypotheses of each sentence.

        Nothing is recorded if there is a shortlist, because the output layer then differs from
        batch to batch, or if any network is not ConvS2S.
        """
        networks = [
            network
            for network in self._inference
            if isinstance(network, DecodingConvS2S)
        ]
        are_all_convs2s = len(networks) == len(self._inference)
        if shortlist is not None or not are_all_convs2s:
            return super().start(source, hypotheses, shortlist)
        source = torch.as_tensor(source, device=self._device)
        sentences, length = source.shape
        missing_tokens = -length % VECTOR  # up to the next multiple
        missing_sentences = 0
        if sentences > 1:
            missing_sentences = -sentences % SENTENCE_MULTIPLE
        # (B', m')
        filled = functional.pad(
            source, (0, missing_tokens, 0, missing_sentences), value=PADDING
        )
        # An empty sentence is ``</s>`` followed by padding.
        filled[sentences:, 0] = END
        shape = (*filled.shape, hypotheses)
        decoder = self._idle.pop(shape, None)
        if decoder is not None:
            decoder.restart(filled, sentences)
            return decoder
        while len(self._idle) >= MOST_RECORDINGS:
            longest_idle = next(iter(self._idle))
            del self._idle[longest_idle]
        states = [
            InPlaceConvS2SState(network, filled, hypotheses) for network in networks
        ]
        return RecordedDecoder(
            states,
            [network.output for network in networks],
            filled[:sentences],
            self._average,
            recording=self._recording(),
            shape=shape,
            idle=self._idle,
        )


class RecordedDecoder(DecoderState):
    """A decoder that runs its first step, records its second step, and replays it from then on.

    The states of its networks have B' sentences. The first B of them are those of the batch.
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
        """Take the same parameters as ``DecoderState``, with a source (B, m'), and three more.

        ``recording`` is empty. ``shape`` is that of the batches that can use this decoder. The
        decoder puts itself into ``idle`` when its search ends.
        """
        super().__init__(states, outputs, source, average)
        self._in_place = states  # the same as ``self._states``, with their type
        self._recording = recording
        self._shape = shape
        self._idle = idle
        sentences, _, hypotheses = shape
        # (B', K), the last token of each hypothesis. A recorded step always reads this tensor.
        self._previous = source.new_full((sentences, hypotheses), END)
        self._has_run = False  # whether a step has run without being recorded
        self._predicted: Predicted | None = None  # the results of a recorded step

    def restart(self, filled: Tensor, sentences: int) -> None:
        """Begin another search. The first ``sentences`` of ``filled`` (B', m') are the batch."""
        source = filled[:sentences]
        self._no_word = (source == PADDING) | (source == END)
        for state in self._in_place:
            state.restart(filled)

    @torch.inference_mode()
    def step(self, previous: Tensor) -> Predicted:
        """Run or replay a step; the same as ``DecoderState.step``.

        The next step overwrites the tensors that this returns.
        """
        sentences = len(previous)
        self._previous[:sentences].copy_(previous)
        compute = partial(super().step, self._previous)
        if not self._has_run:
            self._has_run = True
            predictions, attention = compute()
        else:
            if self._predicted is None:
                self._predicted = self._recording.record(compute)
            self._recording.replay()
            predictions, attention = self._predicted
        if attention is not None:
            attention = attention[:sentences]
        return predictions[:sentences], attention

    def release(self) -> None:
        """Leave this decoder to a later search. Do not use it after that."""
        # If another decoder of this shape is idle, this one replaces it. Without the ``pop``, this
        # one would also take the other's place in the order.
        self._idle.pop(self._shape, None)
        self._idle[self._shape] = self
