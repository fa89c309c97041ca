"""How probable an effect is by chance, where both the trainings and the sentences are drawn.

A model's score varies with its training (the run) and with the test set. The bootstrap here is
hierarchical: it draws sentences anew, and runs anew whose variance is known without drawing. Plain
resampling of both is wrong twice: of n runs it finds (n-1)/n of their variance, and it counts what
a run does to single sentences in both levels (Owen 2007, "The pigeonhole bootstrap"). So the levels
are put together as in the analysis of several readers of the same cases (Hillis, Berbaum and Metz
2008, "Recent developments in the Dorfman-Berbaum-Metz procedure for multireader ROC study
analysis"): MS(treatment, reader) + max(MS(treatment, case) - MS(all), 0), the readers being runs
and the cases sentences, with Satterthwaite's degrees of freedom.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from convs2s.scoring.bleu import ORDERS, Statistics, ngram_totals

RESAMPLING_SEED = 12345
DRAWS = 10_000  # test sets drawn anew
BATCHES = 10  # of the draws: their spread is the Monte Carlo error of p
LEAST_RUNS = 3  # on each side of a comparison that has a verdict
_CONFIDENCE = 0.95
_MOST_NUMBERS = 1 << 22  # that are drawn at a time
_MOST_KEPT = 10**8  # counts of drawn sentences that are kept for the next run of the same set

SetScores = npt.NDArray[np.float64]


class Measures(NamedTuple):
    """What follows from sums of sentence statistics, each of shape (sets,)."""

    bleu: SetScores  # tokenized, not smoothed
    without_brevity: SetScores  # the same without the brevity penalty
    length_ratio: SetScores  # words of the hypotheses by those of the references


class Spread(NamedTuple):
    """How far off a value may be by chance."""

    error: float  # its standard error
    freedom: float  # the degrees of freedom of that


@dataclass(frozen=True)
class SampledRuns:
    """Runs of one network, or what several of its scores add up to run by run."""

    scores: Sequence[float]  # a run's each, with sign and weight
    drawn: SetScores | None = None  # (runs, DRAWS): the same on test sets drawn anew
    singles: Sequence[float] | None = None
    """Of an ensemble, which is one run: the scores of models of it alone, with its weight. It is
    taken to vary from training to training as much as one of them does, which is too much."""


@dataclass(frozen=True)
class Effect:
    """A sum of means over runs, and how far off it may be by chance."""

    value: float
    spread: Spread
    batches: Sequence[Spread] = ()  # the spread by each batch of the draws

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95% confidence."""
        reach = 0.0
        if self.spread.error:
            quantile = float(stats.t.ppf((1 + _CONFIDENCE) / 2, self.spread.freedom))
            reach = self.spread.error * quantile
        return self.value - reach, self.value + reach

    def chance(
        self,
        low: float,
        high: float = math.inf,
    ) -> tuple[float, float]:
        """Return p, and its Monte Carlo error, of lying as far as it does from the nearer bound.

        One rule for both sides of a bound: inside, it is twice the larger of the two one-sided p
        of an equivalence test (Schuirmann 1987, TOST); outside, or with one bound, p of two sides.
        """
        distance = min(abs(self.value - low), abs(self.value - high))
        p = _two_sided(distance, self.spread)
        if not self.batches:
            return p, 0.0
        of_batches = [_two_sided(distance, spread) for spread in self.batches]
        return p, float(np.std(of_batches, ddof=1)) / math.sqrt(BATCHES)


def _two_sided(distance: float, spread: Spread) -> float:
    """Return Student's p of a distance from what is expected, on either side."""
    if spread.error == 0:
        return 0.0 if distance else 1.0
    return min(1.0, 2 * float(stats.t.sf(distance / spread.error, spread.freedom)))


def effect_of(samples: Sequence[SampledRuns], constant: float = 0.0) -> Effect:
    """Return the sum of the samples' means and a constant, with its chance.

    A sample has two runs or more, or is an ensemble. Where sentences are not known of all samples,
    the chance is that of the runs alone (Welch's test; of one sample Student's).
    """
    value = constant + sum(float(np.mean(sample.scores)) for sample in samples)
    drawn = [sample.drawn for sample in samples if sample.drawn is not None]
    if len(drawn) < len(samples):
        return Effect(value, _spread(samples, 0.0))
    batches = []
    split = [np.array_split(of_runs, BATCHES, axis=1) for of_runs in drawn]
    for batch in zip(*split, strict=True):
        batches.append(_spread(samples, _variance_of_sentences(batch)))
    return Effect(value, _spread(samples, _variance_of_sentences(drawn)), batches)


def _variance(sample: Sequence[float] | SetScores | int) -> float:
    """Return the variance of what a sample is drawn from."""
    return float(np.var(sample, ddof=1))


