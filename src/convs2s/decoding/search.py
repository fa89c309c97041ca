"""Beam search over a batch of sentences, each of which has a result of its own.

Semantics (as in fairseq; paper, section 4.2): at each step the 2 x beam best
continuations are candidates; one that ends in ``</s>`` within the first ``beam`` of them is
finished; the first ``beam`` others go on. A sentence is done when it has ``beam`` finished
hypotheses or at its maximum length, where ``</s>`` is forced. The final score is the
log-likelihood divided by |y|^alpha, |y| counting ``</s>``.

Sutskever et al. (2014, section 3.2) let a finished hypothesis leave the beam instead: nothing takes
its place, so the beam is one narrower from then on.

The network computes on its device; what became of the candidates is decided here, from what one
transfer a step brings.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices
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
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[list[Hypothesis]]:
    """Search for the outputs of each sentence.

    Args:
        ensemble: one or several networks.
        source: (B, m) indices, each row ending in ``</s>`` and padded on the right.
        settings: beam, lengths, penalties; the length penalty is a number.
        shortlist: the target types that each sentence may use; None: all.
        is_stopped: whether nobody wants the result any more, which is then not whole.

    Returns:
        For each sentence its finished hypotheses, at most ``beam``, the best first.
    """
    kind = _GreedySearch if settings.beam == 1 else _Search
    search = kind(ensemble, ensemble.filled(source, shortlist), settings, shortlist)
    search.goes_on[len(source) :] = False
    positions = ensemble.positions("target")
    if positions is not None:
        np.minimum(search.maximum, positions - 1, out=search.maximum)  # without </s>
    while search.goes_on.any() and not is_stopped():
        search.step()
    search.decoder.release()
    found = search.finished[: len(source)]
    return [sorted(hypotheses, key=lambda one: -one.score) for hypotheses in found]


Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class _Candidates:
    """The best continuations of a step. Shapes: A active sentences, C candidates, K beam.

    Attributes:
        scores: (A, C), log-likelihoods, the best first.
        parents: (A, C), which hypothesis each continues.
        tokens: (A, C), by what.
        places: (A, K), for each hypothesis the place with the most attention, where there is any.
        totals: ``scores`` on the network's device.
        previous: ``tokens`` there.
    """

    scores: Numbers
    parents: Indices
    tokens: Indices
    places: Indices | None
    totals: Tensor
    previous: Tensor


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
        self.decoder, self.settings = ensemble.start_search(source, beam, shortlist), settings
        self.types = None if shortlist is None else shortlist.types  # (S,)
        self.device = source.device
        self.sentences = np.arange(batch)  # (A,): active sentence -> place in the batch
        # (A,): a decoder that keeps all sentences has some that are done among the active ones.
        self.goes_on = np.ones(batch, bool)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        self.tokens = np.zeros((batch, beam, 0), np.int64)  # (A, K, t)
        # (A, K, t): for each token the place with the most attention, where there is any.
        self.alignment = np.zeros((batch, beam, 0), np.int64) if ensemble.attends else None
        self.previous = source.new_full((batch, beam), END)  # (A, K)
        # Before the first step all hypotheses are the same one: only the first may go on.
        self.scores = torch.full((batch, beam), -torch.inf, device=self.device)  # (A, K)
        self.scores[:, 0] = 0.0
        self.no_word = (source == PADDING) | (source == END)  # (A, m)
        words = (~self.no_word).sum(1).cpu().numpy()
        limit = settings.maximum_length
        maximum = (words * limit.factor).astype(np.int64) + limit.offset
        self.maximum = np.maximum(maximum, settings.minimum_length)  # (A,)

    def step(self) -> None:
        """Extend every hypothesis by one token; finish and drop what is done."""
        beam, length = self.settings.beam, self.tokens.shape[2]
        found = self._candidates(length, 2 * beam)
        scores = found.scores
        if self.settings.finished == "leave":
            scores = self._narrow(scores)
        ends = found.tokens == END
        for row, column in zip(*np.nonzero((ends & np.isfinite(scores))[:, :beam]), strict=True):
            self._finish(row, found.parents[row, column], scores[row, column])

        # The first `beam` candidates that do not end go on, in their order.
        going = np.argsort(ends, axis=1, kind="stable")[:, :beam]
        rows = np.arange(len(going))[:, None]
        parents, tokens = found.parents[rows, going], found.tokens[rows, going]
        scores, ended = scores[rows, going], ends[rows, going]
        self.tokens = np.concatenate([self.tokens[rows, parents], tokens[:, :, None]], 2)
        if found.places is not None and self.alignment is not None:
            alignment = np.concatenate([self.alignment, found.places[:, :, None]], 2)
            self.alignment = alignment[rows, parents]
        self.decoder.select(self._there((rows * beam + parents).ravel()))
        self.previous = self._there(tokens)
        self.scores = self._there(np.where(ended, -np.inf, scores)).to(found.totals.dtype)
        self._drop_finished(length)

    def _candidates(self, length: int, count: int) -> _Candidates:
        """Compute the best continuations, and bring them here at once."""
        totals, chosen, attention = self.decoder.best(
            self.previous,
            self.scores,
            count,
            lambda part, rows: self._constrain(part, rows, length),
        )  # (A, C) in K * S
        parents, tokens = chosen // self.decoder.types, chosen % self.decoder.types
        if self.types is not None:
            tokens = self.types[tokens]
        # As float64 each number is the same, indices too.
        parts = [totals.double(), parents, tokens]
        if attention is not None:
            parts.append(attention.masked_fill(self.no_word.unsqueeze(1), -1.0).argmax(2))  # (A, K)
        brought = torch.cat(parts, 1).cpu().numpy()
        count = totals.shape[1]
        indices = brought[:, count:].astype(np.int64)
        return _Candidates(
            brought[:, :count],
            indices[:, :count],
            indices[:, count : 2 * count],
            None if attention is None else indices[:, 2 * count :],
            totals,
            tokens,
        )

    def _there(self, array: NDArray[Any]) -> Tensor:
        """Return an array on the network's device, without waiting for it."""
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def _constrain(self, predictions: Tensor, sentences: slice, length: int) -> None:
        """Bar what may not come next after ``length`` tokens of some of the sentences.

        The special tokens stand at their own indices among the shortlist types as well.
        """
        predictions.select(2, PADDING).fill_(-torch.inf)
        if self.settings.unknown_penalty:
            predictions.select(2, UNKNOWN).sub_(self.settings.unknown_penalty)
        full = self.maximum[sentences] <= length
        end = predictions.select(2, END)
        if length < self.settings.minimum_length:  # which may be more than the model has positions
            end.index_fill_(0, self._there(np.flatnonzero(~full)), -torch.inf)
        if full.any():
            rows = self._there(np.flatnonzero(full))
            ending = end.index_select(0, rows)
            predictions.index_fill_(0, rows, -torch.inf)
            end.index_copy_(0, rows, ending)

    def _narrow(self, scores: Numbers) -> Numbers:
        """Bar the candidates (A, 2K) past the beam, which has lost what is finished."""
        finished = [len(self.finished[sentence]) for sentence in self.sentences]
        width = self.settings.beam - np.array(finished)  # (A,)
        return np.where(np.arange(scores.shape[1]) >= width[:, None], -np.inf, scores)

    def _finish(self, row: int, parent: int, total: float) -> None:
        """Keep a hypothesis that has ended: of which sentence, which, its log-likelihood."""
        found = self.finished[self.sentences[row]]
        if len(found) == self.settings.beam:
            return
        length = math.pow(self.tokens.shape[2] + 1, self.settings.alpha)  # with </s>
        alignment = None if self.alignment is None else self.alignment[row, parent].tolist()
        tokens = self.tokens[row, parent].tolist()
        found.append(Hypothesis(tokens, float(total) / length, alignment))

    def _drop_finished(self, length: int) -> None:
        """Drop the sentences that are done."""
        found = np.array([len(self.finished[sentence]) for sentence in self.sentences])
        self._keep((found < self.settings.beam) & (self.maximum > length))

    def _keep(self, wanted: NDArray[np.bool_]) -> None:
        """Go on with some of the active sentences (A,)."""
        self.goes_on &= wanted
        if self.decoder.keeps_all or self.goes_on.all():
            return
        going = np.flatnonzero(self.goes_on)
        self.sentences, self.goes_on = self.sentences[going], self.goes_on[going]
        if not len(going):
            return
        kept = self._there(going)
        self.decoder.keep(kept)
        self.previous, self.scores = self.previous[kept], self.scores[kept]
        self.no_word = self.no_word[kept]
        self.maximum, self.tokens = self.maximum[going], self.tokens[going]
        self.alignment = None if self.alignment is None else self.alignment[going]


class _GreedySearch(_Search):
    """A beam of 1: one candidate a step, which ends the output or goes on, in its place."""

    def step(self) -> None:
        """Extend every output by its best token; drop those that have ended."""
        length = self.tokens.shape[2]
        found = self._candidates(length, 1)
        ended = found.tokens[:, 0] == END
        for row in np.flatnonzero(ended & np.isfinite(found.scores[:, 0])).tolist():
            self._finish(row, 0, found.scores[row, 0])
        self.tokens = np.concatenate([self.tokens, found.tokens[:, :, None]], 2)
        if found.places is not None and self.alignment is not None:
            self.alignment = np.concatenate([self.alignment, found.places[:, :, None]], 2)
        self.previous, self.scores = found.previous, found.totals
        self._keep(~ended & (self.maximum > length))
