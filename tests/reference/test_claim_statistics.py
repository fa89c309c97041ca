"""Values, intervals and p of the papers' claims: by scipy's tests, and by hand."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import yaml
from scipy import stats

from convs2s.config.settings import Settings
from convs2s.paper import claims
from convs2s.paper.claims import Finding, correct
from convs2s.paper.ledger import LedgerEntry, RunScore
from convs2s.scoring.bleu import encode_statistics
from convs2s.scoring.significance import measured
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

welch = partial(stats.ttest_ind, equal_var=False)

AHEAD = better(BASE, NO_SOURCE)
"""The claim that the base is better than without the source's positions."""
LAYERS = ("1", "1, 2", "1, 2, 3", "1, 2, 3, 4", "1, 2, 3, 4, 5")


SEEDS = yaml.safe_load("""
- [{}, [21.6, 21.7, 21.8], [21.2, 21.3, 21.4], held]
- [{}, [21.2, 21.3, 21.4], [21.6, 21.7, 21.8], not held]
- [{}, [21.2, 21.6, 21.9], [21.1, 21.5, 21.9], undecided]
- [{}, [21.6, 21.7, 21.7, 21.8], [20.0, 20.1, 20.2], held]
- [{margin: 0.1}, [21.20, 21.22, 21.24], [21.50, 21.52, 21.54], not held]
- [{margin: 0.3}, [21.20, 21.22, 21.24], [21.49, 21.52, 21.54], undecided]
- [{margin: 1.0}, [21.20, 21.22, 21.24], [21.50, 21.52, 21.54], held]
- [{within: 0.5}, [21.0, 21.1, 21.2], [21.0, 21.1, 21.2], held]
- [{within: 0.5}, [23.4, 23.5, 23.6], [21.0, 21.1, 21.2], not held]
- [{within: 0.5}, [19.2, 19.3, 19.4], [21.0, 21.1, 21.2], not held]
- [{within: 0.5}, [21.4, 21.5, 21.6], [21.0, 21.1, 21.2], undecided]
""")
"""What a claim states; scores of two models; the verdict."""


def test_seeds_of_two_models_by_welchs_test(demo: Settings) -> None:
    for stated, base, other, verdict in SEEDS:
        found = entries(demo, BASE, base), entries(demo, NO_SOURCE, other)
        result = finding(demo, better(BASE, NO_SOURCE, **stated), *found)
        assert (result.verdict, result.test, result.tests) == (verdict, claims.RUNS, 1)
        difference = np.mean(base) - np.mean(other)
        assert result.value == pytest.approx(difference)
        interval = welch(base, other).confidence_interval()
        assert result.interval == pytest.approx(tuple(interval))
        bound = sum(stated.values())
        p = welch(np.add(base, bound), other).pvalue
        if "within" in stated:
            p = max(p, welch(np.subtract(base, bound), other).pvalue)
            if abs(difference) < bound:
                p /= 2  # of two one-sided tests
        assert result.p == pytest.approx(p)


def test_networks_that_were_trained_alike_share_their_variance(demo: Settings) -> None:
    def alike(row: str, scores: list[float]) -> list[LedgerEntry]:
        training = {"optimizer": "adam"}
        trained = {"architecture": {"kind": row}, "training": training}
        return [
            replace(one, inputs={"run": one.file, "trained": trained})
            for one in entries(demo, row, scores)
        ]

    scores = {
        BASE: [21.0, 21.2, 21.4],
        NO_SOURCE: [20.7, 20.8, 20.9],
        NO_TARGET: [22.0, 22.3, 22.6],
    }
    found = [alike(row, of_row) for row, of_row in scores.items()]
    result = finding(demo, AHEAD, *found)
    # Three networks of three runs: six degrees of freedom.
    error = np.sqrt(np.mean([np.var(one, ddof=1) for one in scores.values()]) * 2 / 3)
    assert result.p == pytest.approx(2 * stats.t.sf(0.4 / error, 6))
    expected = error * (stats.t.ppf(0.975, 6) + stats.t.ppf(0.8, 6))
    assert result.detectable == pytest.approx(expected)
    equal = stats.levene(*scores.values()).pvalue
    assert f"variance of 3 networks pooled (Levene p = {equal:.2f})" in str(result.test)
    # Two are too few, and variances that differ are not pooled.
    assert "pooled" not in str(finding(demo, AHEAD, *found[:2]).test)
    found.append(alike(NONE, [0.0, 2.0, 40.0, 44.0]))
    assert "pooled" not in str(finding(demo, AHEAD, *found).test)


