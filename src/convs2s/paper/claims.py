"""Verdicts on the claims that the papers make in words, from the runs in the ledger.

`paper.claim_tables` writes the verdicts to files.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from statistics import mean
from typing import Literal

from convs2s.config.claims import CellName, CellsCompared, Trend
from convs2s.config.measures import MEASURES
from convs2s.config.settings import Settings
from convs2s.paper.evidence import (
    LOWER_IS_BETTER,
    EntriesOfCells,
    Evidence,
    Quantity,
    Weighted,
    equal_processors,
    evidence,
    on_one_processor,
    pools,
    samples_of,
    trained_alike,
    why_incomparable,
    why_no_verdict,
)
from convs2s.scoring.significance import DRAWS, effect_of, holm, over_sentences

LEVEL = 0.05  # the level of significance: a verdict needs a corrected p below it
LEAST_POINTS = 3  # the minimum number of different values of x in a trend
# A verdict needs a p that is more Monte Carlo errors from LEVEL than this.
_ERRORS_FROM_LEVEL = 3
# If translations are longer or shorter than the references by more than this share, their finding
# also states the difference of BLEU without brevity penalty.
_BREVITY = 0.03

HIERARCHICAL = (
    f"runs and sentences drawn anew (hierarchical bootstrap, {DRAWS:,} draws)"
)
RUNS = "t-test over runs"
PERMUTATIONS = "swaps of the phrases' meanings, the largest p of the runs"
SAME_MODELS = ", the same models on both sides"

Verdict = Literal[
    "held", "not held", "undecided", "no verdict", "not run", "not tested"
]
"""A verdict on a finding or on a claim.

- held, not held: the effect is significant, in the direction of the claim or against it.
- undecided: the effect is not significant, or its p is too close to ``LEVEL``.
- no verdict: there are scores, but they cannot be compared, or there are too few runs.
- not run: scores that the test needs are missing.
- not tested: the claim has no test.
"""


@dataclass
class Finding:
    """The result of one comparison or trend of a claim; a field is None if it does not apply."""

    comparison: str  # what is compared, in words
    verdict: Verdict = "not run"
    # A difference or a slope. It is positive if it agrees with the claim. If the claim is that two
    # sides are equal, the value is the first side less the second.
    value: float | None = None
    # The measure of the value: the heading of its column.
    measure: str | None = None
    # The same difference, of the paper's values; None unless the paper prints all of them.
    printed: float | None = None
    # The 95% confidence interval of the value; without a verdict, over test sentences alone.
    interval: tuple[float, float] | None = None
    p: float | None = None  # the p-value of the effect, before the correction
    p_error: float | None = None  # the Monte Carlo standard error of p
    p_holm: float | None = None  # p after Holm's correction for all tests of the claim
    # The smallest true effect that 80% of such experiments would find.
    detectable: float | None = None
    # For a trend: the smallest p-value of a pair of rows in the reverse order, multiplied by the
    # number of pairs. `correct` then corrects it by Holm's method, too.
    p_reversal: float | None = None
    # The number of tests behind the finding: one, and for a trend one more for each pair of rows.
    tests: int = 0
    # The difference of BLEU without brevity penalty, if the translations of a cell are shorter or
    # longer than the references by more than `_BREVITY`.
    without_brevity: float | None = None
    test: str | None = None  # the name of the statistical test
    # The numbers of runs on both sides, or the names of ensembles.
    runs: str | None = None
    # The test sets and their numbers of lines; None for validation.
    test_set: str | None = None
    metric: str | None = None  # the metrics with their signatures
    note: str | None = None  # what a reader must know, such as why nothing was tested

    @property
    def is_reversed(self) -> bool:
        """Whether a pair of rows in the reverse order refutes a trend."""
        return self.p_reversal is not None and self.p_reversal < LEVEL

    def add_note(self, note: str) -> None:
        """Append a note to the notes that the finding already has."""
        self.note = f"{self.note}; {note}" if self.note else note

    def describe(self, cells: Collection[Evidence]) -> bool:
        """Set the test sets, measures and metrics from the cells, and return True.

        If a cell has no score, set none of them, add a note that says why, and return False.
        """
        missing = [f"{cell.label}: {cell.missing}" for cell in cells if cell.missing]
        if missing:
            self.add_note("; ".join(missing))
            return False
        test_sets = []
        measures = []
        metrics = []
        for cell in cells:
            for entry in cell.entries:
                measures.append(cell.heading)
                if entry.run.testset:
                    test_set = f"{entry.run.task} {entry.run.testset}"
                    if entry.lines is not None:
                        test_set += f" ({entry.lines:,} lines)"
                    test_sets.append(test_set)
                signature = entry.scores[cell.measure].signature or ""
                metrics.append(f"{MEASURES[cell.measure].label} {signature}".strip())
        self.test_set = "; ".join(dict.fromkeys(test_sets)) or None
        self.measure = " and ".join(dict.fromkeys(measures))
        self.metric = "; ".join(dict.fromkeys(metrics)) or None
        return True


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of config/claims.yaml with its verdict and the findings that decide it."""

    name: str
    says: str
    source: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    untested: str | None  # the reason why the claim has no test; None if it has one
    # What was chosen after results had been seen; None if all was planned.
    exploratory: str | None = None

    @property
    def decisive(self) -> Finding:
        """The finding that is printed beside the claim.

        Of the findings with the claim's verdict, it is the first one that has a value, usually
        without its note. If a reversed pair of rows refutes a trend, the finding keeps the note,
        which names the pair, but not the slope. If no finding with the verdict has a value, return
        the first of them; its note says why. If no finding has the verdict, return an empty one.
        """
        agreeing = [one for one in self.findings if one.verdict == self.verdict]
        for finding in agreeing:
            if finding.value is None:
                continue
            if finding.is_reversed:
                # The slope may agree with the claim, although the trend is refuted.
                return replace(finding, value=None, interval=None, measure=None)
            if self.verdict == "no verdict":
                return finding  # the note says why there is no verdict
            return replace(finding, note=None)
        return agreeing[0] if agreeing else Finding("")


