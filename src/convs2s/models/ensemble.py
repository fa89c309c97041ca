"""Decode with one or several networks that predict the next token together, step by step.

An ensemble averages the attention of its networks, and either their probabilities (as fairseq-lua
does since May 2017) or their log-probabilities (as it did before).

Shapes: B sentences, K hypotheses of each, m source length, S target types (those of the shortlist,
or all if there is none).
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
from convs2s.models.rnn import InferenceRnn, Rnn
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
    """The incremental state of one network while it decodes a batch."""

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Read the last token of each hypothesis (B, K).

        Return the input of the output layer (B, K, features), and the mean attention of the layers
        (B, K, m). A network without attention returns None in its place, and a network that pads
        its source may return more than m columns.
        """

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses in the next step.

        ``rows`` (B * K,) are indices of the B * K hypotheses, which are numbered sentence by
        sentence.
        """

    def keep(self, sentences: Tensor) -> None:
        """Drop all sentences but these; ``sentences`` are indices of the B sentences."""


class InferenceNetwork(Protocol):
    """A network prepared for decoding; ``output`` maps features to logits."""

    output: LinearMap

    def start(self, source: Tensor, hypotheses: int) -> IncrementalState:
        """Encode a padded source (B, m), and return the state of K hypotheses per sentence."""


@singledispatch
def for_inference(network: Network, precision: Precision) -> InferenceNetwork:
    """Prepare a network for decoding. Call this again after its weights have changed.

    ``fp32`` means the precision of the weights. torch does not decode in ``int8``.
    """
    raise TypeError(
        f"no class for decoding with {type(network).__name__}: register one with "
        "`for_inference.register`"
    )


for_inference.register(ConvS2S, DecodingConvS2S)
for_inference.register(Lstm, InferenceLstm)
for_inference.register(Rnn, InferenceRnn)


class Ensemble:
    """An ensemble of networks of any kinds with the same vocabularies, often a single network."""

    def __init__(
        self,
        networks: Sequence[Network],
        average: Average = "probabilities",
        precision: Precision = "fp32",
    ) -> None:
        """Prepare networks for decoding. This puts them into evaluation mode."""
        self.precision: Precision = precision
        self._average: Average = average
        self.networks = [network.eval() for network in networks]
        self._inference = [for_inference(network, precision) for network in networks]
        parameter = next(networks[0].parameters())
        self._device = parameter.device

    @property
    def attends(self) -> bool:
        """Whether any of the networks has attention."""
        return any(network.attends for network in self.networks)

    def positions(self, side: str) -> int | None:
        """Return the maximum number of tokens of a side, including ``</s>``; None means no limit.

        ``side`` is ``source`` or ``target``.
        """
        return least_positions(network.positions[side] for network in self.networks)

    @torch.inference_mode()
    def start(
        self,
        source: Indices | Tensor,
        hypotheses: int,
        shortlist: Shortlisted | None = None,
    ) -> "DecoderState":
        """Encode a padded source (B, m), and return the state of K hypotheses per sentence.

        ``shortlist`` restricts the target types; None allows all.
        """
        source = torch.as_tensor(source, device=self._device)
        states = [network.start(source, hypotheses) for network in self._inference]
        outputs = [network.output for network in self._inference]
        return DecoderState(states, outputs, source, self._average, shortlist)


class DecoderState:
    """The incremental state of decoding one batch with all networks."""

    keeps_all = False
    """Whether finished sentences must stay in the batch, so that ``keep`` must not be called."""

    def __init__(
        self,
        states: Sequence[IncrementalState],
        outputs: Sequence[LinearMap],
        source: Tensor,
        average: Average,
        shortlist: Shortlisted | None = None,
    ) -> None:
        """Begin to decode the source (B, m).

        ``states`` are those of the networks before the first step. ``outputs`` are the networks'
        maps to the logits of all types.
        """
        self._states = states
        self._outputs = outputs
        self._average = average
        # (B, m), True at </s> and padding. An unknown word is replaced by the word of the source
        # with the highest attention, so these positions do not count.
        self._no_word = (source == PADDING) | (source == END)
        # (S,), the types of the shortlist.
        self._types: Tensor | None = None
        # (B, S), True if a sentence may not use a type.
        self._mask: Tensor | None = None
        if shortlist is not None:
            self._types = self._to_device(shortlist.types)
            self._mask = self._to_device(shortlist.mask)
            self._outputs = [output.of(self._types) for output in outputs]

    @torch.inference_mode()
    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Predict from the last token of each hypothesis (B, K).

        Return the log-probabilities (B, K, S), and the mean attention of the networks (B, K, m), or
        None without attention. If the ensemble averages log-probabilities, the result is not
        normalized: the probabilities sum to less than 1.
        """
        predictions = []
        attentions = []
        for state, output in zip(self._states, self._outputs, strict=True):
            features, attention = state.step(previous)
            if attention is not None:
                length = self._no_word.shape[1]  # m
                attentions.append(attention[:, :, :length])
            logits = output(features)  # (B, K, S)
            at_least_fp32 = torch.promote_types(logits.dtype, torch.float32)
            logits = logits.to(at_least_fp32)
            if self._mask is None:
                predictions.append(functional.log_softmax(logits, 2))
                continue
            mask = self._mask.unsqueeze(1)  # (B, 1, S)
            logits = logits.masked_fill(mask, -torch.inf)
            # The shortlist contains the types of all sentences of the batch. For each sentence, the
            # types of the others add zeros to the sum of the softmax, but change the order of its
            # terms. In fp64 the order does not change the result.
            exact = functional.log_softmax(logits, 2, dtype=torch.float64)
            predictions.append(exact.to(logits.dtype))
        mean = torch.stack(attentions).mean(0) if attentions else None
        if len(predictions) == 1:
            return predictions[0], mean
        stacked = torch.stack(predictions)  # (networks, B, K, S)
        if self._average == "log_probabilities":
            return stacked.mean(0), mean
        # The logarithm of the mean probability.
        return torch.logsumexp(stacked, 0) - math.log(len(predictions)), mean

    @torch.inference_mode()
    def best(
        self,
        previous: Indices,
        scores: Numbers,
        count: int,
        limits: Limits,
    ) -> Candidates:
        """Predict, and return the most probable continuations of each sentence's hypotheses.

        ``previous`` and ``scores`` (B, K) are the last token and the log-likelihood of each
        hypothesis. ``count`` is the maximum number of continuations of each sentence. One transfer
        copies all results from the device, so the CPU waits for the device only once.
        """
        predictions, attention = self.step(self._to_device(previous))
        self._limit(predictions, limits)
        _, hypotheses, types = predictions.shape
        scores_so_far = self._to_device(scores).to(predictions.dtype)  # (B, K)
        totals = predictions + scores_so_far.unsqueeze(2)  # (B, K, S)
        count = min(count, hypotheses * types)  # C
        flat = totals.flatten(1)  # (B, K * S)
        best, chosen = flat.topk(count)  # (B, C)
        parents = chosen // types  # (B, C)
        tokens = chosen % types  # (B, C)
        if self._types is not None:
            tokens = self._types[tokens]
        # All results are joined in one tensor of fp64, which represents scores and indices exactly.
        parts = [best.double(), parents, tokens]
        if attention is not None:
            no_word = self._no_word.unsqueeze(1)  # (B, 1, m)
            # The attention is never below 0, so argmax takes a word before any place with -1.
            on_words = attention.masked_fill(no_word, -1.0)  # (B, K, m)
            parts.append(on_words.argmax(2))  # (B, K)
        joined = torch.cat(parts, 1)  # (B, 3C + K), or (B, 3C) without attention
        transferred = joined.cpu().numpy()
        indices = transferred[:, count:].astype(np.int64)
        places = None
        if attention is not None:
            places = indices[:, 2 * count :]
        return Candidates(
            scores=transferred[:, :count],
            parents=indices[:, :count],
            tokens=indices[:, count : 2 * count],
            places=places,
        )

    def _limit(self, predictions: Tensor, limits: Limits) -> None:
        """Apply constraints on the next token to predictions (B, K, S), in place.

        Special tokens have the same indices in a shortlist as in the whole vocabulary, because they
        are the first types of both.
        """
        predictions.select(2, PADDING).fill_(-torch.inf)
        if limits.unknown_penalty:
            predictions.select(2, UNKNOWN).sub_(limits.unknown_penalty)
        end = predictions.select(2, END)  # (B, K), a view
        if not limits.may_end:
            not_ending = self._to_device(np.flatnonzero(~limits.must_end))
            end.index_fill_(0, not_ending, -torch.inf)
        if limits.must_end.any():
            # Allow only </s>: set the log-probabilities of all types to -inf, then restore the one
            # of </s>.
            ending = self._to_device(np.flatnonzero(limits.must_end))
            kept = end.index_select(0, ending)
            predictions.index_fill_(0, ending, -torch.inf)
            end.index_copy_(0, ending, kept)

    def _to_device(self, array: NDArray[np.generic]) -> Tensor:
        """Copy an array to the networks' device. This does not wait for the end of the copy."""
        device = self._no_word.device
        return torch.from_numpy(array).to(device, non_blocking=True)

    @torch.inference_mode()
    def select(self, rows: Indices) -> None:
        """Continue from other hypotheses; see ``IncrementalState.select``."""
        for state in self._states:
            state.select(self._to_device(rows))

    @torch.inference_mode()
    def keep(self, sentences: Indices) -> None:
        """Drop all sentences but these; ``sentences`` are indices of the B sentences."""
        kept = self._to_device(sentences)
        for state in self._states:
            state.keep(kept)
        self._no_word = self._no_word[kept]
        if self._mask is not None:
            self._mask = self._mask[kept]

    def release(self) -> None:
        """End the search. Subclasses may then reuse this state for another search."""
