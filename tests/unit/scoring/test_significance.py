"""Tests by chance: against formulas, against the bootstrap that compares files, by simulation."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from convs2s.scoring import significance
from convs2s.scoring.bleu import Statistics, compare, length_ratio, statistics_of
from convs2s.scoring.significance import (
    BATCHES,
    LEAST_RUNS,
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


def system(wrong: float, seed: int, lines: int = 120) -> tuple[list[str], list[str]]:
    """Lines with so large a share of words wrong, and their references."""
    order = np.random.default_rng(seed)
    references = [
        " ".join(np.random.default_rng(line).choice(WORDS, size=12))
        for line in range(lines)
    ]
    said = [
        " ".join(word if order.random() > wrong else "x" for word in line.split())
        for line in references
    ]
    return said, references


def test_bleu_and_lengths_of_sums_are_those_of_the_metric() -> None:
    said, references = system(0.2, seed=3)
    shorter = [line.rsplit(" ", 2)[0] for line in said]
    for hypotheses in (said, shorter):
        statistics = statistics_of(hypotheses, references)
        found = measured(statistics)
        assert found.bleu[0] == pytest.approx(bleu_of(statistics))
        assert found.length_ratio[0] == pytest.approx(
            length_ratio(hypotheses, references)
        )
        penalty = min(1.0, math.exp(1 - 1 / found.length_ratio[0]))
        assert found.without_brevity[0] * penalty == pytest.approx(found.bleu[0])
    assert found.without_brevity[0] > found.bleu[0] + 3
    nothing = measured(statistics_of([""] * 120, references))
    assert (nothing.bleu[0], nothing.length_ratio[0]) == (0.0, 0.0)


@pytest.mark.parametrize("most", [10**8, 0])
def test_drawn_sets_are_of_whole_sentences(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same whether the counts of a set are kept, or drawn again in parts."""
    monkeypatch.setattr(significance, "_MAX_CACHED_COUNTS", most)
    monkeypatch.setattr(significance, "_MAX_INDICES_AT_ONCE", 120 * 7)
    statistics = statistics_of(*system(0.2, seed=3))
    generator = np.random.default_rng(significance.RESAMPLING_SEED)
    expected = [
        bleu_of(statistics[generator.integers(120, size=120)]) for _ in range(20)
    ]
    assert drawn_measures(statistics, 20).bleu.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("worse", [0.12, 0.25])
def test_the_interval_over_sentences_is_that_of_two_files(worse: float) -> None:
    better, references = system(0.1, seed=1)
    other, _ = system(worse, seed=2)
    drawn = [
        drawn_measures(statistics_of(one, references)).bleu for one in (better, other)
    ]
    for drawn_bleu, expected in zip(drawn, (better, other), strict=True):
        low, high = over_sentences([drawn_bleu[None]])
        half = compare(expected, expected, references).system.interval
        assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    low, high = over_sentences([drawn[0][None], -drawn[1][None]], constant=1.0)
    difference = compare(other, better, references).difference
    assert low < difference + 1 < high


def test_without_sentences_it_is_welchs_test_of_a_published_example() -> None:
    """Wikipedia, Welch's t-test, example 1: t = -2.46, 25.0 degrees of freedom, p = 0.021."""
    first = [
        27.5,
        21.0,
        19.0,
        23.6,
        17.0,
        17.9,
        16.9,
        20.1,
        21.9,
        22.6,
        23.1,
        19.6,
        19.0,
        21.7,
    ]
    second = [
        27.1,
        22.0,
        20.8,
        23.4,
        23.4,
        23.5,
        25.8,
        22.0,
        24.8,
        20.2,
        21.9,
        22.1,
        22.9,
        20.5,
    ]
    first, second = [*first, 21.4], [*second, 24.4]
    effect = effect_of([SampledRuns(first), SampledRuns([-score for score in second])])
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert effect.value == pytest.approx(-2.1667, abs=1e-3)
    p, error = effect.two_sided_p(0.0)
    assert p == pytest.approx(expected.pvalue)
    assert error == 0
    assert expected.pvalue == pytest.approx(0.021, abs=5e-4)
    assert effect.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
    moved = effect_of(
        [SampledRuns(first), SampledRuns([-score for score in second])], constant=2.0
    )
    assert moved.interval == pytest.approx([end + 2 for end in effect.interval])


