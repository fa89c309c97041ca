"""One or several networks that predict the next symbol together, step by step.

Ensembles average the networks' probabilities at each step (lua, since May 2017) or their
log-probabilities (before), and their attention. Shapes: B sentences, K hypotheses of each, m source
length, S selected target types (all, where none are selected).
"""

import math
from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.models.layers import fold_weights
from convs2s.models.network import Network, SelectedTypes, rows_of

Average = Literal["probabilities", "log_probabilities"]
"""What of the networks is averaged at each step."""


class Ensemble(nn.Module):
    """Networks over the same vocabularies, of any kinds; a single one is the common case."""

    def __init__(self, networks: Sequence[Network], average: Average = "probabilities") -> None:
        """Take the networks for inference: their weights are folded."""
        super().__init__()
        self._average: Average = average
        self.networks = nn.ModuleList(networks)
        self.eval()
        fold_weights(self)

    @property
    def attends(self) -> bool:
        """Whether any of the networks has attention."""
        return any(network.attends for network in self._members())

    def positions(self, side: str) -> int | None:
        """Return the most symbols of a side, ``</s>`` counted, that every network has room for."""
        limits = [network.positions[side] for network in self._members()]
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
        return Session(self._members(), source, hypotheses, selected, self._average)

    def _members(self) -> list[Network]:
        return [cast(Network, network) for network in self.networks]


class Session:
    """The incremental state of decoding one batch."""

    def __init__(
        self,
        networks: Sequence[Network],
        source: Tensor,
        hypotheses: int,
        selected: SelectedTypes | None,
        average: Average,
    ) -> None:
        """Encode the source once."""
        self._average = average
        self._decodings = [network.start(source, hypotheses) for network in networks]
        types = None if selected is None else selected.types
        self._outputs = [rows_of(network.output, types) for network in networks]
        self._barred = None if selected is None else selected.barred  # (B, S)

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Predict from each hypothesis's last symbol (B, K).

        Returns:
            Log-probabilities (B, K, S); averaged as such, those of all types sum to a probability
            of less than 1. And the attention (B, K, m): the mean over the networks
            that have attention; None where none has.
        """
        predictions, attentions = [], []
        for decoding, output in zip(self._decodings, self._outputs, strict=True):
            features, attention = decoding.step(previous)
            logits = functional.linear(features, *output)  # (B, K, S)
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            if self._barred is not None:
                logits = logits.masked_fill(self._barred.unsqueeze(1), -torch.inf)
            predictions.append(functional.log_softmax(logits, dim=2))
            if attention is not None:
                attentions.append(attention)
        mean = torch.stack(attentions).mean(0) if attentions else None
        if len(predictions) == 1:
            return predictions[0], mean
        stacked = torch.stack(predictions)
        if self._average == "log_probabilities":
            return stacked.mean(0), mean
        # log of the mean probability: logsumexp minus log N
        return torch.logsumexp(stacked, 0) - math.log(len(predictions)), mean

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