def judge(settings: Settings, entries: EntriesOfCells) -> list[JudgedClaim]:
    """Test every claim of config/claims.yaml; return the claims with their verdicts."""
    equal = equal_processors(entries)
    pooled = pools(settings, entries)

    def find(*names: CellName) -> list[Evidence]:
        """Return the evidence of cells, with the runs of one processor if it has all of them."""
        cells = [evidence(settings, name, entries) for name in names]
        found = []
        for cell in on_one_processor(cells, entries, equal):
            alike = trained_alike(cell.entries, cell.measure)
            # The variance of a cell is pooled only if all its runs were trained alike.
            pool = pooled.get(alike) if alike else None
            found.append(replace(cell, pool=pool))
        return found

    judged = []
    for name, claim in settings.claims.items():
        findings = []
        for compared in claim.comparisons:
            cells = find(*compared.better, *compared.worse)
            findings.append(compare_cells(compared, cells))
        for trend in claim.trends:
            cells = find(*map(trend.cell, trend.x))
            findings.append(follow_trend(trend, cells))
        for lengths in claim.lengths:
            for cell_name in lengths.cells:
                findings.append(compare_length(lengths.within, *find(cell_name)))
        for cell_name in claim.phrases:
            findings.append(compare_meanings(*find(cell_name)))
        correct(findings)
        verdict: Verdict = "not tested"
        if not claim.untested:
            verdict = verdict_of(finding.verdict for finding in findings)
        judged.append(
            JudgedClaim(
                name,
                claim.says,
                claim.source,
                verdict,
                tuple(findings),
                claim.untested,
                claim.exploratory,
            )
        )
    return judged


