"""How probable an effect is by chance: over runs, over sentences drawn anew, of a trend by rank.

All tests have one side: each gives the probability of so large an effect if there were none above
0, and the probability of so small a one if there were none below. Student's distribution takes the
thirty lines below: SciPy would be a hundred megabytes more to install.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from convs2s.scoring.bleu import SAMPLES, Statistics, bleu_of

RESAMPLING_SEED = 12345  # of the resamples; sacrebleu's own, so that both draw the same sentences
ORDERS = 10_000  # random orders that a trend is held against
LEAST_POINTS = 4  # of a trend: 3 points are in one of 6 orders by chance, 4 in one of 24
_CONFIDENCE = 0.95
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(256)

DrawnScores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effect:
    """A difference, or a correlation, and how probable it is by chance."""

    value: float
    interval: tuple[float, float] | None  # of 95% confidence; None where the test gives none
    p_positive: float  # of so large a value if the true one is 0 or negative
    p_negative: float  # of so small a value if the true one is 0 or positive


def over_runs(
    samples: Sequence[tuple[float, Sequence[float]]], *, constant: float = 0.0, margin: float = 0.0
) -> Effect:
    """Test a sum of means over runs by Welch's t-test; of one sample it is Student's.

    Each sample is the weight of its mean and the scores of two or more runs. ``constant`` is added
    to the sum without chance, ``margin`` for the test alone, so that -margin takes the place of 0.
    Where no score varies, the chance is 0, 1, or 1/2 for a sum of nothing.
    """
    value = constant + sum(weight * float(np.mean(scores)) for weight, scores in samples)
    parts = [
        (weight**2 * float(np.var(scores, ddof=1)) / len(scores), len(scores) - 1)
        for weight, scores in samples
    ]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        p_positive = 0.5 - 0.5 * float(np.sign(value + margin))
        return Effect(value, (value, value), p_positive, 1 - p_positive)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    error = math.sqrt(variance)
    reach = error * _t_quantile((1 + _CONFIDENCE) / 2, freedom)
    p_positive = t_tail((value + margin) / error, freedom)
    return Effect(value, (value - reach, value + reach), p_positive, 1 - p_positive)


def drawn_scores(statistics: Statistics) -> DrawnScores:
    """Return the BLEU, of shape (SAMPLES,), of test sets drawn anew from a set's sentences."""
    # Sets of equally many lines are drawn alike, so that differences are of pairs.
    generator, lines = np.random.default_rng(RESAMPLING_SEED), len(statistics)
    # One at a time: those of a million lines, which may be anybody's, would take 8 GB together.
    drawn = (generator.integers(lines, size=lines) for _ in range(SAMPLES))
    return np.array([bleu_of(statistics[rows]) for rows in drawn])


def over_sentences(value: float, drawn: DrawnScores, margin: float = 0.0) -> Effect:
    """Test a difference of scores by a paired bootstrap (Koehn 2004).

    As in sacrebleu, the differences of the samples, ``drawn`` of shape (samples,), are moved to the
    mean 0, which is how they would be spread if there were no difference, and the one that was
    measured counts as a sample too. ``margin`` is added to the value for the test alone.
    """
    spread, outer = drawn - drawn.mean(), 100 * (1 - _CONFIDENCE) / 2
    low, high = np.percentile(drawn, [outer, 100 - outer]).tolist()
    above = int((spread >= value + margin).sum())
    below = int((spread <= value + margin).sum())
    return Effect(
        value, (low, high), (above + 1) / (len(drawn) + 1), (below + 1) / (len(drawn) + 1)
    )


def trend(x: Sequence[float], y: Sequence[float]) -> Effect:
    """Test whether y rises with x by the correlation of their ranks (Spearman).

    Its chance is how many of `ORDERS` random orders of y correlate as much, or as little, the
    measured one among them. Equal values share a rank.
    """
    # Ranks less their mean: half of how many values are below, less half of how many are above.
    first, second = (np.sign(np.subtract.outer(row, row)).sum(axis=1) / 2 for row in (x, y))
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    if scale == 0:
        return Effect(0.0, None, 1.0, 1.0)
    order = np.random.default_rng(RESAMPLING_SEED)
    shuffled = order.permuted(np.tile(second, (ORDERS, 1)), axis=1) @ first / scale
    value, rounding = float(first @ second) / scale, 1e-9
    above = int((shuffled >= value - rounding).sum())
    below = int((shuffled <= value + rounding).sum())
    return Effect(value, None, (above + 1) / (ORDERS + 1), (below + 1) / (ORDERS + 1))


def t_tail(t: float, freedom: float) -> float:
    """Return how probable a value above ``t`` is in Student's distribution.

    With t = sqrt(freedom) tan(angle) the density is a power of the cosine, whose integral Gauss'
    quadrature gives to more digits than anybody prints. The degrees of freedom, 1 or more, need
    not be whole.
    """
    if t < 0:
        return 1 - t_tail(-t, freedom)
    start = math.atan2(t, math.sqrt(freedom))
    half = (math.pi / 2 - start) / 2
    angles = start + half * (_NODES + 1)
    area = half * float((_WEIGHTS * np.cos(angles) ** (freedom - 1)).sum())
    factor = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return area * math.exp(factor) / math.sqrt(math.pi)


def _t_quantile(probability: float, freedom: float) -> float:
    """Return the value that Student's t is below with a probability of more than 1/2."""
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > 1 - probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) > 1 - probability else (low, middle)
    return high