def test_an_interval_ends_where_the_test_turns() -> None:
    effect = effect_of(
        [SampledRuns([21.7, 21.5, 21.9]), SampledRuns([-21.0, -21.4, -21.1])]
    )
    for end in effect.interval:
        assert effect.two_sided_p(end)[0] == pytest.approx(0.05)
    low, high = effect.interval
    assert effect.two_sided_p(low - 0.01, high + 1)[0] < 0.05  # inside both bounds
    assert effect.two_sided_p(low + 0.01, high + 1)[0] > 0.05
    assert effect.two_sided_p(high + 0.01, high + 1)[0] < 0.05  # outside


def test_equivalence_is_two_tests_of_one_side() -> None:
    """Schuirmann's: p of one side is the larger of the two, here doubled."""
    scores = [0.1, 0.2, 0.4]
    bounds = [
        stats.ttest_1samp(scores, bound, alternative=side).pvalue
        for bound, side in ((-1.0, "greater"), (1.0, "less"))
    ]
    assert effect_of([SampledRuns(scores)]).two_sided_p(-1.0, 1.0)[0] == pytest.approx(
        2 * max(bounds)
    )


def test_scores_that_never_vary() -> None:
    effect = effect_of([SampledRuns([20.0, 20.0]), SampledRuns([-20.0, -20.0])])
    assert effect.interval == (0.0, 0.0)
    assert [effect.two_sided_p(bound)[0] for bound in (0.0, 0.1, -0.1)] == [
        1.0,
        0.0,
        0.0,
    ]


def test_sentences_add_what_the_runs_do_not_have_of_them() -> None:
    """Runs that differ at random sentence by sentence are not counted twice; systems are once."""
    order, draws = np.random.default_rng(0), 20_000
    apart = order.normal(0, 0.1, (2, 3, draws))
    scores = [20.0, 20.1, 20.2]
    negative = [-score for score in scores]
    runs_alone = effect_of([SampledRuns(scores), SampledRuns(negative)])
    of_runs = effect_of(
        [SampledRuns(scores, apart[0]), SampledRuns(negative, apart[1])]
    )
    assert of_runs.spread[0] == pytest.approx(runs_alone.spread[0], rel=0.05)
    shared = order.normal(0, 0.4, draws)
    of_both = effect_of(
        [SampledRuns(scores, apart[0] + shared), SampledRuns(negative, apart[1])]
    )
    assert of_both.spread[0] == pytest.approx(
        math.hypot(runs_alone.spread[0], 0.4), rel=0.02
    )
    assert of_both.spread[1] > of_runs.spread[1]
    one_unknown = effect_of([SampledRuns(scores, apart[0]), SampledRuns(negative)])
    assert one_unknown.spread == runs_alone.spread


def test_of_two_runs_their_sentences_are_counted_once_as_well() -> None:
    apart = np.random.default_rng(0).normal(0, 0.1, (2, 2, 20_000))
    scores = [20.0, 20.2]
    of_runs = [SampledRuns(scores, apart[0]), SampledRuns([-20.0, -20.2], apart[1])]
    runs_alone = effect_of([SampledRuns(sample.scores) for sample in of_runs])
    assert effect_of(of_runs).spread[0] == pytest.approx(runs_alone.spread[0], rel=0.05)


def test_an_ensemble_varies_as_one_of_its_models() -> None:
    singles = [20.0, 21.0, 22.0]
    effect = effect_of(
        [
            SampledRuns([24.0], singles=singles),
            SampledRuns([-score for score in singles]),
        ]
    )
    assert effect.value == 3.0
    assert effect.spread == pytest.approx((math.sqrt(1 + 1 / 3), 2))


