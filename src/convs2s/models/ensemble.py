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

from convs2s.models.convs2s import ConvS2S, EncodedSource
from convs2s.models.layers import fold_weights


class Ensemble(nn.Module):
    """Networks over the same vocabularies; a single one is the common case."""

    def __init__(self, networks: Sequence[ConvS2S]) -> None:
        """Take the networks for inference: their weights are folded."""
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.eval()
        fold_weights(self)

    def maximum_length(self) -> int | None:
        """Return the most symbols before ``</s>`` that every network has a position for."""
        tables = [network.decoder.embedding.positions for network in self._members()]
        return min((len(table) - 1 for table in tables if table is not None), default=None)

    def start(self, source: Tensor, hypotheses: int) -> "Session":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        return Session(self._members(), source, hypotheses)

    def _members(self) -> list[ConvS2S]:
        return [cast(ConvS2S, network) for network in self.networks]


class Session:
    """The incremental state of decoding one batch."""

    def __init__(self, networks: Sequence[ConvS2S], source: Tensor, hypotheses: int) -> None:
        """Encode the source once; it is never copied for each hypothesis."""
        self._networks = networks
        self._encoded = [network.encode(source) for network in networks]
        self._inputs = [network.initial_inputs(len(source), hypotheses) for network in networks]
        self._position = 0

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Predict from each hypothesis's last symbol (B, K).

        Returns:
            Log-probabilities (B, K, V), and the attention (B, K, m): the mean over the decoder's
            attending blocks and over the networks.
        """
        predictions, attentions = [], []
        for index, network in enumerate(self._networks):
            logits, self._inputs[index], layers = network.decoder.step(
                previous, self._position, self._inputs[index], self._encoded[index]
            )
            precision = torch.promote_types(logits.dtype, torch.float32)
            predictions.append(functional.log_softmax(logits.to(precision), dim=2))
            attentions.append(torch.stack(layers).to(precision).mean(0))
        self._position += 1
        if len(predictions) == 1:
            return predictions[0], attentions[0]
        # log of the mean probability: logsumexp minus log N
        together = torch.logsumexp(torch.stack(predictions), 0) - math.log(len(predictions))
        return together, torch.stack(attentions).mean(0)

    def select(self, parents: Tensor) -> None:
        """Continue from other hypotheses of the same sentences: ``parents`` (B, K) indexes K."""
        rows = torch.arange(len(parents), device=parents.device).unsqueeze(1)
        self._inputs = [[earlier[rows, parents] for earlier in inputs] for inputs in self._inputs]

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone: ``sentences`` indexes B."""
        self._inputs = [[earlier[sentences] for earlier in inputs] for inputs in self._inputs]
        self._encoded = [
            EncodedSource(
                encoded.keys[sentences], encoded.values[sentences], encoded.padding[sentences]
            )
            for encoded in self._encoded
        ]
