"""Tests by chance: against tables, against the bootstrap that compares files, against counting."""

import itertools
import math

import numpy as np
import pytest

from convs2s.scoring.bleu import SAMPLES, bleu_of, compare, statistics_of
from convs2s.scoring.significance import (
    ORDERS,
    RESAMPLING_SEED,
    drawn_scores,
    over_runs,
    over_sentences,
    t_tail,
    trend,
)

WORDS = list("abcdefghijklmnop")


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [
        # the tables that every textbook prints, of one side
        (6.314, 1, 0.05),
        (12.706, 1, 0.025),
        (2.920, 2, 0.05),
        (2.353, 3, 0.05),
        (2.132, 4, 0.05),
        (2.776, 4, 0.025),
        (1.812, 10, 0.05),
    ],
)
def test_students_distribution_is_that_of_the_tables(
    t: float, freedom: float, expected: float
) -> None:
    assert t_tail(t, freedom) == pytest.approx(expected, abs=5e-5)
    assert t_tail(-t, freedom) == pytest.approx(1 - expected, abs=5e-5)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 4.0, 60.0])
def test_students_distribution_where_a_formula_gives_it(t: float) -> None:
    assert t_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-9)
    assert t_tail(t, 2) == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t * t)), rel=1e-9)
    assert t_tail(t, 1) > t_tail(t, 1.5) > t_tail(t, 2) or t == 0


def test_welchs_test_of_a_published_example() -> None:
    """Wikipedia, Welch's t-test, example 1: t = -2.46, 25.0 degrees of freedom, p = 0.021."""
    first = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7]
    second = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5]
    effect = over_runs([(1.0, [*first, 21.4]), (-1.0, [*second, 24.4])])
    assert effect.value == pytest.approx(-2.1667, abs=1e-3)
    assert 2 * effect.p_negative == pytest.approx(0.021, abs=5e-4)
    assert effect.p_positive == pytest.approx(1 - effect.p_negative)
    assert effect.interval is not None
    assert effect.interval[1] < 0  # as p is below 0.025


def test_an_interval_ends_where_the_test_turns() -> None:
    samples = [(1.0, [21.7, 21.5, 21.9]), (-1.0, [21.0, 21.4, 21.1])]
    effect = over_runs(samples)
    assert effect.interval is not None
    low, high = effect.interval
    assert over_runs(samples, margin=-low).p_positive == pytest.approx(0.025)
    assert over_runs(samples, margin=-high).p_negative == pytest.approx(0.025)
    moved = over_runs(samples, constant=2.0)
    assert moved.interval is not None
    assert list(moved.interval) == pytest.approx([low + 2, high + 2])


@pytest.mark.parametrize(("margin", "expected"), [(0.0, 0.5), (0.1, 0.0), (-0.1, 1.0)])
def test_scores_that_never_vary(margin: float, expected: float) -> None:
    effect = over_runs([(1.0, [20.0, 20.0]), (-1.0, [20.0, 20.0])], margin=margin)
    assert effect.p_positive == expected
    assert effect.p_negative == 1 - expected


def system(wrong: float, seed: int, lines: int = 120) -> tuple[list[str], list[str]]:
    """Lines with so large a share of words wrong, and their references."""
    order = np.random.default_rng(seed)
    references = [
        " ".join(np.random.default_rng(line).choice(WORDS, size=12)) for line in range(lines)
    ]
    said = [
        " ".join(word if order.random() > wrong else "x" for word in line.split())
        for line in references
    ]
    return said, references


def test_samples_are_drawn_one_after_the_other_as_all_at_once() -> None:
    statistics = statistics_of(*system(0.2, seed=3))
    generator = np.random.default_rng(RESAMPLING_SEED)
    rows = generator.choice(len(statistics), size=(SAMPLES, len(statistics)), replace=True)
    assert drawn_scores(statistics).tolist() == [bleu_of(statistics[one]) for one in rows]


