"""Estimate how probable it is that a difference between scores is due to chance.

A model's score varies with its training (the run) and with the sentences of the test set. The
bootstrap in this module is hierarchical. It resamples the sentences. It does not resample the runs,
because the variance of their mean is known in closed form.

Resampling both runs and sentences would be wrong in two ways. With n runs, it finds only (n-1)/n of
their variance. It also counts the interaction of runs and sentences twice, once in each level (Owen
2007, "The pigeonhole bootstrap"). So the two levels are combined as in studies in which several
readers judge the same cases (Hillis, Berbaum and Metz 2008, "Recent developments in the
Dorfman-Berbaum-Metz procedure for multireader ROC study analysis"). Here the readers are the runs,
and the cases are the sentences. The variance is A + max(B - C, 0), with Satterthwaite's degrees of
freedom. In their terms A is MS(treatment, reader), B is MS(treatment, case), and C is MS(treatment,
reader, case), each scaled to the variance of the value:

- A is the variance between runs, ``run_variance`` in `_spread`.
- B is the variance over resampled test sets, ``whole`` in `_sentence_variance`.
- C is the interaction of runs and sentences, ``counted_twice`` in `_sentence_variance`.
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
DRAWS = 10_000  # resampled test sets
# Batches of draws; the Monte Carlo error of p is computed from their spread.
BATCHES = 10
# Minimum number of runs on each side of a comparison that gets a verdict.
LEAST_RUNS = 3
# Minimum number of networks whose variances between runs are pooled.
LEAST_POOLED = 3
_CONFIDENCE = 0.95
_POWER = 0.8  # the chance of finding the smallest detectable effect
_MAX_INDICES_AT_ONCE = 1 << 22  # random sentence indices that are generated at a time
# Maximum product of draws and sentences for which the counts are cached.
_MAX_CACHED_COUNTS = 10**8

# Scores on several test sets, such as resampled ones.
SetScores = npt.NDArray[np.float64]


class Measures(NamedTuple):
    """The measures that follow from sums of sentence statistics, each of shape (sets,)."""

    bleu: SetScores  # tokenized, not smoothed
    without_brevity: SetScores  # BLEU without the brevity penalty
    length_ratio: SetScores  # words of the hypotheses / words of the references


class Spread(NamedTuple):
    """The standard error of a value, and the degrees of freedom of that standard error."""

    error: float
    degrees: float


@dataclass(frozen=True)
class Pool:
    """The variance of one run's score, estimated from several networks that were trained alike."""

    variance: float
    degrees: int
    networks: int
    p_equal: float  # of Levene's test that the networks have the same variance

    @classmethod
    def of(cls, networks: Sequence[Sequence[float]]) -> "Pool | None":
        """Pool the variances of the runs of each network.

        Return None if there are fewer than ``LEAST_POOLED`` networks of several runs, or if their
        variances differ: p < 0.05 by Levene's test with medians (Brown and Forsythe 1974).
        """
        several = [runs for runs in networks if len(runs) > 1]
        if len(several) < LEAST_POOLED:
            return None
        if not any(map(_variance, several)):  # there is no spread to test
            return None
        p_equal = float(stats.levene(*several).pvalue)
        if p_equal < 1 - _CONFIDENCE:
            return None
        degrees = sum(len(runs) - 1 for runs in several)
        squares = sum(_variance(runs) * (len(runs) - 1) for runs in several)
        return cls(squares / degrees, degrees, len(several), p_equal)


@dataclass(frozen=True)
class SampledRuns:
    """The scores of the runs of one network, or a weighted sum of several of its scores per run."""

    scores: Sequence[float]  # of each run, multiplied by its sign and weight
    # (runs, DRAWS): such scores on the resampled test sets.
    drawn: SetScores | None = None
    singles: Sequence[float] | None = None
    """For an ensemble, which is a single run: the scores of its single models, multiplied by the
    ensemble's weight. The ensemble's variance between trainings is taken to be that of a single
    model, which overestimates it."""
    pool: Pool | None = None
    """The source of the variance between runs. None: the scores of these runs, or ``singles``."""
    weight: float = 1.0  # the sign and weight that the scores were multiplied by


