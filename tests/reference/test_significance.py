"""Tests by chance: against formulas, against the bootstrap that compares files, by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from convs2s.scoring import significance
from convs2s.scoring.bleu import compare, statistics_of
from convs2s.scoring.significance import (
    Effect,
    SampledRuns,
    drawn_measures,
    effect_of,
    holm,
    measured,
    over_sentences,
)
from tests.support.statistics import bleu_of

WORDS = list("abcdefghijklmnop")
LINES = 120


def system(wrong: float, seed: int) -> tuple[list[str], list[str]]:
    """Lines with so large a share of words wrong, and their references."""
    order = np.random.default_rng(seed)
    references = []
    said = []
    for line in range(LINES):
        words = np.random.default_rng(line).choice(WORDS, size=12)
        references.append(" ".join(words))
        said.append(" ".join(np.where(order.random(12) > wrong, words, "x")))
    return said, references


@pytest.mark.parametrize("most", [10**8, 0])
def test_drawn_sets_are_of_whole_sentences(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same whether the counts of a set are kept, or drawn again in parts."""
    monkeypatch.setattr(significance, "_MAX_CACHED_COUNTS", most)
    monkeypatch.setattr(significance, "_MAX_INDICES_AT_ONCE", LINES * 7)
    said, references = system(0.2, seed=3)
    shorter = [line.rsplit(" ", 2)[0] for line in said]
    statistics = statistics_of(shorter, references)
    generator = np.random.default_rng(significance.RESAMPLING_SEED)
    expected = [
        bleu_of(statistics[generator.integers(LINES, size=LINES)]) for _ in range(20)
    ]
    assert drawn_measures(statistics, 20).bleu.tolist() == pytest.approx(expected)
    nothing = measured(statistics_of([""] * LINES, references))
    assert (nothing.bleu[0], nothing.length_ratio[0]) == (0.0, 0.0)


def test_the_interval_over_sentences_is_that_of_two_files() -> None:
    better, references = system(0.1, seed=1)
    other, _ = system(0.25, seed=2)
    drawn = [
        drawn_measures(statistics_of(one, references)).bleu[None]
        for one in (better, other)
    ]
    result = compare(other, better, references)
    for sets, score in zip(drawn, (result.system, result.baseline), strict=True):
        low, high = over_sentences([sets])
        assert (high - low) / 2 == pytest.approx(score.interval, rel=0.1)
    low, high = over_sentences([drawn[0], -drawn[1]], constant=1.0)
    assert low < result.difference + 1 < high


FIRST = "27.5 21 19 23.6 17 17.9 16.9 20.1 21.9 22.6 23.1 19.6 19 21.7 21.4"
SECOND = "27.1 22 20.8 23.4 23.4 23.5 25.8 22 24.8 20.2 21.9 22.1 22.9 20.5 24.4"


def test_without_sentences_it_is_welchs_test_of_a_published_example() -> None:
    """Wikipedia, Welch's t-test, example 1: t = -2.46, 25.0 degrees of freedom, p = 0.021."""
    first = np.array(FIRST.split(), dtype=float)
    second = np.array(SECOND.split(), dtype=float)
    samples = [SampledRuns(first.tolist()), SampledRuns((-second).tolist())]
    effect = effect_of(samples)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert effect.p_value(0.0) == pytest.approx((expected.pvalue, 0.0))
    assert expected.pvalue == pytest.approx(0.021, abs=5e-4)
    interval = expected.confidence_interval(0.95)
    assert effect.interval == pytest.approx(tuple(interval))
    moved = effect_of(samples, constant=2.0)
    assert moved.interval == pytest.approx((interval.low + 2, interval.high + 2))
    for end in effect.interval:  # the test turns where the interval ends
        assert effect.p_value(end)[0] == pytest.approx(0.05)


