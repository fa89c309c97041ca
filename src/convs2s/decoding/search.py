"""Beam search over a batch of sentences, each of which has a result of its own.

Semantics (spec of the peer implementation, paper section 4.2): at each step the 2 x beam best
continuations are candidates; one that ends in ``</s>`` within the first ``beam`` of them is
finished; the first ``beam`` others go on. A sentence is done when it has ``beam`` finished
hypotheses or at its maximum length, where ``</s>`` is forced. The final score is the
log-likelihood divided by |y|^alpha, |y| counting ``</s>``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models.ensemble import Ensemble, Session


@dataclass(frozen=True)
class SearchOptions:
    """How to search; the defaults are the schema's.

    Attributes:
        beam: hypotheses that go on at each step; 1 is greedy search.
        length_penalty: alpha, the power of the length that divides the log-likelihood.
        minimum_length: words before ``</s>`` is allowed.
        maximum_factor: the maximum number of words is factor x source length + offset.
        maximum_offset: see ``maximum_factor``.
        unknown_penalty: taken off the log-probability of ``<unk>``.
    """

    beam: int
    length_penalty: float
    minimum_length: int
    maximum_factor: float
    maximum_offset: int
    unknown_penalty: float

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "SearchOptions":
        """Read a validated entry of config/decodings.yaml."""
        return cls(
            beam=settings["beam"],
            length_penalty=settings["length_penalty"],
            minimum_length=settings["minimum_length"],
            maximum_factor=settings["maximum_length"]["factor"],
            maximum_offset=settings["maximum_length"]["offset"],
            unknown_penalty=settings["unknown_penalty"],
        )


@dataclass(frozen=True)
class Hypothesis:
    """A finished output.

    Attributes:
        symbols: target indices without ``</s>``.
        score: log-likelihood / |y|^alpha.
        peaks: for each symbol the source position with the most attention, ``</s>`` excepted.
    """

    symbols: list[int]
    score: float
    peaks: list[int]


@torch.inference_mode()
def beam_search(
    ensemble: Ensemble, source: Tensor, options: SearchOptions
) -> list[list[Hypothesis]]:
    """Search for the outputs of each sentence.

    Args:
        ensemble: one or several networks.
        source: (B, m) indices, each row ending in ``</s>`` and padded on the right.
        options: beam, lengths, penalties.

    Returns:
        For each sentence its finished hypotheses, at most ``beam``, the best first.
    """
    search = _Search(ensemble.start(source, options.beam), source, options)
    positions = ensemble.maximum_length()
    if positions is not None:
        search.maximum.clamp_(max=positions)
    while len(search.sentences):
        search.step()
    return [sorted(found, key=lambda one: -one.score) for found in search.finished]


class _Search:
    """The state of a search. Shapes: A active sentences, K beam, t symbols so far."""

    def __init__(self, session: Session, source: Tensor, options: SearchOptions) -> None:
        batch, beam = len(source), options.beam
        self.session, self.options = session, options
        self.sentences = torch.arange(batch)  # (A,): active sentence -> place in the batch
        self.finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        self.symbols = source.new_full((batch, beam, 1), END)  # (A, K, t + 1)
        self.peaks = source.new_zeros((batch, beam, 0))  # (A, K, t)
        # Before the first step all hypotheses are the same one: only the first may go on.
        self.scores = torch.full((batch, beam), -torch.inf, device=source.device)  # (A, K)
        self.scores[:, 0] = 0.0
        words = ((source != PADDING) & (source != END)).sum(1)
        self.maximum = (words * options.maximum_factor).long() + options.maximum_offset  # (A,)
        self.no_word = (source == PADDING) | (source == END)  # (A, m)

    def step(self) -> None:
        """Extend every hypothesis by one symbol; finish and drop what is done."""
        beam, length = self.options.beam, self.symbols.shape[2] - 1
        predictions, attention = self.session.step(self.symbols[:, :, -1])
        totals = self._constrain(predictions, length) + self.scores.unsqueeze(2)  # (A, K, V)
        types = totals.shape[2]
        scores, places = totals.flatten(1).topk(min(2 * beam, beam * types))  # (A, 2K)
        parents, symbols = places // types, places % types
        peak = attention.masked_fill(self.no_word.unsqueeze(1), -1.0).argmax(2)  # (A, K)

        ends = symbols == END
        for row, column in (ends & scores.isfinite())[:, :beam].nonzero().tolist():
            self._finish(row, int(parents[row, column]), float(scores[row, column]), peak)

        # The first `beam` candidates that do not end go on, in their order.
        going = torch.sort(ends.to(torch.int8), dim=1, stable=True).indices[:, :beam]
        parents, symbols = parents.gather(1, going), symbols.gather(1, going)
        ended = ends.gather(1, going)
        self.scores = scores.gather(1, going).masked_fill(ended, -torch.inf)
        rows = torch.arange(len(parents), device=parents.device).unsqueeze(1)
        self.symbols = torch.cat([self.symbols[rows, parents], symbols.unsqueeze(2)], 2)
        peaks = torch.cat([self.peaks, peak.unsqueeze(2)], 2)
        self.peaks = peaks[rows, parents]
        self.session.select(parents)
        self._leave(length)

    def _constrain(self, predictions: Tensor, length: int) -> Tensor:
        """Bar what may not come next after ``length`` symbols."""
        predictions[:, :, PADDING] = -torch.inf
        predictions[:, :, UNKNOWN] -= self.options.unknown_penalty
        if length < self.options.minimum_length:
            predictions[:, :, END] = -torch.inf
        full = self.maximum <= length
        if full.any():
            ending = predictions[full][:, :, END].clone()
            predictions[full] = -torch.inf
            predictions[full.nonzero().squeeze(1), :, END] = ending
        return predictions

    def _finish(self, row: int, parent: int, total: float, peak: Tensor) -> None:
        found = self.finished[int(self.sentences[row])]
        if len(found) < self.options.beam:
            symbols: list[int] = self.symbols[row, parent, 1:].tolist()
            score = total / math.pow(len(symbols) + 1, self.options.length_penalty)
            peaks: list[int] = self.peaks[row, parent].tolist()
            found.append(Hypothesis(symbols, score, peaks))

    def _leave(self, length: int) -> None:
        """Drop the sentences that are done."""
        beam = self.options.beam
        going = [
            row
            for row, sentence in enumerate(self.sentences.tolist())
            if len(self.finished[sentence]) < beam and int(self.maximum[row]) > length
        ]
        if len(going) == len(self.sentences):
            return
        self.sentences = self.sentences[going]
        if not going:
            return
        kept = torch.tensor(going, device=self.scores.device)
        self.session.keep(kept)
        self.symbols, self.peaks = self.symbols[kept], self.peaks[kept]
        self.scores, self.maximum = self.scores[kept], self.maximum[kept]
        self.no_word = self.no_word[kept]
