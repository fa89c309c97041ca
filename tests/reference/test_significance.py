"""Tests by chance: against formulas, against the bootstrap that compares files, by simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from convs2s.scoring import significance
from convs2s.scoring.bleu import compare, corpus_bleu, length_ratio, statistics_of
from convs2s.scoring.significance import (
    Effect,
    Pool,
    SampledRuns,
    drawn_measures,
    effect_of,
    holm,
    measured,
    over_sentences,
)

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


def test_bleu_and_lengths_of_sums_are_those_of_the_metric() -> None:
    said, references = system(0.2, seed=3)
    shorter = [line.rsplit(" ", 2)[0] for line in said]
    for hypotheses in (said, shorter):
        statistics = statistics_of(hypotheses, references)
        (bleu,), (without,), (ratio,) = measured(statistics)
        assert bleu == pytest.approx(corpus_bleu(hypotheses, references).score)
        assert ratio == pytest.approx(length_ratio(hypotheses, references))
        assert without * min(1.0, math.exp(1 - 1 / ratio)) == pytest.approx(bleu)
    assert without > bleu + 3
    nothing = measured(statistics_of([""] * LINES, references))
    assert (nothing.bleu[0], nothing.length_ratio[0]) == (0.0, 0.0)


def test_drawn_sets_are_of_whole_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same whether the counts of a set are kept, or drawn again in parts."""
    monkeypatch.setattr(significance, "_MAX_INDICES_AT_ONCE", LINES * 7)
    statistics = statistics_of(*system(0.2, seed=3))
    generator = np.random.default_rng(significance.RESAMPLING_SEED)
    expected = [
        measured(statistics[generator.integers(LINES, size=LINES)]).bleu[0]
        for _ in range(20)
    ]
    for most in (10**8, 0):
        monkeypatch.setattr(significance, "_MAX_CACHED_COUNTS", most)
        found = drawn_measures(statistics, 20).bleu.tolist()
        assert found == pytest.approx(expected)


def test_the_interval_over_sentences_is_that_of_two_files() -> None:
    better, references = system(0.1, seed=1)
    other, _ = system(0.25, seed=2)
    result = compare(other, better, references)
    drawn = []
    for lines, score in ((better, result.system), (other, result.baseline)):
        drawn.append(drawn_measures(statistics_of(lines, references)).bleu[None])
        low, high = over_sentences(drawn[-1:])
        assert (high - low) / 2 == pytest.approx(score.interval, rel=0.1)
    low, high = over_sentences([drawn[0], -drawn[1]], constant=1.0)
    assert low < result.difference + 1 < high


FIRST = "27.5 21 19 23.6 17 17.9 16.9 20.1 21.9 22.6 23.1 19.6 19 21.7 21.4"
SECOND = "27.1 22 20.8 23.4 23.4 23.5 25.8 22 24.8 20.2 21.9 22.1 22.9 20.5 24.4"


def test_without_sentences_it_is_welchs_test_of_a_published_example() -> None:
    """Wikipedia, Welch's t-test, example 1: t = -2.46, 25.0 degrees of freedom, p = 0.021."""
    first = [float(score) for score in FIRST.split()]
    second = [float(score) for score in SECOND.split()]
    samples = [SampledRuns(first), SampledRuns([-score for score in second])]
    effect = effect_of(samples)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert effect.p_value(0.0) == pytest.approx((expected.pvalue, 0.0))
    assert expected.pvalue == pytest.approx(0.021, abs=5e-4)
    interval = expected.confidence_interval(0.95)
    assert effect.interval == pytest.approx(tuple(interval))
    moved = effect_of(samples, constant=2.0)
    assert moved.interval == pytest.approx([end + 2 for end in interval])
    for end in effect.interval:  # the test turns where the interval ends
        assert effect.p_value(end)[0] == pytest.approx(0.05)


def test_scores_that_never_vary() -> None:
    effect = effect_of([SampledRuns([20.0, 20.0]), SampledRuns([-20.0, -20.0])])
    assert effect.interval == (0.0, 0.0)
    found = [effect.p_value(bound)[0] for bound in (0.0, 0.1, -0.1)]
    assert found == [1.0, 0.0, 0.0]