def test_p_has_the_error_of_its_draws() -> None:
    """Two seeds of the draws differ by as much as the stated error says."""
    found = []
    for seed in range(40):
        order = np.random.default_rng(seed)
        drawn = [order.normal(0, 0.4, (1, 5000)) + np.zeros((3, 1)) for _ in range(2)]
        samples = [
            SampledRuns([21.0, 21.1, 21.2], drawn[0]),
            SampledRuns([-20.0, -20.1, -20.2], drawn[1]),
        ]
        found.append(effect_of(samples).two_sided_p(0.0))
    p_values, errors = zip(*found, strict=True)
    assert float(np.mean(errors)) == pytest.approx(float(np.std(p_values)), rel=0.4)
    last = effect_of(samples)
    assert len(last.batches) == BATCHES == 10  # as docs/claims.md says
    of_batches = [
        Effect(last.value, spread).two_sided_p(0.0)[0] for spread in last.batches
    ]
    assert last.two_sided_p(0.0)[1] == pytest.approx(stats.sem(of_batches))


def test_holms_correction() -> None:
    """The example of Holm's paper's method: 0.01 x 4, 0.02 x 3, then no less than that."""
    assert holm([0.02, 0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.06, 0.04, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def runs_of(
    order: np.random.Generator, share: float, difficulty: np.ndarray
) -> list[Statistics]:
    """Runs of a system whose n-grams are right by chance: so large a share, more or less by run."""
    words = np.full(len(difficulty), 300)
    runs = []
    for _ in range(LEAST_RUNS):
        right = np.clip(share + order.normal(0, _OF_RUNS) + difficulty, 0.05, 0.97)
        matches = [order.binomial(words - n, right ** (1 + 0.55 * n)) for n in range(4)]
        runs.append(np.stack([words, words, *matches], axis=1))
    return runs


# BLEU of runs then deviates by 0.25, as that of the ablations' base does.
_OF_RUNS = 0.0016


def sampled(runs: Sequence[Statistics], sign: int) -> SampledRuns:
    scores = [sign * float(measured(one).bleu[0]) for one in runs]
    return SampledRuns(
        scores, sign * np.stack([drawn_measures(one, 400).bleu for one in runs])
    )


def verdicts(
    claims: int, *, ahead: float, comparisons: int, hard: float
) -> dict[str, int]:
    """Count the verdicts of claims of so many comparisons, three runs a side, of 80 long sentences.

    A system is ``ahead`` by a share of words that are right; systems differ by ``hard`` in what
    they find hard.
    """
    order, counts = np.random.default_rng(1), {"held": 0, "not held": 0, "undecided": 0}
    for _ in range(claims):
        difficulty = order.normal(0, 0.12, 80)
        base, *others = (
            sampled(
                runs_of(order, 0.6 + more, difficulty + order.normal(0, hard, 80)), sign
            )
            for more, sign in ((ahead, 1), *((0.0, -1),) * comparisons)
        )
        effects = [effect_of([base, other]) for other in others]
        decided = [
            p < 0.05 for p in holm([effect.two_sided_p(0.0)[0] for effect in effects])
        ]
        signs = [effect.value > 0 for effect in effects]
        if any(d and not above for d, above in zip(decided, signs, strict=True)):
            counts["not held"] += 1
        else:
            counts["held" if all(decided) else "undecided"] += 1
    return counts


def test_no_effect_gives_a_verdict_in_one_claim_of_twenty_at_most() -> None:
    counts = verdicts(1000, ahead=0.0, comparisons=1, hard=0.02)
    assert counts["held"] + counts["not held"] <= 50, counts
    assert min(counts["held"], counts["not held"]) > 5, counts  # either side alike


def test_a_point_of_bleu_gives_a_verdict_in_four_claims_of_five() -> None:
    counts = verdicts(1000, ahead=0.0082, comparisons=1, hard=0.01)
    assert counts["held"] >= 800, counts
    assert counts["not held"] <= 1, counts