def test_of_the_same_models_the_differences_count(demo: Settings) -> None:
    """Two searches of three seeds that differ much more among each other."""
    scores = [20.0, 24.0, 28.0]
    gained = [20.3, 24.4, 28.5]
    base = entries(demo, BASE, gained)
    result = finding(demo, AHEAD, base, entries(demo, NO_SOURCE, scores, model=BASE))
    assert (result.verdict, result.test) == ("held", claims.RUNS + claims.SAME_MODELS)
    assert result.p == pytest.approx(stats.ttest_rel(gained, scores).pvalue)
    apart = finding(demo, AHEAD, base, entries(demo, NO_SOURCE, scores))
    assert (apart.verdict, apart.test) == ("undecided", claims.RUNS)


def test_an_ensemble_varies_as_its_models_do(demo: Settings) -> None:
    singles = entries(demo, NO_SOURCE, [21.0, 21.1, 21.2])
    half = stats.t.ppf(0.975, 2) * np.sqrt(0.01 + 0.01 / 3)
    # The fourth model does not stand alone.
    for run in ("ensemble3", "ensemble4"):
        together = entries(demo, BASE, [23.0], model=NO_SOURCE, run=run)
        result = finding(demo, AHEAD, together, singles)
        assert (result.verdict, result.runs) == ("held", f"{run} against 3")
        assert result.interval == pytest.approx((1.9 - half, 1.9 + half))


LSTM = {"table": "lstm_table1", "row": "Single reversed LSTM, beam size 12"}
GPU = {"table": "table3", "row": "ConvS2S GPU (K40), beam 1", "column": "seconds"}


def test_a_printed_value_is_a_constant(paper: Settings, demo: Settings) -> None:
    for cell, cited, measure, scores, printed in (
        (LSTM, "Bahdanau et al.", "bleu_tokenized", [30.5, 30.7, 30.6], 28.45),
        # A row that names no measure.
        (GPU, "GNMT GPU (K80)", "seconds_cuda", [300.0, 310.0, 320.0], 3028.0),
    ):
        claim = {"comparisons": [{"better": [cell], "worse": [{**cell, "row": cited}]}]}
        found = entries(paper, scores=scores, measure=measure, **cell)
        result = finding(paper, claim, found)
        assert (result.verdict, result.runs) == ("held", "3 against printed")
        assert result.value == pytest.approx(abs(np.mean(scores) - printed))
        assert result.p == pytest.approx(stats.ttest_1samp(scores, printed).pvalue)
        # On other data than the paper's there is none.
        note = str(finding(demo, claim).note)
        assert "a printed value is of the paper's data" in note


def test_a_gain_is_held_against_another(demo: Settings) -> None:
    means = {BASE: 21.0, NO_SOURCE: 19.0, NO_TARGET: 20.0}
    base, source, target = ({"table": "table4", "row": row} for row in means)
    stated = {"comparisons": [{"better": [base, base], "worse": [source, target]}]}
    found = [
        entries(demo, row, [mean - 0.1, mean, mean + 0.1])
        for row, mean in means.items()
    ]
    result = finding(demo, stated, *found)
    assert (result.verdict, result.runs) == ("held", "3 + 3 against 3 + 3")
    assert result.value == pytest.approx(3.0)


def test_of_perplexity_the_fall_counts(demo: Settings) -> None:
    scores = {BASE: [6.60, 6.61, 6.62], NO_SOURCE: [6.70, 6.71, 6.72]}
    found = [
        entries(demo, row, of_row, column="ppl", measure="perplexity")
        for row, of_row in scores.items()
    ]
    result = finding(demo, better(BASE, NO_SOURCE, column="ppl"), *found)
    assert result.verdict == "held"
    assert result.value == pytest.approx(0.1)
    assert result.printed == pytest.approx(6.69 - 6.64)
    equal = better(BASE, NO_SOURCE, column="ppl", within=0.3)
    assert finding(demo, equal, *found).value == pytest.approx(-0.1)