def correct(findings: Iterable[Finding]) -> None:
    """Correct the p-values of a claim's findings by Holm's method, and update the verdicts.

    A claim is held only if all its findings are held, so each of them may be tested at ``LEVEL``
    without a correction (an intersection-union test, Berger 1982). A single finding can refute the
    claim, so "not held" needs a corrected p below ``LEVEL``. A finding becomes undecided if its p
    is not below ``LEVEL``, or so close to it that more draws could change the verdict. A
    significant reversal refutes a trend.
    """
    tested: list[tuple[Finding, float]] = []
    p_values: list[float] = []
    for finding in findings:
        if finding.p is not None:
            tested.append((finding, finding.p))
            p_values.append(finding.p)
            if finding.p_reversal is not None:
                p_values.append(finding.p_reversal)
    # All tests of the claim are corrected together. `holm` keeps their order.
    corrected = iter(holm(p_values))
    for finding, uncorrected in tested:
        p_holm = next(corrected)
        finding.p_holm = p_holm
        if finding.p_reversal is not None:
            finding.p_reversal = next(corrected)
        p = p_holm if finding.verdict == "not held" else uncorrected
        # The correction multiplies p, and the error of p by the same factor.
        factor = p / uncorrected if uncorrected else 1.0
        error = (finding.p_error or 0.0) * factor
        if finding.is_reversed:
            finding.verdict = "not held"
        elif error and abs(p - LEVEL) <= _ERRORS_FROM_LEVEL * error:
            finding.verdict = "undecided"
            finding.add_note("more draws could change the verdict")
        elif p >= LEVEL:
            finding.verdict = "undecided"