def test_sentences_add_what_the_runs_do_not_have_of_them() -> None:
    """Runs that differ at random sentence by sentence are not counted twice; systems are once."""
    for scores in ([20.0, 20.2], [20.0, 20.1, 20.2]):
        order = np.random.default_rng(0)
        apart = order.normal(0, 0.1, (2, len(scores), 20_000))
        shared = order.normal(0, 0.4, 20_000)
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


def test_an_ensemble_varies_as_one_of_its_models() -> None:
    """Without sentences the claims' ensembles show it (test_claim_statistics.py)."""
    sentences = np.random.default_rng(0).normal(0, 0.4, (1, 20_000))
    drawn = effect_of([SampledRuns([24.0], sentences, singles=[20.0, 21.0, 22.0])])
    assert drawn.spread.error == pytest.approx(math.hypot(1, 0.4), rel=0.02)


def test_p_has_the_error_of_its_draws() -> None:
    """By the spread of ten batches of them, as docs/claims.md says."""
    drawn = np.random.default_rng(0).normal(0, 0.4, (3, 5000))
    effect, of_first = (
        effect_of([SampledRuns([1.0, 1.1, 1.2], sentences)])
        for sentences in (drawn, drawn[:, :500])
    )
    assert len(effect.batches) == 10
    assert effect.batches[0] == pytest.approx(of_first.spread)
    of_batches = [
        Effect(effect.value, spread).p_value(0.0)[0] for spread in effect.batches
    ]
    _, error = effect.p_value(0.0)
    assert error == pytest.approx(stats.sem(of_batches))


def test_holms_correction() -> None:
    """The example of Holm's paper's method: 0.01 x 4, 0.02 x 3, then no less than that."""
    assert holm([0.02, 0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.06, 0.04, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def runs_of(order: np.random.Generator, share: np.ndarray, sign: int) -> SampledRuns:
    """Return three runs of a system whose n-grams are right by chance, by sentence and run.

    BLEU of runs then deviates by 0.25, as that of the ablations' base does.
    """
    words = np.full(80, 300)
    runs = []
    for _ in range(3):
        right = np.clip(share + order.normal(0, 0.0016), 0.05, 0.97)
        matches = [order.binomial(words - n, right ** (1 + 0.55 * n)) for n in range(4)]
        runs.append(np.stack([words, words, *matches], axis=1))
    scores = [sign * float(measured(run).bleu[0]) for run in runs]
    drawn = [sign * drawn_measures(run, 400).bleu for run in runs]
    return SampledRuns(scores, np.stack(drawn))


@pytest.mark.parametrize(
    ("ahead", "hard", "others", "held", "contrary"),
    [
        (0.0, 0.02, 0, (6, 44), (6, 44)),
        (0.0, 0.02, 10, (6, 44), (6, 44)),
        (0.0082, 0.01, 0, (800, 1000), (0, 1)),
        (0.0082, 0.01, 10, (900, 1000), (0, 1)),
    ],
)
def test_verdicts_of_a_thousand_claims_are_as_docs_claims_md_says(
    ahead: float,
    hard: float,
    others: int,
    held: tuple[int, int],
    contrary: tuple[int, int],
) -> None:
    """A system is ahead by a share of right words; systems differ in what they find hard.

    With other systems, the variance between runs is pooled.
    """
    order = np.random.default_rng(1)
    verdicts = []
    for _ in range(1000):
        difficulty = 0.6 + order.normal(0, 0.12, 80)
        first = runs_of(order, difficulty + ahead + order.normal(0, hard, 80), 1)
        second = runs_of(order, difficulty + order.normal(0, hard, 80), -1)
        pool = Pool.of(
            [first.scores, second.scores, *order.normal(0, 0.25, (others, 3))]
        )
        effect = effect_of([replace(first, pool=pool), replace(second, pool=pool)])
        if effect.p_value(0.0)[0] < 0.05:
            verdicts.append(effect.value > 0)
    assert held[0] <= verdicts.count(True) <= held[1]
    assert contrary[0] <= verdicts.count(False) <= contrary[1]