def _spread(samples: Iterable[SampledRuns], of_sentences: float) -> Spread:
    """Return how far off a sum of means may be, where sentences add so much to its variance."""
    of_runs = 0.0
    uncertainty = 0.0
    most_freedom = math.inf
    for sample in samples:
        varying = sample.singles or sample.scores
        degrees = len(varying) - 1
        variance = _variance(varying) / len(sample.scores)
        of_runs += variance
        uncertainty += variance**2 / degrees
        if sample.singles:
            # An ensemble's variance is that of runs which are counted already: no more freedom
            # than theirs.
            most_freedom = min(most_freedom, degrees)
    variance = of_sentences + of_runs
    # Satterthwaite's degrees of freedom.
    freedom = variance**2 / uncertainty if uncertainty else math.inf
    return Spread(math.sqrt(variance), min(freedom, most_freedom))


def _variance_of_sentences(drawn: Sequence[SetScores]) -> float:
    """Return what the sentences add to the variance, less what the runs' variance has of it.

    Each array is of shape (runs, draws).
    """
    whole = _variance(sum(of_runs.mean(axis=0) for of_runs in drawn))
    counted_twice = 0.0
    for of_runs in drawn:
        runs = len(of_runs)
        if runs > 1:
            apart = of_runs - of_runs.mean(axis=0)
            of_runs_apart = np.var(apart, axis=1, ddof=1).sum()
            counted_twice += float(of_runs_apart) / (runs * (runs - 1))
    return max(whole - counted_twice, 0.0)


def over_sentences(drawn: Sequence[SetScores], constant: float = 0.0) -> tuple[float, float]:
    """Return the interval of 95% confidence of runs as they are, on other such sentences."""
    outer = 100 * (1 - _CONFIDENCE) / 2
    total = constant + np.sum([of_runs.mean(axis=0) for of_runs in drawn], axis=0)
    low, high = np.percentile(total, [outer, 100 - outer]).tolist()
    return low, high


def measured(statistics: Statistics) -> Measures:
    """Return what the sentences' statistics, of shape (lines, 6), give, each of shape (1,)."""
    return _measures(_columns(statistics).sum(axis=0, keepdims=True))


def drawn_measures(statistics: Statistics, draws: int = DRAWS) -> Measures:
    """Return what test sets of sentences drawn anew give, each of shape (draws,).

    Sets of equally many lines are drawn alike, so that differences are of pairs (Koehn 2004).
    """
    lines = len(statistics)
    columns = _columns(statistics).astype(np.float32)
    counts = _kept_counts if lines * draws <= _MOST_KEPT else _counts
    sums = [drawn.astype(np.float32) @ columns for drawn in counts(lines, draws)]
    return _measures(np.concatenate(sums).astype(np.float64))


def _counts(lines: int, draws: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield how often each line is drawn, of shape (some draws, lines)."""
    generator = np.random.default_rng(RESAMPLING_SEED)
    step = max(1, _MOST_NUMBERS // lines)
    for start in range(0, draws, step):
        some = min(step, draws - start)
        drawn = generator.integers(lines, size=(some, lines))
        # One count for all draws: the lines of each have numbers of their own.
        drawn += lines * np.arange(some)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=some * lines)
        yield counts.reshape(some, lines).astype(np.uint8)


@lru_cache(maxsize=1)
def _kept_counts(lines: int, draws: int) -> list[npt.NDArray[np.uint8]]:
    return list(_counts(lines, draws))


def _columns(statistics: Statistics) -> SetScores:
    """Return (lines, 10): words, the reference's, matches and n-grams of each order."""
    return np.concatenate([statistics, ngram_totals(statistics)], axis=1).astype(np.float64)


def _measures(sums: SetScores) -> Measures:
    """Return what sums of columns, of shape (sets, 10), give."""
    words = sums[:, 0]
    reference = sums[:, 1]
    matches = sums[:, 2 : 2 + ORDERS]
    n_grams = sums[:, 2 + ORDERS :]
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = 100 * np.exp(np.log(matches / n_grams).mean(axis=1))
        without_brevity = np.where(matches.all(axis=1), precisions, 0.0)
        penalty = np.exp(np.minimum(1 - reference / words, 0.0))
        bleu = np.where(words > 0, without_brevity * penalty, 0.0)
        return Measures(bleu, without_brevity, words / reference)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p by Holm's correction (1979) for as many tests: the k-th smallest times n - k + 1."""
    order = np.argsort(p_values, kind="stable")
    tests_left = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    by_size = np.array(p_values)[order]
    corrected[order] = np.maximum.accumulate(tests_left * by_size)
    at_most_1: list[float] = np.minimum(corrected, 1.0).tolist()
    return at_most_1
