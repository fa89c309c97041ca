"""Beam search over a batch of sentences, each of which has a result of its own.

Semantics (as in fairseq; paper, section 4.3): at each step the 2 x beam best continuations are
candidates; one that ends in ``</s>`` within the first ``beam`` of them is finished; the first
``beam`` others go on. A sentence is done when it has ``beam`` finished hypotheses or at its maximum
length, where ``</s>`` is forced. The final score is the log-likelihood divided by |y|^alpha, |y|
counting ``</s>``.

Sutskever et al. (2014, section 3.2) let a finished hypothesis leave the beam instead: nothing takes
its place, so the beam is one narrower from then on.

The network computes on its device. The bookkeeping of hypotheses is done in numpy, from a single
transfer at each step, so that the device is waited for once.

Shapes: A active sentences, K beam, C candidates, S types, t tokens so far, m source length.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    """A finished output."""

    tokens: list[int]  # target indices without </s>
    score: float  # log-likelihood / |y|^alpha
    alignment: list[int] | None  # source places with most attention, never </s>


@torch.inference_mode()
def beam_search(
    ensemble: Ensemble,
    source: Tensor,
    settings: DecodingSettings,
    shortlist: ShortlistedTypes | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[list[Hypothesis]]:
    """Return of each sentence its finished hypotheses, at most ``beam``, the best first.

    ``source`` (B, m) has rows of indices that end in ``</s>`` and are padded on the right. The
    ``shortlist`` has the target types that each sentence may use; None: all. Once ``is_stopped``,
    nobody wants the result any more, which is then not whole.
    """
    search_class = _GreedySearch if settings.beam == 1 else _Search
    search = search_class(ensemble, source, settings, shortlist)
    while search.goes_on.any() and not is_stopped():
        search.step()
    search.decoder.release()
    return [sorted(hypotheses, key=lambda row: -row.score) for hypotheses in search.finished]


Numbers = NDArray[np.float64]


class _Candidates(NamedTuple):
    """The best continuations of a step."""

    scores: Numbers  # (A, C), log-likelihoods, the best first
    parents: Indices  # (A, C), the hypothesis that each continues
    tokens: Indices  # (A, C), the token that it continues it by
    places: Indices | None  # (A, K), where each hypothesis has the most attention; None without any
    totals: Tensor  # the scores on the network's device
    previous: Tensor  # the tokens there


class _Search:
    """The state of a search."""

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
        # (A,): a decoder that keeps all sentences has finished ones among the active ones.
        self.goes_on = np.ones(batch, bool)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        self.tokens = np.zeros((batch, beam, 0), np.int64)  # (A, K, t)
        # (A, K, t): for each token the place with the most attention; None without attention.
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
        positions = ensemble.positions("target")
        if positions is not None:
            self.maximum = np.minimum(self.maximum, positions - 1)  # without </s>

    def step(self) -> None:
        """Extend every hypothesis by one token; drop the sentences that are done."""
        beam, length = self.settings.beam, self.tokens.shape[2]
        candidates = self._candidates(length, 2 * beam)
        scores = candidates.scores  # (A, 2K)
        if self.settings.finished == "leave":
            # The beam is narrower by each hypothesis that has finished.
            width = beam - np.array([len(self.finished[place]) for place in self.sentences])  # (A,)
            scores = np.where(np.arange(scores.shape[1]) >= width[:, None], -np.inf, scores)
        ends = candidates.tokens == END  # (A, 2K)
        for row, column in zip(*np.nonzero((ends & np.isfinite(scores))[:, :beam]), strict=True):
            self._finish(row, candidates.parents[row, column], scores[row, column])

        # The first `beam` candidates that do not end go on, in their order: a stable sort puts
        # them first. Where fewer are left, one that ends takes a place, with a score of -inf.
        going = np.argsort(ends, axis=1, kind="stable")[:, :beam]  # (A, K)
        rows = np.arange(len(going))[:, None]  # (A, 1)
        parents, tokens = candidates.parents[rows, going], candidates.tokens[rows, going]  # (A, K)
        scores, ended = scores[rows, going], ends[rows, going]  # (A, K)
        self.tokens = np.concatenate([self.tokens[rows, parents], tokens[:, :, None]], 2)
        if candidates.places is not None and self.alignment is not None:
            alignment = np.concatenate([self.alignment, candidates.places[:, :, None]], 2)
            self.alignment = alignment[rows, parents]
        self.decoder.select(self._to_device((rows * beam + parents).ravel()))
        self.previous = self._to_device(tokens)
        self.scores = self._to_device(np.where(ended, -np.inf, scores)).to(candidates.totals.dtype)
        finished = np.array([len(self.finished[place]) for place in self.sentences])  # (A,)
        self._keep((finished < beam) & (self.maximum > length))

    def _candidates(self, length: int, count: int) -> _Candidates:
        """Return the best continuations, in one transfer from the device."""
        totals, chosen, attention = self.decoder.best(
            self.previous,
            self.scores,
            count,
            lambda part, rows: self._constrain(part, rows, length),
        )  # both (A, C); ``chosen`` counts through K * S
        parents, tokens = chosen // self.decoder.types, chosen % self.decoder.types
        if self.types is not None:
            tokens = self.types[tokens]
        # float64 holds each of these numbers as it is, indices too.
        parts = [totals.double(), parents, tokens]
        if attention is not None:
            parts.append(attention.masked_fill(self.no_word.unsqueeze(1), -1.0).argmax(2))  # (A, K)
        transferred = torch.cat(parts, 1).cpu().numpy()  # (A, 3C + K), or (A, 3C)
        count = totals.shape[1]
        indices = transferred[:, count:].astype(np.int64)
        return _Candidates(
            transferred[:, :count],
            indices[:, :count],
            indices[:, count : 2 * count],
            None if attention is None else indices[:, 2 * count :],
            totals,
            tokens,
        )

    def _to_device(self, array: NDArray[Any]) -> Tensor:
        """Return an array on the network's device, without waiting for it."""
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def _constrain(self, predictions: Tensor, sentences: slice, length: int) -> None:
        """Bar from predictions (B', K, S) what may not come after ``length`` tokens.

        The special tokens stand at their own indices among the types of a shortlist as well.
        """
        predictions.select(2, PADDING).fill_(-torch.inf)
        if self.settings.unknown_penalty:
            predictions.select(2, UNKNOWN).sub_(self.settings.unknown_penalty)
        full = self.maximum[sentences] <= length  # (B',)
        end = predictions.select(2, END)  # (B', K), a view
        if length < self.settings.minimum_length:  # which may be more than the model has positions
            end.index_fill_(0, self._to_device(np.flatnonzero(~full)), -torch.inf)
        if full.any():  # nothing but </s> may follow
            rows = self._to_device(np.flatnonzero(full))
            ending = end.index_select(0, rows)
            predictions.index_fill_(0, rows, -torch.inf)
            end.index_copy_(0, rows, ending)

    def _finish(self, row: int, parent: int, total: float) -> None:
        """Keep a hypothesis (row, parent) that has ended, of a log-likelihood."""
        finished = self.finished[self.sentences[row]]
        if len(finished) == self.settings.beam:
            return
        divisor = math.pow(self.tokens.shape[2] + 1, self.settings.alpha)  # with </s>
        alignment = None if self.alignment is None else self.alignment[row, parent].tolist()
        tokens = self.tokens[row, parent].tolist()
        finished.append(Hypothesis(tokens, float(total) / divisor, alignment))

    def _keep(self, wanted: NDArray[np.bool_]) -> None:
        """Go on with some of the active sentences (A,)."""
        self.goes_on &= wanted
        if self.decoder.keeps_all or self.goes_on.all():
            return
        going = np.flatnonzero(self.goes_on)
        self.sentences, self.goes_on = self.sentences[going], self.goes_on[going]
        if not len(going):
            return
        kept = self._to_device(going)
        self.decoder.keep(kept)
        self.previous, self.scores = self.previous[kept], self.scores[kept]
        self.no_word = self.no_word[kept]
        self.maximum, self.tokens = self.maximum[going], self.tokens[going]
        self.alignment = None if self.alignment is None else self.alignment[going]


class _GreedySearch(_Search):
    """A beam of 1: a step's one candidate ends the output or extends it; no rows are reordered."""

    def step(self) -> None:
        """Extend every output by its best token; drop those that have ended."""
        length = self.tokens.shape[2]
        candidates = self._candidates(length, 1)
        ended = candidates.tokens[:, 0] == END  # (A,)
        for row in np.flatnonzero(ended & np.isfinite(candidates.scores[:, 0])).tolist():
            self._finish(row, 0, candidates.scores[row, 0])
        self.tokens = np.concatenate([self.tokens, candidates.tokens[:, :, None]], 2)
        if candidates.places is not None and self.alignment is not None:
            self.alignment = np.concatenate([self.alignment, candidates.places[:, :, None]], 2)
        self.previous, self.scores = candidates.previous, candidates.totals
        self._keep(~ended & (self.maximum > length))
