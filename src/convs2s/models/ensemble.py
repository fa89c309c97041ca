"""One or several networks that predict the next token together, step by step.

Ensembles average the networks' probabilities at each step (fairseq-lua, since May 2017) or their
log-probabilities (before), and their attention. Shapes: B sentences, K hypotheses of each, m source
length, S target types that count (all, where there is no shortlist).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.convs2s import ConvS2S
from convs2s.models.convs2s_inference import InferenceConvS2S
from convs2s.models.kernels.logits import topk_of_sums
from convs2s.models.kernels.quantized_linear import LinearMap, Precision
from convs2s.models.lstm import InferenceLstm, Lstm
from convs2s.models.network import Network

PART_NUMBERS, PART_ROWS = 1 << 19, 32
"""Predictions of a part of a batch: few enough numbers to stay in a cache (2 MB), but not of fewer
rows, as a matrix product reads all weights however few its rows are."""

Average = Literal["probabilities", "log_probabilities"]
"""What of the networks is averaged at each step."""


class IncrementalState(Protocol):
    """A network's incremental state while it decodes one batch."""

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Read each hypothesis's last token (B, K).

        Returns:
            What enters the output layer (B, K, features), and the attention (B, K, m), the mean
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
    """Return a network's weights as decoding needs them; they do not follow the network's.

    ``fp32`` is the precision of its weights, ``int8`` is for ConvS2S alone.
    """
    raise TypeError(f"no form for inference of {type(network).__name__}")


for_inference.register(ConvS2S, InferenceConvS2S)
for_inference.register(Lstm, InferenceLstm)


@dataclass(frozen=True)
class ShortlistedTypes:
    """The types (S,), ascending and with the special tokens, that a batch's sentences may use.

    ``mask`` (B, S) is True where a sentence may not use one.
    """

    types: Tensor
    mask: Tensor


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

    @property
    def attends(self) -> bool:
        """Whether any of the networks has attention."""
        return any(network.attends for network in self.networks)

    def positions(self, side: str) -> int | None:
        """Return the most tokens of a side, ``</s>`` counted, that every network has room for."""
        limits = [network.positions[side] for network in self.networks]
        return min((limit for limit in limits if limit is not None), default=None)

    def start(
        self, source: Tensor, hypotheses: int, shortlist: ShortlistedTypes | None = None
    ) -> "DecoderState":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each.

        ``shortlist`` has the target types to choose from; None: all.
        """
        states = [network.start(source, hypotheses) for network in self._inference]
        outputs = [network.output for network in self._inference]
        if shortlist is not None:
            outputs = [output.of(shortlist.types) for output in outputs]
        mask = None if shortlist is None else shortlist.mask
        return DecoderState(states, outputs, mask, self._average)

    def start_search(
        self, source: Tensor, hypotheses: int, shortlist: ShortlistedTypes | None
    ) -> "DecoderState":
        """Do as ``start``, for a search alone, which asks for ``best`` at each step."""
        return self.start(source, hypotheses, shortlist)


class DecoderState:
    """The incremental state of decoding one batch.

    Attributes:
        keeps_all: whether every sentence stays in the batch until all are done.
    """

    keeps_all = False

    def __init__(
        self,
        states: Sequence[IncrementalState],
        outputs: Sequence[LinearMap],
        mask: Tensor | None,
        average: Average,
    ) -> None:
        """Take what each network has read of the source, and its map to logits of S types.

        ``mask`` (B, S) is True where a sentence may not use a type; None: it may use all.
        """
        self._states, self._outputs, self._mask, self._average = states, outputs, mask, average

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Predict from each hypothesis's last token (B, K).

        Returns:
            Log-probabilities (B, K, S), which sum to a probability of less than 1 where they are
            averaged as such; and the attention (B, K, m), the mean over the networks that have
            attention, None where none has.
        """
        features, attention = self._read(previous)
        return self._predict(features, slice(None)), attention

    def best(
        self,
        previous: Tensor,
        scores: Tensor,
        count: int,
        constrain: Callable[[Tensor, slice], None],
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Predict, and return the most probable continuations of each sentence's hypotheses.

        A CPU goes through the batch in parts that stay in the cache, a GPU does it at once.

        Args:
            previous: (B, K), each hypothesis's last token.
            scores: (B, K), the log-probability of each hypothesis.
            count: of the continuations; at most K * S are returned.
            constrain: changes predictions (B', K, S) of some of the sentences in place.

        Returns:
            Log-probabilities (B, count), the best first, their places in K * S, and the attention
            as ``step`` has it.
        """
        features, attention = self._read(previous)
        best = []  # log-probabilities and places, (B', count), of each part
        rows = max(PART_ROWS, PART_NUMBERS // self.types)
        sentences = max(1, rows // previous.shape[1])
        if previous.device.type != "cpu":
            sentences = len(previous)
        for start in range(0, len(previous), sentences):
            part = slice(start, start + sentences)
            predictions = self._predict([tensor[part] for tensor in features], part)
            constrain(predictions, part)
            best.append(topk_of_sums(predictions, scores[part], count))
        if len(best) == 1:
            return *best[0], attention
        totals, places = (torch.cat(parts) for parts in zip(*best, strict=True))
        return totals, places, attention

    @property
    def types(self) -> int:
        """S, the number of types to choose from."""
        return self._outputs[0].outputs

    def _read(self, previous: Tensor) -> tuple[list[Tensor], Tensor | None]:
        """Return what enters each output layer, and the mean attention."""
        steps = [state.step(previous) for state in self._states]
        attentions = [attention for _, attention in steps if attention is not None]
        if len(attentions) > 1:
            attentions = [torch.stack(attentions).mean(0)]
        return [features for features, _ in steps], next(iter(attentions), None)

    def _predict(self, features: Sequence[Tensor], part: slice) -> Tensor:
        """Return log-probabilities (B', K, S) of a part of the sentences."""
        predictions = []
        for x, output in zip(features, self._outputs, strict=True):
            logits = output(x)  # (B', K, S)
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            if self._mask is not None:
                logits = logits.masked_fill(self._mask[part].unsqueeze(1), -torch.inf)
            predictions.append(functional.log_softmax(logits, dim=2))
        if len(predictions) == 1:
            return predictions[0]
        stacked = torch.stack(predictions)  # (networks, B', K, S)
        if self._average == "log_probabilities":
            return stacked.mean(0)
        # The log of the mean probability.
        return torch.logsumexp(stacked, 0) - math.log(len(predictions))

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses: ``rows`` (B * K,) indexes B * K, sentence by sentence."""
        for state in self._states:
            state.select(rows)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        for state in self._states:
            state.keep(sentences)
        if self._mask is not None:
            self._mask = self._mask[sentences]

    def release(self) -> None:
        """Give up what others can use: nothing more is asked of this state."""