def test_equivalence_is_two_tests_of_one_side() -> None:
    """Schuirmann's: p is the larger of those of the two sides."""
    scores = [0.1, 0.2, 0.4]
    effect = effect_of([SampledRuns(scores)])
    below = stats.ttest_1samp(scores, -1.0, alternative="greater").pvalue
    above = stats.ttest_1samp(scores, 1.0, alternative="less").pvalue
    expected = max(below, above)
    assert effect.p_value(-1.0, 1.0)[0] == pytest.approx(expected)
    outside = stats.ttest_1samp(scores, 0.5).pvalue
    assert effect.p_value(0.5, 1.0)[0] == pytest.approx(outside)


def test_scores_that_never_vary() -> None:
    effect = effect_of([SampledRuns([20.0, 20.0]), SampledRuns([-20.0, -20.0])])
    assert effect.interval == (0.0, 0.0)
    found = [effect.p_value(bound)[0] for bound in (0.0, 0.1, -0.1)]
    assert found == [1.0, 0.0, 0.0]


def test_sentences_add_what_the_runs_do_not_have_of_them() -> None:
    """Runs that differ at random sentence by sentence are not counted twice; systems are once."""
    order = np.random.default_rng(0)
    apart = order.normal(0, 0.1, (2, 3, 20_000))
    shared = order.normal(0, 0.4, 20_000)
    scores = [20.0, 20.1, 20.2]
    negative = [-score for score in scores]
    first = SampledRuns(scores, apart[0])
    second = SampledRuns(negative, apart[1])
    unknown = SampledRuns(negative)
    runs_alone = effect_of([SampledRuns(scores), unknown]).spread
    of_runs = effect_of([first, second]).spread
    assert of_runs.error == pytest.approx(runs_alone.error, rel=0.05)
    of_both = effect_of([SampledRuns(scores, apart[0] + shared), second]).spread
    whole = math.hypot(runs_alone.error, 0.4)
    assert of_both.error == pytest.approx(whole, rel=0.02)
    assert of_both.degrees > of_runs.degrees
    assert effect_of([first, unknown]).spread == runs_alone
    # An ensemble varies as one of its models, whose deviation is 1.
    ensemble = SampledRuns([24.0], shared[None], singles=[20.0, 21.0, 22.0])
    whole = math.hypot(1, 0.4)
    assert effect_of([ensemble]).spread.error == pytest.approx(whole, rel=0.02)


def test_p_has_the_error_of_its_draws() -> None:
    """By the spread of ten batches of them, as docs/claims.md says."""
    drawn = np.random.default_rng(0).normal(0, 0.4, (3, 5000))
    effect = effect_of([SampledRuns([1.0, 1.1, 1.2], drawn)])
    assert len(effect.batches) == 10
    of_batches = [
        Effect(effect.value, spread).p_value(0.0)[0] for spread in effect.batches
    ]
    of_first = effect_of([SampledRuns([1.0, 1.1, 1.2], drawn[:, :500])])
    assert effect.batches[0] == pytest.approx(of_first.spread)
    _, error = effect.p_value(0.0)
    assert error == pytest.approx(stats.sem(of_batches))


def test_holms_correction() -> None:
    """The example of Holm's paper's method: 0.01 x 4, 0.02 x 3, then no less than that."""
    assert holm([0.02, 0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.06, 0.04, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("ahead", "least", "most"), [(0.0, 5, 25), (1.2, 240, 300)])
def test_verdicts_of_300_claims_are_as_docs_claims_md_says(
    ahead: float, least: int, most: int
) -> None:
    """Scores of three runs a side vary by the run, by the sentences, and by both.

    The first of each row is of the test set, the others of sets drawn anew.
    """
    order = np.random.default_rng(1)
    verdicts = 0
    for _ in range(300):
        samples = []
        for sign, gain in ((1, ahead), (-1, 0.0)):
            by_sentences = order.normal(0, 0.2, 401) + order.normal(0, 0.1, (3, 401))
            scores = gain + order.normal(0, 0.25, 3) + by_sentences[:, 0]
            drawn = sign * by_sentences[:, 1:]
            samples.append(SampledRuns((sign * scores).tolist(), drawn))
        verdicts += effect_of(samples).p_value(0.0)[0] < 0.05
    assert least <= verdicts <= most
