"""Beam search over a batch of sentences, each of which has a result of its own.

Semantics (as in fairseq; paper, section 4.3): at each step the 2 x beam best continuations are
candidates; one that ends in ``</s>`` within the first ``beam`` of them is finished; the first
``beam`` others go on. A sentence is done when it has ``beam`` finished hypotheses or at its maximum
length, where ``</s>`` is forced. Scores are log-likelihoods divided by |y|^alpha, with ``</s>``.

Sutskever et al. (2014, section 3.2) let a finished hypothesis leave the beam instead: nothing takes
its place, so the beam is one narrower from then on.

Greedy search is a beam of 1: a loop of its own took 5% (fp32) and 7% (int8) less processor time in
batches of 64 sentences of the demo's model (AMD EPYC, 2026-11-28).

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
from convs2s.models.steps import Limits, Shortlisted

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
        search = _Search(ensemble, source, settings, shortlist)
        while search.goes_on.any() and not is_stopped():
            search.step()
        search.decoder.release()
        finished = search.finished
    return [sorted(hypotheses, key=lambda row: -row.score) for hypotheses in finished]


def _search_alone(
    ensemble: OnnxEnsemble,
    source: Indices,
    settings: DecodingSettings,
) -> list[Hypothesis]:
    """Search for one source (1, m) by one graph, as ``_Search`` does step by step.

    Of the demo's model, whose steps are cheap, a sentence takes 0.6 of the processor time that it
    takes by ``_Search`` (int8, beam 5, AMD EPYC, 2026-11-28).
    """
    beam = settings.beam
    finished: list[Hypothesis] = []
    (maximum,) = _maximum(ensemble, source, settings).tolist()
    steps = ensemble.search_alone(
        source, beam, settings.minimum_length, maximum, settings.unknown_penalty
    )
    start: tuple[list[int], list[int]] = ([], [])  # tokens and alignment of a hypothesis
    outputs = [start] * beam
    for length, (scores, parents, chosen, places) in enumerate(steps, start=1):
        extended: list[tuple[list[int], list[int]]] = []
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
    ensemble: "Ensemble | OnnxEnsemble",
    source: Indices,
    settings: DecodingSettings,
) -> Indices:
    """Return the most tokens (B,) that each output may have, without ``</s>``."""
    words = ((source != PADDING) & (source != END)).sum(1)
    limit = settings.maximum_length
    maximum: Indices = (words * limit.factor).astype(np.int64) + limit.offset
    maximum = np.maximum(maximum, settings.minimum_length)
    positions = ensemble.positions("target")
    return maximum if positions is None else np.minimum(maximum, positions - 1)


class _Search:
    """The hypotheses of a batch; they are kept in numpy, whatever the network computes with."""

    def __init__(
        self,
        ensemble: "Ensemble | OnnxEnsemble",
        source: Indices,
        settings: DecodingSettings,
        shortlist: Shortlisted | None,
    ) -> None:
        batch = len(source)
        beam = settings.beam
        self.settings = settings
        self.decoder = ensemble.start_search(source, beam, shortlist)
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
        beam = self.settings.beam
        length = self.tokens.shape[2]
        limits = Limits(
            unknown_penalty=self.settings.unknown_penalty,
            must_end=self.maximum <= length,
            # There may be no room for so many.
            may_end=length >= self.settings.minimum_length,
        )
        # The best continuations, two for each hypothesis.
        candidates = self.decoder.best(self.previous, self.scores, 2 * beam, limits)
        scores = candidates.scores  # (A, 2K)
        if self.settings.finished == "leave":
            # The beam is narrower by each hypothesis that has finished.
            width = beam - self._finished_counts()  # (A,)
            ranks = np.arange(scores.shape[1])  # (2K,)
            scores = np.where(ranks >= width[:, None], -np.inf, scores)
        ends = candidates.tokens == END  # (A, 2K)
        finishing = (ends & np.isfinite(scores))[:, :beam]  # (A, K)
        for row, rank in np.argwhere(finishing):
            self._finish(row, candidates.parents[row, rank], scores[row, rank])

        # The first `beam` candidates that do not end go on, in their order: a stable sort puts
        # them first. Where fewer are left, one that ends takes a place, with a score of -inf.
        going = np.argsort(ends, axis=1, kind="stable")[:, :beam]  # (A, K)
        rows = np.arange(len(going))[:, None]  # (A, 1)
        parents = candidates.parents[rows, going]  # (A, K)
        tokens = candidates.tokens[rows, going]  # (A, K)
        before = self.tokens[rows, parents]  # (A, K, t)
        self.tokens = np.concatenate([before, tokens[:, :, None]], 2)
        if candidates.places is not None and self.alignment is not None:
            alignment = np.concatenate([self.alignment, candidates.places[:, :, None]], 2)
            self.alignment = alignment[rows, parents]
        if beam > 1:  # a single hypothesis goes on from itself
            self.decoder.select((rows * beam + parents).ravel())
        self.previous = tokens
        self.scores = np.where(ends[rows, going], -np.inf, scores[rows, going])
        self._keep((self._finished_counts() < beam) & (self.maximum > length))

    def _finished_counts(self) -> NDArray[np.int64]:
        """Return how many hypotheses each active sentence (A,) has finished."""
        return np.array([len(self.finished[place]) for place in self.sentences])

    def _finish(
        self,
        row: int,
        parent: int,
        total: float,
    ) -> None:
        """Keep a hypothesis (row, parent) that has ended, of a log-likelihood."""
        finished = self.finished[self.sentences[row]]
        if len(finished) == self.settings.beam:
            return
        length = self.tokens.shape[2] + 1  # with </s>
        score = float(total) / math.pow(length, self.settings.alpha)
        alignment = None if self.alignment is None else self.alignment[row, parent].tolist()
        finished.append(Hypothesis(self.tokens[row, parent].tolist(), score, alignment))

    def _keep(self, wanted: NDArray[np.bool_]) -> None:
        """Go on with some of the active sentences (A,)."""
        self.goes_on &= wanted
        if self.decoder.keeps_all or self.goes_on.all():
            return
        going = np.flatnonzero(self.goes_on)
        self.sentences = self.sentences[going]
        self.goes_on = self.goes_on[going]
        if not len(going):
            return
        self.decoder.keep(going)
        self.previous = self.previous[going]
        self.scores = self.scores[going]
        self.maximum = self.maximum[going]
        self.tokens = self.tokens[going]
        if self.alignment is not None:
            self.alignment = self.alignment[going]
