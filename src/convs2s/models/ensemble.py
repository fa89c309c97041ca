"""One or several networks that predict the next symbol together, step by step.

Ensembles average the networks' probabilities at each step (lua, since May 2017) or their
log-probabilities (before), and their attention. Shapes: B sentences, K hypotheses of each, m source
length, S selected target types (all, where none are selected).
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from convs2s.models.largest import largest
from convs2s.models.linear_maps import Precision
from convs2s.models.network import Network, PreparedNetwork, SelectedTypes

PART_NUMBERS, PART_ROWS = 1 << 19, 32
"""Predictions that are computed and searched at a time stay in a cache (2 MB), but for a product of
few rows all weights would have to be read as often as for one of many."""

Average = Literal["probabilities", "log_probabilities"]
"""What of the networks is averaged at each step."""


class Ensemble:
    """Networks over the same vocabularies, of any kinds; a single one is the common case."""

    def __init__(
        self,
        networks: Sequence[Network],
        average: Average = "probabilities",
        precision: Precision = "fp32",
    ) -> None:
        """Prepare networks for inference; they stay as they are.

        Args:
            networks: one or several.
            average: what of the networks is averaged at each step.
            precision: ``fp32`` for the precision of their weights; ``int8`` for ConvS2S alone.
        """
        self._average: Average = average
        self.networks = [network.eval() for network in networks]
        self._prepared = [network.prepared(precision) for network in networks]

    @property
    def attends(self) -> bool:
        """Whether any of the networks has attention."""
        return any(network.attends for network in self.networks)

    def positions(self, side: str) -> int | None:
        """Return the most symbols of a side, ``</s>`` counted, that every network has room for."""
        limits = [network.positions[side] for network in self.networks]
        return min((limit for limit in limits if limit is not None), default=None)

    def start(
        self, source: Tensor, hypotheses: int, selected: SelectedTypes | None = None
    ) -> "Session":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each.

        Args:
            source: padded indices.
            hypotheses: K.
            selected: the target types to choose from; None: all.
        """
        return Session(self._prepared, source, hypotheses, selected, self._average)


class Session:
    """The incremental state of decoding one batch."""

    def __init__(
        self,
        networks: Sequence[PreparedNetwork],
        source: Tensor,
        hypotheses: int,
        selected: SelectedTypes | None,
        average: Average,
    ) -> None:
        """Encode the source once."""
        self._average = average
        self._decodings = [network.start(source, hypotheses) for network in networks]
        maps = [network.output for network in networks]
        self._outputs = maps if selected is None else [one.of(selected.types) for one in maps]
        self._barred = None if selected is None else selected.barred  # (B, S)

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Predict from each hypothesis's last symbol (B, K).

        Returns:
            Log-probabilities (B, K, S); averaged as such, those of all types sum to a probability
            of less than 1. And the attention (B, K, m): the mean over the networks
            that have attention; None where none has.
        """
        features, attention = self._read(previous)
        return self._predict(features, slice(None)), attention

    def best(
        self, previous: Tensor, count: int, constrain: Callable[[Tensor, slice], None]
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Predict, and return the most probable continuations of each hypothesis.

        It goes through the batch in parts that stay in a processor's cache.

        Args:
            previous: (B, K), each hypothesis's last symbol.
            count: how many; at most S are returned.
            constrain: changes predictions (B', K, S) of some of the sentences in place.

        Returns:
            Log-probabilities (B, K, count), the best first, the places among the S types, and the
            attention as ``step`` has it.
        """
        features, attention = self._read(previous)
        found = []
        rows = max(PART_ROWS, PART_NUMBERS // self._outputs[0].outputs)
        sentences = max(1, rows // previous.shape[1])
        for start in range(0, len(previous), sentences):
            part = slice(start, start + sentences)
            predictions = self._predict([one[part] for one in features], part)
            constrain(predictions, part)
            found.append(largest(predictions, min(count, predictions.shape[2])))
        scores, places = (torch.cat(parts) for parts in zip(*found, strict=True))
        return scores, places, attention

    def _read(self, previous: Tensor) -> tuple[list[Tensor], Tensor | None]:
        """Return what enters each output layer, and the mean attention."""
        steps = [decoding.step(previous) for decoding in self._decodings]
        attentions = [attention for _, attention in steps if attention is not None]
        mean = torch.stack(attentions).mean(0) if attentions else None
        return [features for features, _ in steps], mean

    def _predict(self, features: Sequence[Tensor], part: slice) -> Tensor:
        """Return log-probabilities (B', K, S) of a part of the sentences."""
        predictions = []
        for one, output in zip(features, self._outputs, strict=True):
            logits = output(one)  # (B', K, S)
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            if self._barred is not None:
                logits = logits.masked_fill(self._barred[part].unsqueeze(1), -torch.inf)
            predictions.append(functional.log_softmax(logits, dim=2))
        if len(predictions) == 1:
            return predictions[0]
        stacked = torch.stack(predictions)
        if self._average == "log_probabilities":
            return stacked.mean(0)
        # log of the mean probability: logsumexp minus log N
        return torch.logsumexp(stacked, 0) - math.log(len(predictions))

    def select(self, parents: Tensor) -> None:
        """Continue from other hypotheses of the same sentences: ``parents`` (B, K) indexes K."""
        for decoding in self._decodings:
            decoding.select(parents)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        for decoding in self._decodings:
            decoding.keep(sentences)
        if self._barred is not None:
            self._barred = self._barred[sentences]
