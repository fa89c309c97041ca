"""One or several networks that predict the next symbol together, step by step.

Ensembles average the networks' probabilities at each step, and their attention (lua, since May
2017). Shapes: B sentences, K hypotheses of each, m source length, V target types.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from convs2s.models.layers import fold_weights
from convs2s.models.network import Network


class Ensemble(nn.Module):
    """Networks over the same vocabularies, of any kinds; a single one is the common case."""

    def __init__(self, networks: Sequence[Network]) -> None:
        """Take the networks for inference: their weights are folded."""
        super().__init__()
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

    def start(self, source: Tensor, hypotheses: int) -> "Session":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        return Session(self._members(), source, hypotheses)

    def _members(self) -> list[Network]:
        return [cast(Network, network) for network in self.networks]


class Session:
    """The incremental state of decoding one batch."""

    def __init__(self, networks: Sequence[Network], source: Tensor, hypotheses: int) -> None:
        """Encode the source once."""
        self._decodings = [network.start(source, hypotheses) for network in networks]

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Predict from each hypothesis's last symbol (B, K).

        Returns:
            Log-probabilities (B, K, V), and the attention (B, K, m): the mean over the networks
            that have attention; None where none has.
        """
        predictions, attentions = [], []
        for decoding in self._decodings:
            logits, attention = decoding.step(previous)
            precision = torch.promote_types(logits.dtype, torch.float32)
            predictions.append(functional.log_softmax(logits.to(precision), dim=2))
            if attention is not None:
                attentions.append(attention)
        mean = torch.stack(attentions).mean(0) if attentions else None
        if len(predictions) == 1:
            return predictions[0], mean
        # log of the mean probability: logsumexp minus log N
        together = torch.logsumexp(torch.stack(predictions), 0) - math.log(len(predictions))
        return together, mean

    def select(self, parents: Tensor) -> None:
        """Continue from other hypotheses of the same sentences: ``parents`` (B, K) indexes K."""
        for decoding in self._decodings:
            decoding.select(parents)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        for decoding in self._decodings:
            decoding.keep(sentences)