def trend(
    settings: Settings,
    heights: Sequence[float],
    rows: Sequence[str] = LAYERS,
    **stated: bool,
) -> Finding:
    """What a trend over table 5 comes to, of rows of such means."""
    x = {row: float(len(row.split(", "))) for row in rows}
    claim = {"trends": [{"table": "table5", "x": x, "per": "layer", **stated}]}
    found = [
        entries(settings, row, [height - 0.1, height, height + 0.1], table="table5")
        for row, height in zip(rows, heights, strict=False)
    ]
    return finding(settings, claim, *found)


HEIGHTS = yaml.safe_load("""
- [[20, 23, 26, 29, 31], held]
- [[20, 17, 14, 11, 9], not held]
- [[20, 23, 26, 29], held]
- [[20.0, 20.1, 19.9, 20.1, 20.0], undecided]
# 0.1 is of no weight among ten pairs
- [[10, 28, 27.9, 35, 40], held]
# 0.3 is, were there one pair
- [[10, 28, 27.72, 35, 40], held]
""")
"""Means of rows, and the verdict on their trend."""


def test_a_trend_has_the_slope_of_least_squares(demo: Settings) -> None:
    for heights, verdict in HEIGHTS:
        result = trend(demo, heights)
        assert result.verdict == verdict
        rows = len(heights)
        assert result.value == pytest.approx(np.polyfit(range(rows), heights, 1)[0])
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
    p = welch([27.9, 28.0, 28.1], [17.9, 18.0, 18.1]).pvalue
    # Of ten pairs; Holm's method leaves the larger p of two.
    assert result.p_reversal == pytest.approx(10 * p)


def test_nested_rows_alone_refute_a_trend(demo: Settings) -> None:
    """Layer 5 alone is better than layers 1 and 2, which have no part of each other."""
    rows = ("5", "1, 2", "1, 2, 3", "1")
    heights = [30.0, 28.0, 40.0, 10.0]
    assert trend(demo, heights, rows).verdict == "not held"
    nested = trend(demo, heights, rows, nested=True)
    assert (nested.verdict, nested.tests) == ("held", 4)


def with_sentences(
    settings: Settings, row: str, seed: int, share: float = 0.5, ratio: float = 1.0
) -> list[LedgerEntry]:
    """Three runs with such a share of right words, so many for one of the reference."""
    scored = []
    for place, entry in enumerate(entries(settings, row, [0.0] * 3)):
        random = np.random.default_rng([seed, place])
        words = np.full(300, 20)
        said = (words * ratio).astype(int) + random.integers(-1, 2, 300)
        totals = [said - order for order in range(4)]
        matches = [
            random.binomial(total, share ** (order + 1))
            for order, total in enumerate(totals)
        ]
        statistics = np.stack([said, words, *matches], axis=1)
        other = np.stack([said, words, *totals], axis=1)
        sentences = {
            "bleu_tokenized": encode_statistics(other),
            BEFORE: encode_statistics(statistics),
        }
        scores = {BEFORE: RunScore(float(measured(statistics).bleu[0]), "nrefs:1")}
        scored.append(replace(entry, scores=scores, sentences=sentences))
    return scored


def test_runs_and_sentences_are_drawn(demo: Settings) -> None:
    base = with_sentences(demo, BASE, 1, 0.78)
    for share, verdict, mirrored in (
        (0.6, "held", "not held"),
        (0.78, "undecided", "undecided"),
        (0.95, "not held", "held"),
    ):
        other = with_sentences(demo, NO_SOURCE, 2, share)
        result = finding(demo, AHEAD, base, other)
        assert (result.verdict, result.test) == (verdict, claims.HIERARCHICAL)
        swapped = finding(demo, better(NO_SOURCE, BASE), base, other)
        assert swapped.verdict == mirrored
        assert swapped.p == pytest.approx(result.p)
        assert swapped.p_error == pytest.approx(result.p_error)


