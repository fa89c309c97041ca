"""Values, intervals and p of the papers' claims: by scipy's tests, and by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from convs2s.config.settings import Settings
from convs2s.paper import claims
from convs2s.paper.claims import Finding, correct
from convs2s.paper.ledger import LedgerEntry, RunScore
from convs2s.scoring.bleu import encode_statistics
from tests.reference.tables import values
from tests.support.claims import (
    BASE,
    BEFORE,
    NO_SOURCE,
    NO_TARGET,
    NONE,
    better,
    entries,
    finding,
)
from tests.support.statistics import bleu_of

CLAIM = better(BASE, NO_SOURCE)

VERDICTS = """
{}            => [21.6, 21.7, 21.8]       => [21.2, 21.3, 21.4]    => held
{}            => [21.2, 21.3, 21.4]       => [21.6, 21.7, 21.8]    => not held
{}            => [21.2, 21.6, 21.9]       => [21.1, 21.5, 21.9]    => undecided
{}            => [21.6, 21.7, 21.7, 21.8] => [20.0, 20.1, 20.2]    => held
{margin: 0.1} => [21.20, 21.22, 21.24]    => [21.50, 21.52, 21.54] => not held
{margin: 0.3} => [21.20, 21.22, 21.24]    => [21.49, 21.52, 21.54] => undecided
{margin: 1.0} => [21.20, 21.22, 21.24]    => [21.50, 21.52, 21.54] => held
{within: 0.5} => [21.0, 21.1, 21.2]       => [21.0, 21.1, 21.2]    => held
{within: 0.5} => [23.4, 23.5, 23.6]       => [21.0, 21.1, 21.2]    => not held
{within: 0.5} => [19.2, 19.3, 19.4]       => [21.0, 21.1, 21.2]    => not held
{within: 0.5} => [21.4, 21.5, 21.6]       => [21.0, 21.1, 21.2]    => undecided
"""


@pytest.mark.parametrize(("stated", "base", "other", "verdict"), values(VERDICTS))
def test_seeds_of_two_models_by_welchs_test(
    demo: Settings,
    stated: dict[str, Any],
    base: list[float],
    other: list[float],
    verdict: str,
) -> None:
    found = entries(demo, BASE, base), entries(demo, NO_SOURCE, other)
    result = finding(demo, better(BASE, NO_SOURCE, **stated), *found)
    assert (result.verdict, result.test, result.tests) == (verdict, claims.RUNS, 1)
    assert result.value == pytest.approx(np.mean(base) - np.mean(other))
    whole = stats.ttest_ind(base, other, equal_var=False).confidence_interval()
    assert result.interval == pytest.approx((whole.low, whole.high))


def test_networks_that_were_trained_alike_share_their_variance(demo: Settings) -> None:
    scores = {
        BASE: [21.0, 21.2, 21.4],
        NO_SOURCE: [20.7, 20.8, 20.9],
        NO_TARGET: [22.0, 22.3, 22.6],
        NONE: [0.0, 2.0, 40.0, 44.0],
    }
    found = []
    for row, of_row in scores.items():
        trained = {"network": row, "training": {"optimizer": "adam"}}
        for run in entries(demo, row, of_row):
            found.append([replace(run, inputs={**run.inputs, "trained": trained})])
    alike = list(scores.values())[:3]
    result = finding(demo, CLAIM, *found[:9])
    # Three networks of three runs: six degrees of freedom.
    error = np.sqrt(np.mean([np.var(one, ddof=1) for one in alike]) * 2 / 3)
    assert result.p == pytest.approx(2 * stats.t.sf(0.4 / error, 6))
    expected = error * (stats.t.ppf(0.975, 6) + stats.t.ppf(0.8, 6))
    assert result.detectable == pytest.approx(expected)
    assert "variance of 3 networks pooled" in str(result.test)
    # Two are too few, and variances that differ are not pooled.
    assert finding(demo, CLAIM, *found[:6]).test == claims.RUNS
    assert finding(demo, CLAIM, *found).test == claims.RUNS


def test_of_the_same_models_the_differences_count(demo: Settings) -> None:
    """Two searches of three seeds that differ much more among each other."""
    scores = [20.0, 24.0, 28.0]
    gained = [20.3, 24.4, 28.5]
    base = entries(demo, BASE, gained)
    result = finding(demo, CLAIM, base, entries(demo, NO_SOURCE, scores, model=BASE))
    assert (result.verdict, result.test) == ("held", claims.RUNS + claims.SAME_MODELS)
    assert result.p == pytest.approx(stats.ttest_rel(gained, scores).pvalue)
    apart = finding(demo, CLAIM, base, entries(demo, NO_SOURCE, scores))
    assert (apart.verdict, apart.test) == ("undecided", claims.RUNS)


def test_an_ensemble_varies_as_its_models_do(demo: Settings) -> None:
    """The fourth of them does not stand alone."""
    singles = entries(demo, NO_SOURCE, [21.0, 21.1, 21.2])
    together = entries(demo, BASE, [23.0], model=NO_SOURCE, run="ensemble4")
    result = finding(demo, CLAIM, together, singles)
    assert (result.verdict, result.runs) == ("held", "ensemble4 against 3")
    half = stats.t.ppf(0.975, 2) * np.sqrt(0.01 + 0.01 / 3)
    assert result.interval == pytest.approx((1.9 - half, 1.9 + half))


def test_a_printed_value_is_a_constant(paper: Settings, demo: Settings) -> None:
    """Of seconds the fewer are better; the printed row names no measure."""
    cell = {"table": "table3", "row": "ConvS2S GPU (K40), beam 1", "column": "seconds"}
    cited = {**cell, "row": "GNMT GPU (K80)"}
    claim = {"comparisons": [{"better": [cell], "worse": [cited]}]}
    scores = [300.0, 310.0, 320.0]
    found = entries(paper, scores=scores, measure="seconds_cuda", **cell)
    result = finding(paper, claim, found)
    assert (result.verdict, result.runs) == ("held", "3 against printed")
    assert result.value == pytest.approx(3028.0 - 310.0)
    assert result.p == pytest.approx(stats.ttest_1samp(scores, 3028.0).pvalue)
    # On other data than the paper's there is none.
    assert "a printed value is of the paper's data" in str(finding(demo, claim).note)


def test_a_gain_is_held_against_another(demo: Settings) -> None:
    rows = BASE, NO_SOURCE, NO_TARGET
    base, source, target = ({"table": "table4", "row": row} for row in rows)
    gains = {"better": [base, base], "worse": [source, target]}
    means = [21.1, 19.1, 20.1]
    found = [
        entries(demo, row, [mean - 0.1, mean, mean + 0.1])
        for row, mean in zip(rows, means, strict=True)
    ]
    result = finding(demo, {"comparisons": [gains]}, *found)
    assert result.verdict == "held"
    assert result.value == pytest.approx(3.0)
    assert result.runs == "3 + 3 against 3 + 3"


def test_of_perplexity_the_fall_counts(demo: Settings) -> None:
    found = [
        entries(demo, row, scores, column="ppl", measure="perplexity")
        for row, scores in ((BASE, [6.60, 6.61, 6.62]), (NO_SOURCE, [6.70, 6.71, 6.72]))
    ]
    result = finding(demo, better(BASE, NO_SOURCE, column="ppl"), *found)
    assert result.verdict == "held"
    assert result.value == pytest.approx(0.1)
    assert result.printed == pytest.approx(6.69 - 6.64)
    equal = better(BASE, NO_SOURCE, column="ppl", within=0.3)
    assert finding(demo, equal, *found).value == pytest.approx(-0.1)


LAYERS = ("1", "1, 2", "1, 2, 3", "1, 2, 3, 4", "1, 2, 3, 4, 5")


def trend(
    settings: Settings,
    heights: Sequence[float | None],
    rows: Sequence[str] = LAYERS,
    nested: bool = False,
) -> Finding:
    """What a trend over rows of table 5, by their numbers of layers, comes to."""
    x = {row: row.count(",") for row in rows}
    claim = {"table": "table5", "x": x, "per": "layer", "nested": nested}
    found = [
        entries(settings, row, [height - 0.1, height, height + 0.1], table="table5")
        for row, height in zip(rows, heights, strict=True)
        if height is not None
    ]
    return finding(settings, {"trends": [claim]}, *found)


# 0.3 would be of weight, were there one pair, and not ten.
HEIGHTS = """
[20, 23, 26, 29, 31]           => held
[20, 17, 14, 11, 9]            => not held
[20, 23, 26, 29, null]         => held
[20.0, 20.1, 19.9, 20.1, 20.0] => undecided
[10, 28, 27.72, 35, 40]        => held
"""


@pytest.mark.parametrize(("heights", "verdict"), values(HEIGHTS))
def test_a_trend_has_the_slope_of_least_squares(
    demo: Settings, heights: list[float | None], verdict: str
) -> None:
    result = trend(demo, heights)
    assert result.verdict == verdict
    known = [height for height in heights if height is not None]
    rows = len(known)
    assert result.value == pytest.approx(np.polyfit(range(rows), known, 1)[0])
    assert result.tests == 1 + rows * (rows - 1) / 2
    assert result.runs == f"{3 * rows} in {rows} rows"
    assert result.measure == "BLEU per layer"
    assert (result.note == "no score: '1, 2, 3, 4, 5'") == (rows == 4)


def test_two_rows_the_other_way_about_refute_a_trend(demo: Settings) -> None:
    """It rises on the whole, and row 2 is clearly better than row 4."""
    result = trend(demo, [10, 28, 25, 18, 40])
    assert result.verdict == "not held"
    assert result.value == pytest.approx(5.0)
    assert str(result.note).startswith("'1, 2' is better than '1, 2, 3, 4' in BLEU")
    welch = stats.ttest_ind([27.9, 28.0, 28.1], [17.9, 18.0, 18.1], equal_var=False)
    # Of ten pairs; Holm's method leaves the larger p of two.
    assert result.p_reversal == pytest.approx(10 * welch.pvalue)


def test_nested_rows_alone_refute_a_trend(demo: Settings) -> None:
    """Layer 5 alone is better than layers 1 and 2, which have no part of each other."""
    rows = ["5", "1, 2", "1, 2, 3", "1"]
    heights = [30, 28, 40, 10]
    assert trend(demo, heights, rows).verdict == "not held"
    nested = trend(demo, heights, rows, nested=True)
    assert (nested.verdict, nested.tests) == ("held", 4)


def sampled(
    settings: Settings, row: str, share: float, ratio: float = 1.0
) -> list[LedgerEntry]:
    """Three runs over 300 sentences, with such a share of right words.

    They say ``ratio`` words for each of the reference.
    """
    runs = []
    for seed, run in enumerate(entries(settings, row, [0.0] * 3)):
        random = np.random.default_rng([seed, *row.encode()])
        words = np.full(300, 20)
        said = (words * ratio).astype(int) + random.integers(-1, 2, 300)
        matches = [random.binomial(said - n, share ** (n + 1)) for n in range(4)]
        statistics = np.stack([said, words, *matches], axis=1)
        scores = {BEFORE: RunScore(bleu_of(statistics), "nrefs:1")}
        sentences = {BEFORE: encode_statistics(statistics)}
        runs.append(replace(run, scores=scores, sentences=sentences))
    return runs


def test_runs_and_sentences_are_drawn(demo: Settings) -> None:
    base = sampled(demo, BASE, 0.78)
    for share, verdicts in (
        (0.6, ("held", "not held")),
        (0.78, ("undecided", "undecided")),
    ):
        other = sampled(demo, NO_SOURCE, share)
        result = finding(demo, CLAIM, base, other)
        mirrored = finding(demo, better(NO_SOURCE, BASE), base, other)
        assert (result.verdict, mirrored.verdict) == verdicts
        assert result.test == claims.HIERARCHICAL
        assert mirrored.p == pytest.approx(result.p)
        assert mirrored.p_error == pytest.approx(result.p_error)
    # One run has an interval over its sentences, and no verdict.
    result = finding(demo, CLAIM, base[:1], sampled(demo, NO_SOURCE, 0.6))
    assert (result.verdict, result.p) == ("no verdict", None)
    low, high = result.interval or (0.0, 0.0)
    assert 0 < low < (result.value or 0.0) < high


def test_lengths_are_tested(demo: Settings) -> None:
    """Those of any measure's sentences."""
    cell = {"table": "table4", "row": BASE}
    claim = {"lengths": [{"cells": [cell], "within": 0.03}]}
    for ratio, verdict in ((1.0, "held"), (0.9, "not held")):
        runs = [
            replace(run, sentences={"bleu_tokenized": run.sentences[BEFORE]})
            for run in sampled(demo, BASE, 0.5, ratio)
        ]
        result = finding(demo, claim, runs)
        assert (result.verdict, result.test) == (verdict, claims.HIERARCHICAL)
        assert result.value == pytest.approx(ratio - 1, abs=0.01)
        assert result.measure == "Length ratio, less 1"
    unknown = finding(demo, claim, entries(demo, BASE, [0.0] * 3))
    assert unknown.note == "the sentences are not known"