def verdict_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a claim from the verdicts on its findings.

    The claim is "not run" if all its findings are. If some were run, but none has a verdict, the
    claim has "no verdict". Otherwise only the findings with a verdict count: the claim is "not
    held" if one of them is not held, "undecided" if one of the others is undecided, and "held" if
    all are held.
    """
    found = set(verdicts)
    # The first of these that a finding has is the verdict; without one, it is "not run".
    order: tuple[Verdict, ...] = ("not held", "undecided", "held", "no verdict")
    return next((verdict for verdict in order if verdict in found), "not run")


def compare_cells(compared: CellsCompared, found: Sequence[Evidence]) -> Finding:
    """Test one comparison of cells, before the correction of p.

    ``found`` are the cells of ``compared.better``, then those of ``compared.worse``.
    """
    better = found[: len(compared.better)]
    worse = found[len(compared.better) :]
    if compared.within is not None:
        link = f"within {compared.within:g} of"
        region = (-compared.within, compared.within)
        sign = 1.0  # a claim of equal sides has no better direction
    else:
        link = "better than"
        if compared.margin:
            link = f"at most {compared.margin:g} behind"
        region = (-compared.margin, math.inf)
        sign = _sign(found)
    # A cell may be on both sides, or twice on one side. Its count is how often it is on the better
    # side, less how often it is on the worse side.
    counts = Counter(cell.address for cell in better)
    counts.subtract(cell.address for cell in worse)
    cells = {cell.address: cell for cell in found}.values()  # each cell once
    weighted = [(sign * counts[cell.address], cell) for cell in cells]
    labels_of_better = " + ".join(cell.label for cell in better)
    labels_of_worse = " + ".join(cell.label for cell in worse)
    finding = Finding(f"{labels_of_better} {link} {labels_of_worse}")
    printed = [
        weight * cell.printed for weight, cell in weighted if cell.printed is not None
    ]
    if len(printed) == len(weighted):
        finding.printed = sum(printed)
    if not finding.describe(cells):
        return finding
    runs_of_better = " + ".join(cell.runs_in_words for cell in better)
    runs_of_worse = " + ".join(cell.runs_in_words for cell in worse)
    finding.runs = f"{runs_of_better} against {runs_of_worse}"
    models = min(cell.trainings for cell in better)
    has_all_models = compared.models is None or models >= compared.models
    if not has_all_models:
        finding.add_note(
            f"the claim is about {compared.models} models together; only {models} are here"
        )
    judge_effect(finding, weighted, region, decides=has_all_models)
    return finding


def _sign(cells: Iterable[Evidence]) -> float:
    """Return -1 if lower values of a measure of the cells are better, else 1."""
    return -1.0 if any(cell.measure in LOWER_IS_BETTER for cell in cells) else 1.0


def compare_length(within: float, cell: Evidence) -> Finding:
    """Test whether translations are as long as the references, before the correction of p.

    The value is the length ratio less 1: how much longer the translations are than the references,
    as a share of the references' words. The claim says that its absolute value is below ``within``.
    """
    finding = Finding(f"length of {cell.label} within {within:.0%} of the references'")
    if not finding.describe([cell]):
        return finding
    finding.runs = cell.runs_in_words
    finding.measure = "Length ratio, less 1"
    if cell.length_ratio is None:
        finding.verdict = "no verdict"
        finding.add_note("the sentences are not known")
    else:
        region = (-within, within)
        judge_effect(finding, [(1, cell)], region, quantity="length_ratio")
    return finding


def compare_meanings(cell: Evidence) -> Finding:
    """Test whether the states of phrases depend on their meanings, before the correction of p.

    A run's value is the share of the states' variance between meanings, less the share that is
    expected by chance; the finding has the mean over the runs. All runs have the same phrases, so
    their p-values are not independent. So they are not combined: the largest one counts. p is 1 if
    the values of some runs are positive and those of others are not.
    """
    finding = Finding(f"meanings apart in {cell.label}, more than by chance")
    if not finding.describe([cell]):
        return finding
    finding.runs = cell.runs_in_words
    finding.verdict = "no verdict"
    why_not = why_incomparable([cell]) or why_no_verdict([(1, cell)])
    if why_not:
        finding.add_note(why_not)
    # Records of older versions have neither the share by chance nor p.
    if not all("phrases_chance" in entry.scores for entry in cell.entries):
        finding.add_note(
            "the record has no permutation test of the meanings; run project_phrases again"
        )
        return finding
    scores = [entry.scores for entry in cell.entries]
    # The value of each run.
    excesses = [
        run["phrases_apart"].score - run["phrases_chance"].score for run in scores
    ]
    finding.value = mean(excesses)
    if not why_not:
        finding.verdict = "held" if finding.value > 0 else "not held"
        runs_agree = len({excess > 0 for excess in excesses}) == 1
        p = max(run["phrases_p"].score for run in scores)
        finding.p = p if runs_agree else 1.0
        finding.tests = 1
        finding.test = PERMUTATIONS
    return finding


def follow_trend(trend: Trend, found: Sequence[Evidence]) -> Finding:
    """Test one trend over rows of a table, before the correction of p.

    ``found`` are the cells of the rows in ``trend.x``. The value is the slope of the least-squares
    line through the rows' means: the gain for each unit of x.

    A pair of rows is reversed if the row of lower x is better. A significant reversal refutes the
    trend, even if the slope is positive. If the trend is nested, only pairs count in which one row
    has everything that the other has, and more. The p of each reversed pair is increased by
    ``_ERRORS_FROM_LEVEL`` Monte Carlo errors, and multiplied by the number of pairs.
    """
    cells = dict(zip(trend.x, found, strict=True))
    first = min(trend.x, key=trend.x.__getitem__)
    last = max(trend.x, key=trend.x.__getitem__)
    finding = Finding(
        f"better from {cells[first].label} to {cells[last].label}, {len(cells)} rows"
    )
    scored = {row: cell for row, cell in cells.items() if cell.entries}
    if len(scored) < len(cells):
        without_score = [repr(row) for row in cells if row not in scored]
        finding.add_note(f"no score: {', '.join(without_score)}")
    if len({trend.x[row] for row in scored}) < LEAST_POINTS:
        finding.add_note(f"scores at {LEAST_POINTS} different values of x are needed")
        return finding
    finding.describe(scored.values())
    trainings = sum(cell.trainings for cell in scored.values())
    finding.runs = f"{trainings} in {len(scored)} rows"
    finding.measure = f"{finding.measure} per {trend.per}"
    sign = _sign(found)
    # The least-squares slope is a weighted sum of the rows' means.
    middle = mean(trend.x[row] for row in scored)
    squares = sum((trend.x[row] - middle) ** 2 for row in scored)
    weighted = []
    for row, cell in scored.items():
        weighted.append((sign * (trend.x[row] - middle) / squares, cell))
    judge_effect(finding, weighted, (0.0, math.inf))
    if finding.p is None:
        return finding
    pairs = []  # each: row of the lower x, row of the higher x
    for low, high in permutations(scored, 2):
        rises = trend.x[low] < trend.x[high]
        if trend.nested:  # the rows are named by lists, such as "1, 2"
            rises = set(low.split(", ")) < set(high.split(", "))
        if rises:
            pairs.append((low, high))
    finding.tests = 1 + len(pairs)
    # Of each reversed pair: p times the number of pairs, row of the lower x, row of the higher x.
    reversals: list[tuple[float, str, str]] = []
    for low, high in pairs:
        effect = effect_of(samples_of([(sign, scored[high]), (-sign, scored[low])]))
        if effect.value < 0:
            p, error = effect.p_value(0.0)
            reversals.append((len(pairs) * (p + _ERRORS_FROM_LEVEL * error), low, high))
    finding.p_reversal = 1.0
    if reversals:
        # If several pairs have the smallest p, the names of their rows decide.
        p, low, high = min(reversals)
        finding.p_reversal = min(p, 1.0)
        if finding.is_reversed:
            chance = f"p = {finding.p_reversal:.4f} of {len(pairs)} pairs, before Holm"
            finding.add_note(
                f"{low!r} is better than {high!r} in {scored[low].heading} ({chance})"
            )
    return finding


def judge_effect(
    finding: Finding,
    weighted: Weighted,
    region: tuple[float, float],
    *,
    quantity: Quantity = "score",
    decides: bool = True,
) -> None:
    """Set the value, interval, p and verdict of a finding, before the correction of p.

    The verdict is "held" or "not held" by the value alone; `correct` makes it "undecided" if p is
    too large. It is "no verdict", without p, if the cells are incomparable or have too few runs.

    Args:
        finding: the finding to set.
        weighted: the cells, which all have scores, with their weights.
        region: the open interval that contains the weighted sum if the claim is true.
        quantity: what is summed up. From a length ratio, 1 is subtracted.
        decides: if False, set the value and its interval over sentences, but give no verdict.
    """
    finding.verdict = "no verdict"
    cells = [cell for _, cell in weighted]
    if incomparable := why_incomparable(cells):
        finding.add_note(incomparable)
        return
    if not all(entry.processor for cell in cells for entry in cell.entries):
        finding.add_note("the processor of the runs is not recorded")
    # The part of the sum that does not vary: the 1 that is subtracted from a length ratio, and the
    # printed values of cited cells.
    constant = -1.0 if quantity == "length_ratio" else 0.0
    computed = []  # the weighted cells that have runs
    for weight, cell in weighted:
        if not cell.is_cited:
            computed.append((weight, cell))
        elif cell.printed is not None:
            constant += weight * cell.printed
    samples = samples_of(computed, quantity)  # scores times the weights of their cells
    finding.value = constant + sum(mean(sample.scores) for sample in samples)
    if quantity == "score":
        finding.without_brevity = _without_brevity(weighted)
    drawn = [sample.drawn for sample in samples if sample.drawn is not None]
    has_sentences = len(drawn) == len(samples)
    too_few = why_no_verdict(computed)
    if too_few:
        finding.add_note(too_few)
    if too_few or not decides:
        if has_sentences:
            finding.interval = over_sentences(drawn, constant)
        return
    effect = effect_of(samples, constant)
    low, high = region
    finding.verdict = "held" if low < finding.value < high else "not held"
    finding.interval = effect.interval
    finding.detectable = effect.detectable
    finding.p, finding.p_error = effect.p_value(low, high)
    finding.tests = 1
    finding.test = HIERARCHICAL if has_sentences else RUNS
    for pool in dict.fromkeys(sample.pool for sample in samples if sample.pool):
        equal = f"Levene p = {pool.p_equal:.2f}"
        finding.test += f", variance of {pool.networks} networks pooled ({equal})"
    # `samples_of` makes one sample of cells with the same models.
    if len(samples) == 1 and len(computed) > 1:
        finding.test += SAME_MODELS


def _without_brevity(weighted: Weighted) -> float | None:
    """Return the difference of BLEU without the brevity penalty, if a length ratio is far from 1.

    Far means by more than ``_BREVITY``. Return None if all length ratios are nearer to 1, if a
    measure is not tokenized BLEU, or if the ledger does not have the sentences of a cell.
    """
    difference = 0.0
    largest = 0.0  # the largest distance of a length ratio from 1
    for weight, cell in weighted:
        if not cell.measure.startswith("bleu_tokenized") or not cell.sentences("score"):
            return None
        ratio = cell.length_ratio
        if ratio is not None:
            largest = max(largest, abs(ratio - 1))
        difference += weight * mean(cell.scores("without_brevity"))
    return difference if largest > _BREVITY else None