def test_one_run_has_an_interval_over_its_sentences_and_no_verdict(
    demo: Settings,
) -> None:
    base = with_sentences(demo, BASE, 1, 0.8)[:1]
    other = with_sentences(demo, NO_SOURCE, 2, 0.6)
    result = finding(demo, AHEAD, base, other)
    assert (result.verdict, result.p) == ("no verdict", None)
    assert result.interval is not None
    assert result.value is not None
    low, high = result.interval
    assert 0 < low < result.value < high


def test_lengths_are_tested(demo: Settings) -> None:
    claim = {"lengths": [{"cells": [{"table": "table4", "row": BASE}], "within": 0.03}]}
    # Lengths are those of any measure's sentences.
    kept = "bleu_tokenized"
    for ratio, verdict in {1.0: "held", 0.9: "not held", 1.1: "not held"}.items():
        runs = with_sentences(demo, BASE, 1, ratio=ratio)
        runs = [replace(run, sentences={kept: run.sentences[kept]}) for run in runs]
        result = finding(demo, claim, runs)
        assert (result.verdict, result.test) == (verdict, claims.HIERARCHICAL)
        assert result.value == pytest.approx(ratio - 1, abs=0.01)
        assert result.measure == "Length ratio, less 1"
    unknown = finding(demo, claim, entries(demo, BASE, [0.0] * 3))
    assert unknown.note == "the sentences are not known"


def test_where_lengths_differ_bleu_without_its_penalty_stands_beside(
    demo: Settings,
) -> None:
    base = with_sentences(demo, BASE, 1)
    short = with_sentences(demo, NO_SOURCE, 2, ratio=0.9)
    near = with_sentences(demo, NO_SOURCE, 3)
    result = finding(demo, AHEAD, base, short)
    assert result.value is not None
    assert result.value > 1
    assert result.without_brevity == pytest.approx(0.0, abs=0.3)
    assert finding(demo, AHEAD, base, near).without_brevity is None


PHRASES = yaml.safe_load("""
- [[0.5, 0.4, 0.6], [0.01, 0.02, 0.01], held, 0.02]
- [[0.5, 0.4, 0.6], [0.01, 0.06, 0.01], undecided, 0.06]
- [[0.01, 0.02, 0.01], [0.01, 0.02, 0.01], not held, 0.02]
- [[0.5, 0.4, 0.01], [0.01, 0.02, 0.01], undecided, 1.0]
- [[0.5, 0.4], [0.01, 0.02], no verdict, null]
- [[0.5, 0.4, 0.6], [], no verdict, null]
""")
"""Shares and p-values of three runs; the verdict and its p."""


def test_meanings_are_apart_by_swaps(demo: Settings) -> None:
    row = "word order, sixteen phrases"
    cell = {"table": "lstm_figure2", "column": "apart"}
    claim = {"phrases": [{**cell, "group": "of this project", "row": row}]}
    chance = {"phrases_chance": RunScore(0.1, None)}
    for shares, p_values, verdict, p in PHRASES:
        runs = entries(demo, row, shares, measure="phrases_apart", **cell)
        for place, p_value in enumerate(p_values):
            scores = chance | {"phrases_p": RunScore(p_value, None)}
            runs[place] = replace(runs[place], scores={**runs[place].scores, **scores})
        result = finding(demo, claim, runs)
        tests = int(p is not None)
        assert (result.verdict, result.p, result.tests) == (verdict, p, tests)
        if p_values:
            assert result.value == pytest.approx(np.mean(shares) - 0.1)


def test_a_verdict_does_not_depend_on_the_draws() -> None:
    for stated in ("held", "not held"):
        for p, error, verdict in (
            (0.0499, 0.0, stated),
            (0.05, 0.0, "undecided"),
            (0.048, 0.0006, stated),
            (0.048, 0.0008, "undecided"),
            (0.0506, 0.0015, "undecided"),
        ):
            tested = Finding("a comparison", stated, p=p, p_error=error)
            correct([tested])
            assert tested.verdict == verdict
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
