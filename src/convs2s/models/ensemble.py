"""One or several networks that predict the next token together, step by step.

Ensembles average the networks' probabilities at each step (fairseq-lua, since May 2017) or their
log-probabilities (before), and their attention. Shapes: B sentences, K hypotheses of each, m source
length, S target types that count (all, where there is no shortlist).
"""

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models.convs2s import ConvS2S
from convs2s.models.incremental import DecodingConvS2S
from convs2s.models.kernels.linear_map import LinearMap
from convs2s.models.lstm import InferenceLstm, Lstm
from convs2s.models.network import Network
from convs2s.models.steps import (
    Average,
    Candidates,
    Limits,
    Numbers,
    Precision,
    Shortlisted,
    least_positions,
)


class IncrementalState(Protocol):
    """A network's incremental state while it decodes one batch."""

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Read each hypothesis's last token (B, K).

        Return what enters the output layer (B, K, features), and the attention (B, K, m), the mean
        over the attending layers; None from a network without attention.
        """

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""


class InferenceNetwork(Protocol):
    """A network's weights as decoding needs them; ``output`` maps features to logits."""

    output: LinearMap

    def start(self, source: Tensor, hypotheses: int) -> IncrementalState:
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""


@singledispatch
def for_inference(network: Network, precision: Precision) -> InferenceNetwork:
    """Return a network's weights as decoding needs them: once they have changed, make it again.

    ``fp32`` is the precision of its weights; ``int8`` is not torch's.
    """
    raise TypeError(f"no form for inference of {type(network).__name__}")


for_inference.register(ConvS2S, DecodingConvS2S)
for_inference.register(Lstm, InferenceLstm)