def test_where_lengths_differ_bleu_without_its_penalty_stands_beside(
    demo: Settings,
) -> None:
    base = sampled(demo, BASE, 0.5)
    short = finding(demo, CLAIM, base, sampled(demo, NO_SOURCE, 0.5, ratio=0.9))
    assert short.value is not None
    assert short.value > 1
    assert short.without_brevity == pytest.approx(0.0, abs=0.3)
    near = finding(demo, CLAIM, base, sampled(demo, NO_SOURCE, 0.5))
    assert near.without_brevity is None


MEANINGS = """
[0.5, 0.4, 0.6]    => [0.01, 0.02, 0.01] => held       => 0.02
[0.5, 0.4, 0.6]    => [0.01, 0.06, 0.01] => undecided  => 0.06
[0.01, 0.02, 0.01] => [0.01, 0.02, 0.01] => not held   => 0.02
[0.5, 0.4, 0.01]   => [0.01, 0.02, 0.01] => undecided  => 1.0
[0.5, 0.4]         => [0.01, 0.02]       => no verdict => null
[0.5, 0.4, 0.6]    => []                 => no verdict => null
"""


@pytest.mark.parametrize(("shares", "p_values", "verdict", "p"), values(MEANINGS))
def test_meanings_are_apart_by_swaps(
    demo: Settings,
    shares: list[float],
    p_values: list[float],
    verdict: str,
    p: float | None,
) -> None:
    row = "word order, sixteen phrases"
    cell = {"table": "lstm_figure2", "column": "apart"}
    runs = entries(demo, row, shares, measure="phrases_apart", **cell)
    for place, p_value in enumerate(p_values):
        scores = dict(runs[place].scores)
        scores["phrases_p"] = RunScore(p_value, None)
        scores["phrases_chance"] = RunScore(0.1, None)
        runs[place] = replace(runs[place], scores=scores)
    named = {**cell, "group": "of this project", "row": row}
    result = finding(demo, {"phrases": [named]}, runs)
    assert (result.verdict, result.p, result.tests) == (verdict, p, int(p is not None))
    if p_values:
        assert result.value == pytest.approx(np.mean(shares) - 0.1)