@dataclass(frozen=True)
class Effect:
    """A sum of means over runs, with its standard error."""

    value: float
    spread: Spread
    # The spread computed from each batch of the draws alone.
    batches: Sequence[Spread] = ()

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval."""
        margin = 0.0
        if self.spread.error:
            quantile = float(stats.t.ppf((1 + _CONFIDENCE) / 2, self.spread.degrees))
            margin = self.spread.error * quantile
        return self.value - margin, self.value + margin

    @property
    def detectable(self) -> float:
        """The smallest true effect that 80% of such experiments would find significant."""
        quantiles = stats.t.ppf([(1 + _CONFIDENCE) / 2, _POWER], self.spread.degrees)
        return self.spread.error * float(quantiles.sum())

    def p_value(
        self,
        low: float,
        high: float = math.inf,
    ) -> tuple[float, float]:
        """Return the p-value of the distance to the nearer bound, and its Monte Carlo error.

        Between two bounds it is the p-value of an equivalence test, which is the larger of its two
        one-sided p-values (TOST, Schuirmann 1987). Outside of them, or with ``low`` as the only
        bound, it is the usual two-sided p-value.
        """
        distance = min(abs(self.value - low), abs(self.value - high))
        is_between_bounds = high < math.inf and low < self.value < high
        sides = 1 if is_between_bounds else 2
        p = _student_p(distance, self.spread, sides)
        if not self.batches:
            return p, 0.0
        batch_p_values = [
            _student_p(distance, spread, sides) for spread in self.batches
        ]
        return p, float(np.std(batch_p_values, ddof=1)) / math.sqrt(BATCHES)


def _student_p(distance: float, spread: Spread, sides: int) -> float:
    """Return the one-sided or two-sided p-value of a distance by Student's t-distribution."""
    if spread.error == 0:
        return 0.0 if distance else 1.0
    return min(1.0, sides * float(stats.t.sf(distance / spread.error, spread.degrees)))


def effect_of(samples: Sequence[SampledRuns], constant: float = 0.0) -> Effect:
    """Return the sum of the samples' means and a constant, with its standard error.

    Each sample must have at least two runs, or be an ensemble with ``singles``. Unless all samples
    have scores on resampled test sets, only the variance between runs counts: the test is Welch's
    t-test, and with a single sample Student's.
    """
    value = constant + sum(float(np.mean(sample.scores)) for sample in samples)
    drawn = [sample.drawn for sample in samples if sample.drawn is not None]
    if len(drawn) < len(samples):
        return Effect(value, _spread(samples, sentence_variance=0.0))
    batches = []
    # For each sample, BATCHES arrays of shape (runs, DRAWS / BATCHES).
    split = [np.array_split(run_scores, BATCHES, axis=1) for run_scores in drawn]
    for batch in zip(*split, strict=True):  # an array of each sample
        batches.append(_spread(samples, _sentence_variance(batch)))
    return Effect(value, _spread(samples, _sentence_variance(drawn)), batches)


def _variance(values: Sequence[float] | SetScores) -> float:
    """Return the sample variance, which is an unbiased estimate of the population's variance."""
    return float(np.var(values, ddof=1))


def _spread(samples: Iterable[SampledRuns], sentence_variance: float) -> Spread:
    """Return the standard error of the sum of the samples' means, and its degrees of freedom.

    ``sentence_variance`` is added to the variance of the runs.
    """
    run_variance = 0.0
    uncertainty = 0.0  # the sum in the denominator of Satterthwaite's formula
    max_degrees = math.inf
    # Samples with the same pool share one estimate of the variance, so their errors are not
    # independent. They are added here first, and count as one term of Satterthwaite's formula.
    of_pools: dict[Pool, float] = {}
    for sample in samples:
        if sample.pool:
            variance = sample.weight**2 * sample.pool.variance / len(sample.scores)
            of_pools[sample.pool] = of_pools.get(sample.pool, 0.0) + variance
            continue
        varying = sample.singles or sample.scores
        degrees = len(varying) - 1
        variance = _variance(varying) / len(sample.scores)
        run_variance += variance
        uncertainty += variance**2 / degrees
        if sample.singles:
            # The single models are also the runs of another sample. Their deviations are no further
            # evidence, so they may lower the degrees of freedom, but must not raise them.
            max_degrees = min(max_degrees, degrees)
    for pool, variance in of_pools.items():
        run_variance += variance
        uncertainty += variance**2 / pool.degrees
    total_variance = sentence_variance + run_variance
    # Satterthwaite's degrees of freedom.
    total_degrees = total_variance**2 / uncertainty if uncertainty else math.inf
    return Spread(math.sqrt(total_variance), min(total_degrees, max_degrees))


def _sentence_variance(drawn: Sequence[SetScores]) -> float:
    """Return the variance due to sentences, without the share that the runs' variance includes.

    Each array is of shape (runs, draws). One reason why the scores of runs differ is that each run
    does better or worse on single sentences. The variance of the runs includes this interaction of
    runs and sentences, so it is subtracted here.
    """
    whole = _variance(np.sum([run_scores.mean(axis=0) for run_scores in drawn], axis=0))
    counted_twice = 0.0
    for run_scores in drawn:
        runs = len(run_scores)
        if runs > 1:
            deviations = run_scores - run_scores.mean(axis=0)
            interaction = np.var(deviations, axis=1, ddof=1).sum()
            # The deviations are from the mean of the runs, so the interaction of a single run is
            # this sum / (runs - 1). In the mean of the runs it is smaller by the factor 1 / runs.
            counted_twice += float(interaction) / (runs * (runs - 1))
    return max(whole - counted_twice, 0.0)


