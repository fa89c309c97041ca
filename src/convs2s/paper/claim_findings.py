"""What one comparison or trend of a claim came to: the difference, its chance and the verdict."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Literal

import numpy as np

from convs2s.config.claims import CellName, CellsCompared, Trend
from convs2s.config.settings import Settings
from convs2s.paper.cells import MEASURES
from convs2s.paper.claim_evidence import LOWER_IS_BETTER, Evidence, drawn, why_incomparable
from convs2s.paper.ledger import LedgerEntry
from convs2s.scoring.bleu import SAMPLES
from convs2s.scoring.significance import LEAST_POINTS, Effect, over_runs, over_sentences, trend

LEVEL = 0.05
"""How probable by chance an effect may be that a verdict rests on."""

Verdict = Literal["held", "not held", "undecided", "not run"]

CellFinder = Callable[[CellName], Evidence]

Weighted = Sequence[tuple[int, Evidence]]
"""Cells, and how often each counts: negative on the worse side, or where lower is better."""

WELCH = "Welch's t-test over runs"
SAME_MODELS = "t-test over runs, the same models on both sides"
BOOTSTRAP = f"paired bootstrap over sentences, {SAMPLES:,} resamples"
RANKS = "rank correlation of the rows' means against random orders"


@dataclass(frozen=True)
class Finding:
    """What one comparison or trend of a claim came to.

    Attributes:
        comparison: what is compared, in words.
        verdict: of this comparison alone.
        value: the difference, or the correlation of a trend; above 0 as the claim says. None where
            there is no score of a side.
        printed: the same of the printed values; None where not all are printed, and of trends.
        interval: of 95% confidence around the value; None where the test gives none.
        p_positive: how probable so large a value is if the claim is wrong; None without a test.
        p_negative: how probable so small a value is if the claim is right; likewise.
        test: what the probabilities come from.
        runs: how many of the better side against how many of the worse.
        test_set: test sets with their lines; None for validation data.
        metric: measure and signature.
        note: which cells lack a score, or why nothing was tested; None where nothing is to be said.
    """

    comparison: str
    verdict: Verdict = "not run"
    value: float | None = None
    printed: float | None = None
    interval: tuple[float, float] | None = None
    p_positive: float | None = None
    p_negative: float | None = None
    test: str | None = None
    runs: str | None = None
    test_set: str | None = None
    metric: str | None = None
    note: str | None = None


def compare_cells(settings: Settings, compared: CellsCompared, cell: CellFinder) -> Finding:
    """Return what a comparison of cells came to.

    Args:
        settings: the configuration.
        compared: the comparison.
        cell: gives what there is on a cell.
    """
    better, worse = (list(map(cell, side)) for side in (compared.better, compared.worse))
    sides = [" + ".join(one.label for one in side) for side in (better, worse)]
    link = f"at most {compared.margin:g} behind" if compared.margin else "better than"
    weighted = _weighted(better, worse)
    cells = [one for _, one in weighted]
    finding = Finding(f"{sides[0]} {link} {sides[1]}", printed=_of_printed(weighted))
    missing = [f"{one.label}: {one.missing}" for one in cells if one.missing]
    note = "; ".join(missing) or why_incomparable(settings, cells)
    if note:
        return replace(finding, note=note)
    runs = [" + ".join(one.runs_in_words for one in side) for side in (better, worse)]
    finding = replace(_about(finding, cells), runs=" against ".join(runs))
    tested = _test(weighted, compared.margin)
    if tested is None:
        value = _constant(weighted) + sum(weight * mean(one.scores) for weight, one in weighted)
        note = "one run alone, and its sentences are not known: its chance is not"
        return replace(finding, verdict="undecided", value=value, note=note)
    return _decided(finding, *tested)


def follow_trend(settings: Settings, wanted: Trend, cell: CellFinder) -> Finding:
    """Return what a trend over rows of a table came to, the mean of each row's runs a point.

    Runs of a row are no points of their own: they resemble each other, whatever the order of the
    rows, and a test that took them for independent would find trends where there are none.

    Args:
        settings: the configuration.
        wanted: the trend.
        cell: gives what there is on a cell.
    """
    cells = {row: cell(wanted.cell(row)) for row in wanted.x}
    rows = list(wanted.x)
    first, last = min(rows, key=wanted.x.__getitem__), max(rows, key=wanted.x.__getitem__)
    there = [row for row in rows if cells[row].runs]
    ends = f"{cells[first].label} to {cells[last].label}"
    finding = Finding(f"better from {ends}, {len(rows)} rows")
    missing = [row for row in rows if row not in there]
    note = f"no score: {', '.join(map(repr, missing))}" if missing else None
    if len(there) < LEAST_POINTS:
        needed = f"{LEAST_POINTS} rows are needed"
        return replace(finding, note=f"{note}; {needed}" if note else needed)
    found = [cells[row] for row in there]
    incomparable = why_incomparable(settings, found)
    if incomparable:
        return replace(finding, note=incomparable)
    sign = -1 if found[0].measure in LOWER_IS_BETTER else 1
    points = [(wanted.x[row], sign * mean(cells[row].scores)) for row in there]
    runs = f"{sum(len(one.runs) for one in found)} of {len(there)} rows"
    finding = replace(_about(finding, found), runs=runs, note=note)
    return _decided(finding, RANKS, trend(*zip(*points, strict=True)))


def _weighted(better: Sequence[Evidence], worse: Sequence[Evidence]) -> Weighted:
    cells = {one.name: one for one in (*better, *worse)}
    counts = Counter(one.name for one in better)
    counts.subtract(one.name for one in worse)
    sign = -1 if better[0].measure in LOWER_IS_BETTER else 1
    return [(sign * counts[name], one) for name, one in cells.items()]


def _constant(weighted: Weighted) -> float:
    """Return the part of a difference that printed values of others make up."""
    return sum(weight * one.printed for weight, one in weighted if one.is_cited and one.printed)


def _of_printed(weighted: Weighted) -> float | None:
    printed = [weight * one.printed for weight, one in weighted if one.printed is not None]
    return sum(printed) if len(printed) == len(weighted) else None


def _test(weighted: Weighted, margin: float) -> tuple[str, Effect] | None:
    """Return the test that fits what there is, and its effect; None where none does.

    Where all cells are of the same models, the difference is taken model by model: what the models
    differ in is then no part of its chance.
    """
    constant = _constant(weighted)
    measured = [(weight, one) for weight, one in weighted if not one.is_cited]
    least = min(len(one.runs) for _, one in measured)
    models = {tuple(run.models or run.run for run in one.runs) for _, one in measured}
    if least > 1 and len(models) == 1 and len(measured) > 1:
        pairs = zip(
            *([weight * score for score in one.scores] for weight, one in measured), strict=True
        )
        differences = [(1.0, [sum(scores) for scores in pairs])]
        return SAME_MODELS, over_runs(differences, constant=constant, margin=margin)
    if least > 1:
        samples = [(float(weight), one.scores) for weight, one in measured]
        return WELCH, over_runs(samples, constant=constant, margin=margin)
    if any(one.measure not in run.sentences for _, one in measured for run in one.runs):
        return None
    value = constant + sum(weight * mean(one.scores) for weight, one in measured)
    resampled = sum(
        weight * np.mean([drawn(run, one.measure) for run in one.runs], axis=0)
        for weight, one in measured
    )
    return BOOTSTRAP, over_sentences(value, constant + resampled, margin)


def _decided(finding: Finding, test: str, effect: Effect) -> Finding:
    verdict: Verdict = "undecided"
    if effect.p_positive < LEVEL:
        verdict = "held"
    elif effect.p_negative < LEVEL:
        verdict = "not held"
    return replace(
        finding,
        verdict=verdict,
        value=effect.value,
        interval=effect.interval,
        p_positive=effect.p_positive,
        p_negative=effect.p_negative,
        test=test,
    )


def _about(finding: Finding, cells: Sequence[Evidence]) -> Finding:
    """Return the finding with the test sets and metrics of its cells."""
    runs = [(one.measure, run) for one in cells for run in one.runs]
    sets = dict.fromkeys(_test_set(run) for _, run in runs if run.run.testset)
    metrics = dict.fromkeys(
        " ".join(filter(None, [MEASURES[measure].label, run.scores[measure].signature]))
        for measure, run in runs
    )
    return replace(finding, test_set="; ".join(sets) or None, metric="; ".join(metrics))


def _test_set(entry: LedgerEntry) -> str:
    lines = f" ({entry.lines:,} lines)" if entry.lines is not None else ""
    return f"{entry.run.task} {entry.run.testset}{lines}"