@pytest.mark.parametrize("worse", [0.12, 0.15, 0.25])
def test_the_bootstrap_is_that_of_two_files(worse: float) -> None:
    better, references = system(0.1, seed=1)
    other, _ = system(worse, seed=2)
    expected = compare(other, better, references)
    first, second = (drawn_scores(statistics_of(one, references)) for one in (other, better))
    for drawn, half in (
        (first, expected.baseline.interval),
        (second, expected.system.interval),
    ):
        low, high = np.sort(drawn)[[25, 974]]  # as sacrebleu takes them
        assert (high - low) / 2 == pytest.approx(half, abs=1e-4)
    effect = over_sentences(expected.difference, second - first)
    if (second > first).all():  # else sacrebleu folds the samples of the other sign over
        assert effect.p_positive == pytest.approx(expected.p_value)
    assert effect.p_positive == pytest.approx(expected.p_value, abs=0.02)
    assert effect.p_positive + effect.p_negative == pytest.approx(1, abs=0.01)


def test_a_margin_moves_what_is_held_against_chance() -> None:
    drawn = np.random.default_rng(0).normal(-0.2, 0.1, 1000)
    behind = over_sentences(-0.2, drawn)
    assert behind.p_negative < 0.05 < behind.p_positive
    allowed = over_sentences(-0.2, drawn, margin=0.5)
    assert allowed.p_positive < 0.05
    assert allowed.interval == behind.interval


def test_the_same_output_twice_is_no_difference() -> None:
    effect = over_sentences(0.0, np.zeros(1000))
    assert effect.p_positive == effect.p_negative == 1


def test_a_trend_is_held_against_every_order() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0, 5.0], [20.0, 20.5, 20.4, 21.0, 21.5]
    effect = trend(x, y)
    assert effect.value == pytest.approx(0.9)
    orders = [1 - 6 * sum((a - b) ** 2 for a, b in zip(range(5), one, strict=True)) / 120
              for one in itertools.permutations(range(5))]  # fmt: skip
    exact = sum(order >= 0.9 - 1e-9 for order in orders) / len(orders)
    assert effect.p_positive == pytest.approx(exact, abs=0.01)
    assert trend(x, y[::-1]).p_negative == pytest.approx(exact, abs=0.01)


def test_points_in_one_place_share_a_rank() -> None:
    assert trend([1, 1, 2, 2], [5.0, 5.0, 6.0, 6.0]).value == pytest.approx(1)
    assert trend([1, 2, 3, 4], [7.0, 7.0, 7.0, 7.0]).p_positive == 1


def test_what_was_measured_counts_as_a_sample_too() -> None:
    """Of 1,001 differences that are 0 to 1,000, 500 in the mean, one is as far as 500 from it."""
    drawn = np.arange(1001.0)
    far = over_sentences(500.0, drawn)
    assert (far.p_positive, far.p_negative) == (2 / 1002, 1.0)
    behind = over_sentences(-500.0, drawn)
    assert (behind.p_positive, behind.p_negative) == (1.0, 2 / 1002)
    assert over_sentences(501.0, drawn).p_positive == 1 / 1002
    assert over_sentences(400.0, drawn, margin=100.0).p_positive == 2 / 1002
    assert over_sentences(400.0, drawn, margin=101.0).p_positive == 1 / 1002


def test_the_interval_of_the_bootstrap_has_95_of_100_samples() -> None:
    assert over_sentences(7.0, np.arange(1001.0)).interval == pytest.approx((25.0, 975.0))


def test_the_measured_order_counts_as_one_of_a_trend() -> None:
    """Of twelve points one order in 479,001,600 is as good: of the random ones none."""
    points = [float(number) for number in range(12)]
    rising, falling = trend(points, points), trend(points, points[::-1])
    assert (rising.value, rising.p_positive, rising.p_negative) == (1.0, 1 / (ORDERS + 1), 1.0)
    assert (falling.value, falling.p_positive, falling.p_negative) == (-1.0, 1.0, 1 / (ORDERS + 1))


def test_one_run_more_on_a_side_counts_by_its_own_freedom() -> None:
    """Against the t of two runs and three: Welch's degrees of freedom are between 1 and 3."""
    first, second = [20.0, 22.0], [10.0, 11.0, 12.0]
    variances = [float(np.var(side, ddof=1)) / len(side) for side in (first, second)]
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 1 + variances[1] ** 2 / 2)
    effect = over_runs([(1.0, first), (-1.0, second)])
    assert effect.p_positive == pytest.approx(t_tail(10 / math.sqrt(sum(variances)), freedom))
