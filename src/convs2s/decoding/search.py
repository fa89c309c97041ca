"""Beam search over a batch of sentences, which do not influence each other's results.

The semantics are those of fairseq (paper, section 4.3):

- At each step, the 2 x beam best continuations are the candidates, the best first.
- A candidate that ends in ``</s>`` is finished if it is among the first ``beam`` candidates.
- The first ``beam`` candidates that do not end in ``</s>`` are extended in the next step.
- The search for a sentence ends when ``beam`` hypotheses are finished, or at the maximum length,
  at which ``</s>`` is forced.
- The score of a hypothesis is its log-likelihood divided by |y|^alpha, where |y| includes ``</s>``.

With the setting `finished: leave`, a finished hypothesis leaves the beam without a replacement, so
each one makes the beam narrower by one (Sutskever et al., 2014, section 3.2).

Greedy search is beam search with a beam of 1. It has no loop of its own, because that saved only 5%
(fp32) and 7% (int8) of the processor time, in batches of 64 sentences with the demo's model (AMD
EPYC, 2026-11-28).

Shapes: A rows of the arrays, one for each sentence that was not removed, K beam, t tokens so far,
B sentences in the batch, m source length.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.parallel import Stop
from convs2s.models.onnx_builder import RunOptions
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.steps import Limits, Shortlisted

if TYPE_CHECKING:
    from convs2s.models.ensemble import Ensemble


@dataclass(frozen=True)
class Hypothesis:
    """A finished output."""

    tokens: list[int]  # target indices without </s>
    score: float  # log-likelihood / |y|^alpha
    alignment: list[int] | None
    """For each token, the position of the source token with the most attention, ``</s>`` excluded.
    None if no network has attention."""


def beam_search(
    ensemble: "Ensemble | OnnxEnsemble",
    source: ArrayLike,
    settings: DecodingSettings,
    shortlist: Shortlisted | None = None,
    stopped: Stop | None = None,
) -> list[list[Hypothesis]]:
    """Return the finished hypotheses of each sentence, at most ``beam``, the best first.

    ``source`` (B, m) has rows of indices that end in ``</s>`` and are padded on the right. The
    ``shortlist`` contains the target types that each sentence may use; None allows all types. If
    ``stopped`` is set, the search ends after the current step, and hypotheses may be missing.
    """
    stopped = stopped or Stop()
    source = np.asarray(source)
    # `_search_alone` is faster than `_Search`, but it covers only this case.
    if (
        isinstance(ensemble, OnnxEnsemble)
        and len(source) == 1
        and shortlist is None
        and settings.finished == "replace"
        # The graph always selects 2 x beam candidates, so the vocabulary must have more types.
        and 2 * settings.beam < len(ensemble.types)
    ):
        results = [_search_alone(ensemble, source, settings, stopped)]
    else:
        search = _Search(ensemble, source, settings, shortlist)
        while search.is_active.any() and not stopped.is_set():
            search.step()
        search.decoder.release()
        results = search.results
    # The sort is stable: of equal hypotheses, the one that was finished first comes first.
    return [
        sorted(finished, key=lambda hypothesis: -hypothesis.score)
        for finished in results
    ]


def _search_alone(
    ensemble: OnnxEnsemble,
    source: Indices,
    settings: DecodingSettings,
    stopped: Stop,
) -> list[Hypothesis]:
    """Search for one source (1, m) with a single ONNX graph, with the same result as `_Search`.

    With the demo's model, whose steps are cheap, a sentence takes 60% of the processor time that it
    takes with `_Search` (int8, beam 5, AMD EPYC, 2026-11-28).
    """
    beam = settings.beam
    (maximum,) = _maximum_lengths(ensemble, source, settings).tolist()
    run_options = RunOptions()
    # Log fatal errors only: a call that is ended early would log an error.
    run_options.log_severity_level = 4
    try:
        with stopped.ending(run_options):
            steps = ensemble.search_alone(
                source,
                beam,
                settings.minimum_length,
                maximum,
                settings.unknown_penalty,
                run_options,
            )
    except Exception:
        # If a call is ended, ONNX Runtime raises an exception whose class has no public name.
        if not stopped.is_set():
            raise
        return []
    finished: list[Hypothesis] = []
    empty: tuple[list[int], list[int]] = ([], [])  # tokens and alignment
    hypotheses = [empty] * beam
    # In each step, `scores`, `parents` and `chosen` have an entry for each candidate, the best
    # first. `places` has one for each hypothesis that is extended: the source position with the
    # most attention.
    for length, (scores, parents, chosen, places) in enumerate(steps, start=1):
        extended: list[tuple[list[int], list[int]]] = []
        for rank, (score, parent, token) in enumerate(
            zip(scores, parents, chosen, strict=True)
        ):
            tokens, alignment = hypotheses[parent]
            if token == END:
                if rank < beam and len(finished) < beam and score > -math.inf:
                    final = score / math.pow(length, settings.alpha)
                    finished.append(Hypothesis(tokens, final, alignment))
            elif len(extended) < beam:
                extended.append(([*tokens, token], [*alignment, places[parent]]))
        hypotheses = extended
    return finished


def _maximum_lengths(
    ensemble: "Ensemble | OnnxEnsemble",
    source: Indices,
    settings: DecodingSettings,
) -> Indices:
    """Return the maximum number of tokens (B,) in each output, without ``</s>``."""
    lengths = ((source != PADDING) & (source != END)).sum(1)
    limit = settings.maximum_length
    maximum: Indices = (lengths * limit.factor).astype(np.int64) + limit.offset
    positions = ensemble.positions("target")
    return maximum if positions is None else np.minimum(maximum, positions - 1)


class _Search:
    """The search for a batch, in numpy alone, so that it serves networks of torch and of ONNX."""

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
        self.decoder = ensemble.start(source, beam, shortlist)
        # The finished hypotheses of each sentence of the batch.
        self.results: list[list[Hypothesis]] = [[] for _ in range(batch)]
        # (A,): for each row of the arrays below, the list of its sentence in `results`.
        self.finished = list(self.results)
        # (A,): whether the search for a sentence goes on. If the decoder keeps all sentences, the
        # rows of sentences that are done stay in the arrays and are still computed.
        self.is_active = np.ones(batch, bool)
        # (A, K, 1 + t): the first token is </s>, the decoder's input in the first step.
        self.tokens = np.full((batch, beam, 1), END)
        # (A, K, t): for each further token, the source position with the most attention; None
        # without attention.
        self.alignment = (
            np.zeros((batch, beam, 0), np.int64) if ensemble.attends else None
        )
        # Before the first step, the hypotheses of a sentence are equal. Only the first may be
        # extended; otherwise each candidate would occur K times.
        self.scores = np.full((batch, beam), -np.inf, np.float32)  # (A, K)
        self.scores[:, 0] = 0.0
        self.maximum = _maximum_lengths(ensemble, source, settings)  # (A,)

    def step(self) -> None:
        """Extend every hypothesis by one token, and remove the sentences that are done."""
        beam = self.settings.beam
        previous = self.tokens[:, :, -1]  # (A, K)
        length = self.tokens.shape[2] - 1  # t
        limits = Limits(
            unknown_penalty=self.settings.unknown_penalty,
            must_end=self.maximum <= length,
            # `must_end` overrides `may_end`: a short source or a model with few positions may have
            # a maximum below the minimum length.
            may_end=length >= self.settings.minimum_length,
        )
        # The 2K best continuations of each sentence, the best first.
        candidates = self.decoder.best(previous, self.scores, 2 * beam, limits)
        scores = candidates.scores  # (A, 2K)
        if self.settings.finished == "leave":
            # Each finished hypothesis makes the beam narrower by one.
            width = beam - self._finished_counts()  # (A,)
            ranks = np.arange(scores.shape[1])  # (2K,)
            scores = np.where(ranks >= width[:, None], -np.inf, scores)
        ends = candidates.tokens == END  # (A, 2K)
        finishing = (ends & np.isfinite(scores))[:, :beam]  # (A, K)
        for row, rank in np.argwhere(finishing):
            self._finish(row, candidates.parents[row, rank], scores[row, rank])

        # The first `beam` candidates that do not end are extended in the next step. A stable sort
        # by whether a candidate ends puts them first, in their order. If there are fewer of them,
        # candidates that end fill up the beam, with a score of -inf.
        kept = np.argsort(ends, axis=1, kind="stable")[:, :beam]  # (A, K)
        rows = np.arange(len(kept))[:, None]  # (A, 1)
        parents = candidates.parents[rows, kept]  # (A, K)
        tokens = candidates.tokens[rows, kept]  # (A, K)
        parent_tokens = self.tokens[rows, parents]  # (A, K, 1 + t)
        self.tokens = np.concatenate([parent_tokens, tokens[:, :, None]], 2)
        if candidates.places is not None and self.alignment is not None:
            # `places` (A, K) belong to the parents, so they are appended before the selection.
            alignment = np.concatenate(
                [self.alignment, candidates.places[:, :, None]], 2
            )
            self.alignment = alignment[rows, parents]
        if beam > 1:  # with a beam of 1, the parent of each hypothesis is itself
            self.decoder.select((rows * beam + parents).ravel())
        self.scores = np.where(ends[rows, kept], -np.inf, scores[rows, kept])
        self._keep((self._finished_counts() < beam) & (self.maximum > length))

    def _finished_counts(self) -> NDArray[np.int64]:
        """Return the number of finished hypotheses of each row (A,)."""
        return np.array([len(finished) for finished in self.finished])

    def _finish(
        self,
        row: int,
        parent: int,
        total: float,
    ) -> None:
        """Add a finished hypothesis, unless its sentence already has ``beam`` of them.

        The finished hypothesis is hypothesis ``parent`` of row ``row``, followed by ``</s>``. Its
        log-likelihood is ``total``.
        """
        finished = self.finished[row]
        if len(finished) == self.settings.beam:
            return
        length = self.tokens.shape[2]  # t and </s>
        score = float(total) / math.pow(length, self.settings.alpha)
        tokens = self.tokens[row, parent, 1:].tolist()
        alignment = None
        if self.alignment is not None:
            alignment = self.alignment[row, parent].tolist()
        finished.append(Hypothesis(tokens, score, alignment))

    def _keep(self, goes_on: NDArray[np.bool_]) -> None:
        """Remove the sentences that are done from all arrays, unless the decoder keeps all.

        ``goes_on`` (A,) says whether the search for a sentence goes on.
        """
        self.is_active &= goes_on
        is_over = not self.is_active.any()  # then no step follows, and all may stay
        if self.decoder.keeps_all or self.is_active.all() or is_over:
            return
        active = np.flatnonzero(self.is_active)
        self.decoder.keep(active)
        self.is_active = self.is_active[active]
        self.finished = [self.finished[row] for row in active]
        self.scores = self.scores[active]
        self.maximum = self.maximum[active]
        self.tokens = self.tokens[active]
        if self.alignment is not None:
            self.alignment = self.alignment[active]