class Ensemble:
    """Networks over the same vocabularies, of any kinds; a single one is the common case."""

    def __init__(
        self,
        networks: Sequence[Network],
        average: Average = "probabilities",
        precision: Precision = "fp32",
    ) -> None:
        """Take networks for inference: they are put into evaluation mode, else stay as they are."""
        self.precision: Precision = precision
        self._average: Average = average
        self.networks = [network.eval() for network in networks]
        self._inference = [for_inference(network, precision) for network in networks]
        self._device = next(networks[0].parameters()).device

    @property
    def attends(self) -> bool:
        """Whether any of the networks has attention."""
        return any(network.attends for network in self.networks)

    def positions(self, side: str) -> int | None:
        """Return the most tokens of a side, ``</s>`` counted, that every network has room for."""
        return least_positions(network.positions[side] for network in self.networks)

    def start(
        self, source: Tensor, hypotheses: int, shortlist: Shortlisted | None = None
    ) -> "DecoderState":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each.

        ``shortlist`` has the target types to choose from; None: all.
        """
        states = [network.start(source, hypotheses) for network in self._inference]
        outputs = [network.output for network in self._inference]
        if shortlist is None:
            return DecoderState(states, outputs, source, self._average)
        types = torch.as_tensor(shortlist.types, device=source.device)
        mask = torch.as_tensor(shortlist.mask, device=source.device)
        outputs = [output.of(types) for output in outputs]
        return DecoderState(states, outputs, source, self._average, types, mask)

    @torch.inference_mode()
    def start_search(
        self, source: Indices, hypotheses: int, shortlist: Shortlisted | None
    ) -> "DecoderState":
        """Do as ``start`` with a source on the CPU, for a search, which asks for ``best`` alone."""
        return self.start(torch.from_numpy(source).to(self._device), hypotheses, shortlist)


class DecoderState:
    """The incremental state of decoding one batch."""

    keeps_all = False  # whether every sentence stays in the batch until all are done

    def __init__(
        self,
        states: Sequence[IncrementalState],
        outputs: Sequence[LinearMap],
        source: Tensor,
        average: Average,
        types: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> None:
        """Take what each network has read of the source (B, m), and its map to logits of S types.

        ``types`` (S,) are the shortlist's; None: all. ``mask`` (B, S) is True where a
        sentence may not use one.
        """
        self._states = states
        self._outputs = outputs
        self._average = average
        self._no_word = (source == PADDING) | (source == END)  # (B, m)
        self._types = types
        self._mask = mask

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Predict from each hypothesis's last token (B, K).

        Return log-probabilities (B, K, S), which sum to a probability of less than 1 where they are
        averaged as such; and the attention (B, K, m), the mean over networks, or None.
        """
        features = []
        attentions = []
        for state in self._states:
            x, attention = state.step(previous)
            features.append(x)
            if attention is not None:
                attentions.append(attention)
        mean = torch.stack(attentions).mean(0) if attentions else None
        return self._predict(features), mean

    @torch.inference_mode()
    def best(
        self,
        previous: Indices,
        scores: Numbers,
        count: int,
        limits: Limits,
    ) -> Candidates:
        """Predict, and return the most probable continuations of each sentence's hypotheses.

        ``previous`` and ``scores`` (B, K) are each hypothesis's last token and log-probability; at
        most ``count`` are returned, in one transfer, so that the device is waited for once.
        """
        predictions, attention = self.step(self._to_device(previous))
        return self._best(predictions, attention, scores, count, limits)

    def _best(
        self,
        predictions: Tensor,
        attention: Tensor | None,
        scores: Numbers,
        count: int,
        limits: Limits,
    ) -> Candidates:
        """Return what a search reads of predictions (B, K, S), which are changed."""
        self._limit(predictions, limits)
        _, hypotheses, types = predictions.shape
        before = self._to_device(scores).to(predictions.dtype)  # (B, K)
        sums = predictions + before.unsqueeze(2)  # (B, K, S)
        count = min(count, hypotheses * types)  # C
        totals, chosen = sums.flatten(1).topk(count)  # (B, C)
        tokens = chosen % types
        if self._types is not None:
            tokens = self._types[tokens]
        # float64 holds each of these numbers as it is, indices too.
        parts = [totals.double(), chosen // types, tokens]
        if attention is not None:
            on_words = attention.masked_fill(self._no_word.unsqueeze(1), -1.0)
            parts.append(on_words.argmax(2))  # (B, K)
        transferred = torch.cat(parts, 1).cpu().numpy()  # (B, 3C + K), or (B, 3C)
        indices = transferred[:, count:].astype(np.int64)
        return Candidates(
            scores=transferred[:, :count],
            parents=indices[:, :count],
            tokens=indices[:, count : 2 * count],
            places=None if attention is None else indices[:, 2 * count :],
        )

    def _limit(self, predictions: Tensor, limits: Limits) -> None:
        """Bar from predictions (B, K, S) what may not come next.

        The special tokens stand at their own indices among the types of a shortlist as well.
        """
        predictions.select(2, PADDING).fill_(-torch.inf)
        if limits.unknown_penalty:
            predictions.select(2, UNKNOWN).sub_(limits.unknown_penalty)
        end = predictions.select(2, END)  # (B, K), a view
        if not limits.may_end:
            others = self._to_device(np.flatnonzero(~limits.must_end))
            end.index_fill_(0, others, -torch.inf)
        if limits.must_end.any():  # nothing but </s> may follow
            rows = self._to_device(np.flatnonzero(limits.must_end))
            ending = end.index_select(0, rows)
            predictions.index_fill_(0, rows, -torch.inf)
            end.index_copy_(0, rows, ending)

    def _to_device(self, array: NDArray[np.generic]) -> Tensor:
        """Return an array on the networks' device, without waiting for it."""
        return torch.from_numpy(array).to(self._no_word.device, non_blocking=True)

    def _predict(self, features: Sequence[Tensor]) -> Tensor:
        """Return log-probabilities (B, K, S)."""
        predictions = []
        for x, output in zip(features, self._outputs, strict=True):
            logits = output(x)  # (B, K, S)
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            if self._mask is None:
                predictions.append(functional.log_softmax(logits, 2))
                continue
            logits = logits.masked_fill(self._mask.unsqueeze(1), -torch.inf)
            # A sum in fp64 is the same whatever types the batch's other sentences add.
            exact = functional.log_softmax(logits, 2, dtype=torch.float64)
            predictions.append(exact.to(logits.dtype))
        if len(predictions) == 1:
            return predictions[0]
        stacked = torch.stack(predictions)  # (networks, B, K, S)
        if self._average == "log_probabilities":
            return stacked.mean(0)
        # The log of the mean probability.
        return torch.logsumexp(stacked, 0) - math.log(len(predictions))

    @torch.inference_mode()
    def select(self, rows: Indices) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        for state in self._states:
            state.select(self._to_device(rows))

    @torch.inference_mode()
    def keep(self, sentences: Indices) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        kept = self._to_device(sentences)
        for state in self._states:
            state.keep(kept)
        self._no_word = self._no_word[kept]
        if self._mask is not None:
            self._mask = self._mask[kept]

    def release(self) -> None:
        """Give up what others can use: nothing more is asked of this state."""
