"""Beam search over a batch of sentences, each of which has a result of its own.

Semantics (as in fairseq; paper, section 4.3): at each step the 2 x beam best continuations are
candidates; one that ends in ``</s>`` within the first ``beam`` of them is finished; the first
``beam`` others go on. A sentence is done when it has ``beam`` finished hypotheses or at its maximum
length, where ``</s>`` is forced. Scores are log-likelihoods divided by |y|^alpha, with ``</s>``.

Sutskever et al. (2014, section 3.2) let a finished hypothesis leave the beam instead: nothing takes
its place, so the beam is one narrower from then on.

The bookkeeping of hypotheses is done in numpy, whatever the network computes with.

Shapes: A active sentences, K beam, C candidates, S types, t tokens so far, m source length.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.steps import Candidates, Limits, Shortlisted

if TYPE_CHECKING:
    from convs2s.models.ensemble import Ensemble


@dataclass(frozen=True)
class Hypothesis:
    """A finished output."""

    tokens: list[int]  # target indices without </s>
    score: float  # log-likelihood / |y|^alpha
    alignment: list[int] | None  # source places with most attention, never </s>


def beam_search(
    ensemble: "Ensemble | OnnxEnsemble",
    source: ArrayLike,
    settings: DecodingSettings,
    shortlist: Shortlisted | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[list[Hypothesis]]:
    """Return of each sentence its finished hypotheses, at most ``beam``, the best first.

    ``source`` (B, m) has rows of indices that end in ``</s>`` and are padded on the right. The
    ``shortlist`` has the target types that each sentence may use; None: all. Once ``is_stopped``,
    nobody wants the result any more, which is then not whole where it takes more than one call.
    """
    source = np.asarray(source)
    is_plain = shortlist is None and settings.finished == "replace" and len(source) == 1
    # The graph takes two candidates for each hypothesis, which there have to be.
    if is_plain and isinstance(ensemble, OnnxEnsemble) and 2 * settings.beam < len(ensemble.types):
        finished = [_search_alone(ensemble, source, settings)]
    else:
        search_class = _GreedySearch if settings.beam == 1 else _Search
        search = search_class(ensemble, source, settings, shortlist)
        while search.goes_on.any() and not is_stopped():
            search.step()
        search.decoder.release()
        finished = search.finished
    return [sorted(hypotheses, key=lambda row: -row.score) for hypotheses in finished]


def _search_alone(
    ensemble: OnnxEnsemble, source: Indices, settings: DecodingSettings
) -> list[Hypothesis]:
    """Search for one source (1, m) by one graph, as ``_Search`` does step by step."""
    beam, finished = settings.beam, list[Hypothesis]()
    (maximum,) = _maximum(ensemble, source, settings).tolist()
    limits = settings.minimum_length, maximum, settings.unknown_penalty
    outputs = [(list[int](), list[int]())] * beam  # tokens and alignment of each hypothesis
    steps = ensemble.search_alone(source, beam, *limits)
    for length, (scores, parents, chosen, places) in enumerate(steps, start=1):
        extended = list[tuple[list[int], list[int]]]()
        for rank, (score, parent, token) in enumerate(zip(scores, parents, chosen, strict=True)):
            tokens, alignment = outputs[parent]
            if token != END and len(extended) < beam:
                extended.append(([*tokens, token], [*alignment, places[parent]]))
            elif token == END and rank < beam and len(finished) < beam and score > -math.inf:
                final = score / math.pow(length, settings.alpha)
                finished.append(Hypothesis(tokens, final, alignment))
        outputs = extended
    return finished


def _maximum(
    ensemble: "Ensemble | OnnxEnsemble", source: Indices, settings: DecodingSettings
) -> Indices:
    """Return the most tokens (B,) that each output may have, without ``</s>``."""
    words = ((source != PADDING) & (source != END)).sum(1)
    limit = settings.maximum_length
    maximum: Indices = (words * limit.factor).astype(np.int64) + limit.offset
    maximum = np.maximum(maximum, settings.minimum_length)
    positions = ensemble.positions("target")
    return maximum if positions is None else np.minimum(maximum, positions - 1)


class _Search:
    def __init__(
        self,
        ensemble: "Ensemble | OnnxEnsemble",
        source: Indices,
        settings: DecodingSettings,
        shortlist: Shortlisted | None,
    ) -> None:
        batch, beam = len(source), settings.beam
        self.decoder, self.settings = ensemble.start_search(source, beam, shortlist), settings
        self.sentences = np.arange(batch)  # (A,): active sentence -> place in the batch
        # (A,): a decoder that keeps all sentences has finished ones among the active ones.
        self.goes_on = np.ones(batch, bool)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        self.tokens = np.zeros((batch, beam, 0), np.int64)  # (A, K, t)
        # (A, K, t): for each token the place with the most attention; None without attention.
        self.alignment = np.zeros((batch, beam, 0), np.int64) if ensemble.attends else None
        self.previous = np.full((batch, beam), END)  # (A, K)
        # Before the first step all hypotheses are the same one: only the first may go on.
        self.scores = np.full((batch, beam), -np.inf, np.float32)  # (A, K)
        self.scores[:, 0] = 0.0
        self.maximum = _maximum(ensemble, source, settings)  # (A,)

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
        self.decoder.select((rows * beam + parents).ravel())
        self.previous, self.scores = tokens, np.where(ended, -np.inf, scores)
        finished = np.array([len(self.finished[place]) for place in self.sentences])  # (A,)
        self._keep((finished < beam) & (self.maximum > length))

    def _candidates(self, length: int, count: int) -> Candidates:
        """Return the best continuations of ``length`` tokens."""
        must_end = self.maximum <= length  # (A,)
        may_end = length >= self.settings.minimum_length  # which may be more than there is room for
        limits = Limits(self.settings.unknown_penalty, must_end, may_end)
        return self.decoder.best(self.previous, self.scores, count, limits)

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
        self.decoder.keep(going)
        self.previous, self.scores = self.previous[going], self.scores[going]
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
        self.previous, self.scores = candidates.tokens, candidates.scores
        self._keep(~ended & (self.maximum > length))
