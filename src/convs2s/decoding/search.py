"""Beam search over a batch of sentences, each of which has a result of its own.

Semantics (as in fairseq; paper, section 4.2): at each step the 2 x beam best
continuations are candidates; one that ends in ``</s>`` within the first ``beam`` of them is
finished; the first ``beam`` others go on. A sentence is done when it has ``beam`` finished
hypotheses or at its maximum length, where ``</s>`` is forced. The final score is the
log-likelihood divided by |y|^alpha, |y| counting ``</s>``.

Sutskever et al. (2014, section 3.2) let a finished hypothesis leave the beam instead: nothing takes
its place, so the beam is one narrower from then on.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING, UNKNOWN
from convs2s.models.ensemble import Ensemble, ShortlistedTypes


@dataclass(frozen=True)
class Hypothesis:
    """A finished output.

    Attributes:
        tokens: target indices without ``</s>``.
        score: log-likelihood / |y|^alpha.
        alignment: for each token the source position with the most attention, ``</s>`` excepted;
            None where no network has attention.
    """

    tokens: list[int]
    score: float
    alignment: list[int] | None


@torch.inference_mode()
def beam_search(
    ensemble: Ensemble,
    source: Tensor,
    settings: DecodingSettings,
    shortlist: ShortlistedTypes | None = None,
) -> list[list[Hypothesis]]:
    """Search for the outputs of each sentence.

    Args:
        ensemble: one or several networks.
        source: (B, m) indices, each row ending in ``</s>`` and padded on the right.
        settings: beam, lengths, penalties; the length penalty is a number.
        shortlist: the target types that each sentence may use; None: all.

    Returns:
        For each sentence its finished hypotheses, at most ``beam``, the best first.
    """
    search = _Search(ensemble, source, settings, shortlist)
    positions = ensemble.positions("target")
    if positions is not None:
        search.maximum.clamp_(max=positions - 1)  # without </s>
    while len(search.sentences):
        search.step()
    return [sorted(found, key=lambda one: -one.score) for found in search.finished]


class _Search:
    """The state of a search. Shapes: A active sentences, K beam, S types, t tokens so far."""

    def __init__(
        self,
        ensemble: Ensemble,
        source: Tensor,
        settings: DecodingSettings,
        shortlist: ShortlistedTypes | None,
    ) -> None:
        batch, beam = len(source), settings.beam
        self.decoder, self.settings = ensemble.start(source, beam, shortlist), settings
        self.types = None if shortlist is None else shortlist.types  # (S,)
        self.sentences = torch.arange(batch)  # (A,): active sentence -> place in the batch
        self.finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        self.tokens = source.new_full((batch, beam, 1), END)  # (A, K, t + 1)
        # (A, K, t): for each token the place with the most attention, where there is any.
        self.alignment = source.new_zeros((batch, beam, 0)) if ensemble.attends else None
        # Before the first step all hypotheses are the same one: only the first may go on.
        self.scores = torch.full((batch, beam), -torch.inf, device=source.device)  # (A, K)
        self.scores[:, 0] = 0.0
        words = ((source != PADDING) & (source != END)).sum(1)
        maximum = (words * settings.maximum_length.factor).long() + settings.maximum_length.offset
        self.maximum = maximum.clamp(min=settings.minimum_length)  # (A,)
        self.no_word = (source == PADDING) | (source == END)  # (A, m)

    def step(self) -> None:
        """Extend every hypothesis by one token; finish and drop what is done."""
        beam, length = self.settings.beam, self.tokens.shape[2] - 1
        predictions, places, attention = self.decoder.best(
            self.tokens[:, :, -1], 2 * beam, lambda part, rows: self._constrain(part, rows, length)
        )  # (A, K, C) of each hypothesis
        totals = predictions.add_(self.scores.unsqueeze(2)).flatten(1)
        scores, chosen = totals.topk(min(2 * beam, totals.shape[1]))  # (A, 2K)
        parents, tokens = chosen // places.shape[2], places.flatten(1).gather(1, chosen)
        if self.types is not None:
            tokens = self.types[tokens]
        if self.settings.finished == "leave":
            scores = self._narrow(scores)

        ends = tokens == END
        rows, columns = (ends & scores.isfinite())[:, :beam].nonzero().unbind(1)
        if len(rows):
            self._finish(rows, parents[rows, columns], scores[rows, columns])

        # The first `beam` candidates that do not end go on, in their order.
        going = torch.sort(ends.to(torch.int8), dim=1, stable=True).indices[:, :beam]
        parents, tokens = parents.gather(1, going), tokens.gather(1, going)
        ended = ends.gather(1, going)
        self.scores = scores.gather(1, going).masked_fill(ended, -torch.inf)
        rows = torch.arange(len(parents), device=parents.device).unsqueeze(1)
        self.tokens = torch.cat([self.tokens[rows, parents], tokens.unsqueeze(2)], 2)
        if attention is not None and self.alignment is not None:
            place = attention.masked_fill(self.no_word.unsqueeze(1), -1.0).argmax(2)  # (A, K)
            self.alignment = torch.cat([self.alignment, place.unsqueeze(2)], 2)[rows, parents]
        self.decoder.select(parents)
        self._drop_finished(length)

    def _constrain(self, predictions: Tensor, sentences: slice, length: int) -> None:
        """Bar what may not come next after ``length`` tokens of some of the sentences.

        The special tokens stand at their own indices among the shortlist types as well.
        """
        predictions[:, :, PADDING] = -torch.inf
        predictions[:, :, UNKNOWN] -= self.settings.unknown_penalty
        full = self.maximum[sentences] <= length
        if length < self.settings.minimum_length:  # which may be more than the model has positions
            predictions[~full, :, END] = -torch.inf
        if full.any():
            ending = predictions[full][:, :, END].clone()
            predictions[full] = -torch.inf
            predictions[full.nonzero().squeeze(1), :, END] = ending

    def _narrow(self, scores: Tensor) -> Tensor:
        """Bar the candidates (A, 2K) past the beam, which has lost what is finished."""
        finished = [len(self.finished[sentence]) for sentence in self.sentences.tolist()]
        width = self.settings.beam - torch.tensor(finished, device=scores.device)  # (A,)
        columns = torch.arange(scores.shape[1], device=scores.device)
        return scores.masked_fill(columns >= width.unsqueeze(1), -torch.inf)

    def _finish(self, rows: Tensor, parents: Tensor, totals: Tensor) -> None:
        """Keep hypotheses that have ended (N,): of which sentence, which, their log-likelihood."""
        tokens = self.tokens[rows, parents, 1:].tolist()
        alignment = None if self.alignment is None else self.alignment[rows, parents].tolist()
        length = math.pow(self.tokens.shape[2], self.settings.alpha)  # with </s>
        sentences = self.sentences[rows.cpu()].tolist()
        for number, (sentence, total) in enumerate(zip(sentences, totals.tolist(), strict=True)):
            found = self.finished[sentence]
            if len(found) < self.settings.beam:
                one = None if alignment is None else alignment[number]
                found.append(Hypothesis(tokens[number], total / length, one))

    def _drop_finished(self, length: int) -> None:
        """Drop the sentences that are done."""
        beam = self.settings.beam
        maximum = self.maximum.tolist()
        going = [
            row
            for row, sentence in enumerate(self.sentences.tolist())
            if len(self.finished[sentence]) < beam and maximum[row] > length
        ]
        if len(going) == len(self.sentences):
            return
        self.sentences = self.sentences[going]
        if not going:
            return
        kept = torch.tensor(going, device=self.scores.device)
        self.decoder.keep(kept)
        self.tokens = self.tokens[kept]
        self.alignment = None if self.alignment is None else self.alignment[kept]
        self.scores, self.maximum = self.scores[kept], self.maximum[kept]
        self.no_word = self.no_word[kept]