def over_sentences(
    drawn: Sequence[SetScores], constant: float = 0.0
) -> tuple[float, float]:
    """Return the 95% confidence interval over test sentences alone, with the runs fixed.

    The value is the sum of the samples' means and a constant. Each array is of shape (runs, draws).
    """
    tail = 100 * (1 - _CONFIDENCE) / 2
    total = constant + np.sum([run_scores.mean(axis=0) for run_scores in drawn], axis=0)
    low, high = np.percentile(total, [tail, 100 - tail]).tolist()
    return low, high


def measured(statistics: Statistics) -> Measures:
    """Return the measures, each of shape (1,), of a test set's statistics of shape (lines, 6)."""
    return _measures(_columns(statistics).sum(axis=0, keepdims=True))


def drawn_measures(statistics: Statistics, draws: int = DRAWS) -> Measures:
    """Return the measures, each of shape (draws,), on resampled test sets.

    All statistics with the same number of lines get the same resamples, so that systems are
    compared in pairs (Koehn 2004).
    """
    lines = len(statistics)
    # All numbers are integers. Sums in float32 are exact as long as they are at most 2**24, which
    # is far more words than a test set has.
    columns = _columns(statistics).astype(np.float32)
    counts_of_draws = _kept_counts if lines * draws <= _MAX_CACHED_COUNTS else _counts
    sums = [
        counts.astype(np.float32) @ columns for counts in counts_of_draws(lines, draws)
    ]
    return _measures(np.concatenate(sums).astype(np.float64))


def _counts(lines: int, draws: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield how often each line is in each resample, as arrays of shape (some draws, lines)."""
    generator = np.random.default_rng(RESAMPLING_SEED)
    step = max(1, _MAX_INDICES_AT_ONCE // lines)
    for start in range(0, draws, step):
        draws_now = min(step, draws - start)
        indices = generator.integers(lines, size=(draws_now, lines))
        # Give the lines of each draw indices of their own, so that one bincount serves all draws.
        indices += lines * np.arange(draws_now)[:, None]
        counts = np.bincount(indices.ravel(), minlength=draws_now * lines)
        # uint8 is enough: a count is 1 on average, and more than 255 times the same line in one
        # draw are practically impossible.
        yield counts.reshape(draws_now, lines).astype(np.uint8)


@lru_cache(maxsize=1)
def _kept_counts(lines: int, draws: int) -> list[npt.NDArray[np.uint8]]:
    """Return the arrays of `_counts`, cached, because runs on one test set follow each other."""
    return list(_counts(lines, draws))


def _columns(statistics: Statistics) -> SetScores:
    """Return the statistics and the total n-grams of each order, of shape (lines, 10).

    The columns are: words of the hypothesis, words of the reference, matching n-grams of orders 1
    to 4, n-grams of the hypothesis of orders 1 to 4.
    """
    return np.concatenate([statistics, ngram_totals(statistics)], axis=1).astype(
        np.float64
    )


def _measures(sums: SetScores) -> Measures:
    """Return the measures of sums (sets, 10) over the columns of `_columns`."""
    words = sums[:, 0]
    reference_words = sums[:, 1]
    matches = sums[:, 2 : 2 + ORDERS]
    n_grams = sums[:, 2 + ORDERS :]
    with np.errstate(divide="ignore", invalid="ignore"):
        # (sets,): the geometric mean of the precisions of all orders.
        mean_precision = 100 * np.exp(np.log(matches / n_grams).mean(axis=1))
        without_brevity = np.where(matches.all(axis=1), mean_precision, 0.0)
        penalty = np.exp(np.minimum(1 - reference_words / words, 0.0))
        bleu = np.where(words > 0, without_brevity * penalty, 0.0)
        return Measures(bleu, without_brevity, words / reference_words)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values after Holm's correction (1979), in the order in which they are given.

    Of n p-values, the k-th smallest is multiplied by n - k + 1. A corrected p is at least the
    corrected p of each smaller one, and at most 1.
    """
    order = np.argsort(p_values, kind="stable")
    tests_left = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    ascending = np.array(p_values)[order]
    corrected[order] = np.maximum.accumulate(tests_left * ascending)
    at_most_1: list[float] = np.minimum(corrected, 1.0).tolist()
    return at_most_1