DRAWS = """
0.0499 => 0.0    => true
0.05   => 0.0    => false
0.048  => 0.0006 => true
0.048  => 0.0008 => false
0.0506 => 0.0015 => false
"""


@pytest.mark.parametrize(("p", "error", "decided"), values(DRAWS))
def test_a_verdict_does_not_depend_on_the_draws(
    p: float, error: float, decided: bool
) -> None:
    tested = Finding("a comparison", "held", p=p, p_error=error)
    correct([tested])
    assert tested.verdict == ("held" if decided else "undecided")
    assert (tested.note is not None) == (error > 0.0006)


def test_p_is_corrected_where_one_test_of_a_claim_may_refute_it() -> None:
    """Of three one alone is small enough; a reversal counts as a test too."""
    tested = [Finding("", "not held", p=p) for p in (0.01, 0.03, 0.04)]
    correct(tested)
    assert [each.p_holm for each in tested] == pytest.approx([0.03, 0.06, 0.06])
    assert [each.verdict for each in tested] == ["not held", "undecided", "undecided"]
    # All must hold for a claim to hold: none needs a correction.
    holding = [Finding("", "held", p=p) for p in (0.01, 0.03, 0.06)]
    correct(holding)
    assert [each.verdict for each in holding] == ["held", "held", "undecided"]
    reversed_one = Finding("", "held", p=0.01, p_reversal=0.04)
    correct([reversed_one])
    assert (reversed_one.verdict, reversed_one.p_reversal) == ("not held", 0.04)
    correct([reversed_one, *tested])
    assert reversed_one.p_reversal == pytest.approx(0.09)
    # The error grows with p: four times 0.01 is three errors of 0.004 from the level.
    drawn = Finding("", "not held", p=0.01, p_error=0.001)
    correct([drawn, *[Finding("", "held", p=0.02) for _ in range(3)]])
    assert drawn.verdict == "undecided"
    assert drawn.p_holm == pytest.approx(0.04)
