"""Verdicts on the claims that the papers make in words, from the runs in the ledger."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, permutations
from pathlib import Path
from statistics import mean
from typing import Literal, get_args

from convs2s.config.claims import CellName, CellsCompared, Trend
from convs2s.config.measures import MEASURES
from convs2s.config.settings import Settings
from convs2s.files.text import write_json, write_text
from convs2s.paper.cells import cells_of_tables
from convs2s.paper.evidence import (
    LEAST_RUNS_IN_WORDS,
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
from convs2s.paper.ledger import read_ledger
from convs2s.paper.results import runs_by_cell
from convs2s.paper.table_formats import Sheet, csv, markdown
from convs2s.paper.tables import headings_of, scale_name
from convs2s.scoring.significance import DRAWS, effect_of, holm, over_sentences

LEVEL = 0.05  # the level of significance: a verdict needs a corrected p below it
LEAST_POINTS = 3  # the minimum number of different values of x in a trend
# A verdict needs a p that is more Monte Carlo errors from LEVEL than this.
_ERRORS_FROM_LEVEL = 3
# If lengths differ from the references by more than this share, findings also have the difference
# of BLEU without brevity penalty.
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
    # A difference or a slope. It is positive if it agrees with the claim; if the claim is that two
    # sides are equal, it is the first side less the second.
    value: float | None = None
    # The measure of the value, as the heading of its column names it.
    measure: str | None = None
    # The same difference of the paper's values, if it prints all.
    printed: float | None = None
    # The 95% confidence interval of the value; without a verdict, over test sentences alone.
    interval: tuple[float, float] | None = None
    p: float | None = None  # the p-value of the effect, before the correction
    p_error: float | None = None  # the Monte Carlo standard error of p
    p_holm: float | None = None  # p after Holm's correction for all tests of the claim
    # The smallest true effect that 80% of such experiments would find.
    detectable: float | None = None
    # For a trend: the p-value of the clearest pair of rows in the reverse order, corrected for the
    # number of pairs. `correct` then corrects it by Holm's method too.
    p_reversal: float | None = None
    # The number of tests: one, and for a trend one more for each pair of rows.
    tests: int = 0
    # The difference of BLEU without brevity penalty, if the translations of a side are shorter or
    # longer than the references by more than 3 percent.
    without_brevity: float | None = None
    test: str | None = None  # the name of the statistical test
    # The numbers of runs on both sides, or the names of ensembles.
    runs: str | None = None
    # The test sets and their numbers of lines; None for validation.
    test_set: str | None = None
    metric: str | None = None  # the metrics with their signatures
    note: str | None = None  # what a reader must know, such as why nothing was tested

    def add_note(self, note: str) -> None:
        """Append a note to those that the finding has already."""
        self.note = f"{self.note}; {note}" if self.note else note

    def describe(self, cells: Collection[Evidence]) -> bool:
        """Set the test sets, measures and metrics from the cells, if every cell has a score.

        Return whether that is so. If not, a note says which cells have no score, and why.
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
                    lines = (
                        f" ({entry.lines:,} lines)" if entry.lines is not None else ""
                    )
                    test_sets.append(f"{entry.run.task} {entry.run.testset}{lines}")
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

        It is a copy of the first finding that has a value and the claim's verdict. Usually the copy
        has no note. If a reversed pair of rows refutes a trend, the copy keeps the note, which
        names the pair, and has no slope. If no finding has a value and the claim's verdict, the
        result is the first finding of that verdict, whose note says why; else an empty one.
        """
        agreeing = [one for one in self.findings if one.verdict == self.verdict]
        for finding in agreeing:
            if finding.value is not None:
                if finding.p_reversal is not None and finding.p_reversal < LEVEL:
                    return replace(finding, value=None, interval=None, measure=None)
                if self.verdict == "no verdict":
                    return finding  # its note says why
                return replace(finding, note=None)
        return agreeing[0] if agreeing else Finding("")


@dataclass(frozen=True)
class JudgedClaims:
    """The content of claims.json: the claims, and what their verdicts hold for."""

    claims: list[JudgedClaim]
    scale: str | None = None
    stand_in: str | None = None  # what stands in for the paper's data
    level: float = LEVEL


def judge(settings: Settings, entries: EntriesOfCells) -> list[JudgedClaim]:
    """Test every claim of config/claims.yaml; return the claims with their verdicts."""
    equal = equal_processors(entries)
    pooled = pools(settings, entries)

    def find(*names: CellName) -> list[Evidence]:
        cells = [evidence(settings, name, entries) for name in names]
        found = []
        for cell in on_one_processor(cells, entries, equal):
            alike = trained_alike(cell.entries, cell.measure)
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

    A claim is held if all its findings are, so that each may be tested at ``LEVEL`` (an
    intersection-union test, Berger 1982): "held" needs no correction. One finding alone can refute
    it, so "not held" needs a corrected p below ``LEVEL``. A finding becomes undecided if its p is
    not below ``LEVEL``, or so close to it that another number of draws could change the verdict. A
    significant reversal refutes a trend.
    """
    tested = [finding for finding in findings if finding.p is not None]
    p_values: list[float] = []
    for finding in tested:
        p_values += [p for p in (finding.p, finding.p_reversal) if p is not None]
    # All tests of the claim are corrected together. `holm` keeps their order.
    corrected = iter(holm(p_values))
    for finding in tested:
        finding.p_holm = next(corrected)
        if finding.p_reversal is not None:
            finding.p_reversal = next(corrected)
        p = finding.p_holm if finding.verdict == "not held" else finding.p or 0.0
        # The correction multiplies p, and the error of p by the same factor.
        factor = p / finding.p if finding.p else 1.0
        error = (finding.p_error or 0.0) * factor
        if finding.p_reversal is not None and finding.p_reversal < LEVEL:
            finding.verdict = "not held"
        elif error and abs(p - LEVEL) <= _ERRORS_FROM_LEVEL * error:
            finding.verdict = "undecided"
            finding.add_note("more draws could turn the verdict")
        elif p >= LEVEL:
            finding.verdict = "undecided"


def verdict_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a claim from the verdicts on its findings.

    The claim is not run if all its findings are not run. Otherwise it has no verdict if none of the
    findings that were run has one. Otherwise only the findings with a verdict count: the claim is
    not held if one of them is not held, held if all are held, and else undecided.
    """
    found = set(verdicts)
    # The first of these that a finding has; "not run" if there are no findings.
    order: tuple[Verdict, ...] = ("not held", "undecided", "held", "no verdict")
    return next((verdict for verdict in order if verdict in found), "not run")


def write_claims(
    settings: Settings,
    *,
    ledger: Path,
    outputs: Sequence[Path],
) -> None:
    """Write the claims with their verdicts and findings, computed from a ledger.

    The suffix of an output chooses its format: Markdown (.md), a row for each finding (.csv), or
    all fields with unrounded numbers (.json).
    """
    cells = chain.from_iterable(cells_of_tables(settings).values())
    judged = judge(settings, runs_by_cell(cells, read_ledger(ledger)))
    for output in outputs:
        if output.suffix == ".json":
            scale = settings.options.scale
            content = JudgedClaims(judged, scale, settings.scale.stand_in)
            write_json(output, content)
        elif output.suffix == ".csv":
            rows = rows_of_findings(judged)
            for row in rows:
                row["Scale"] = scale_name(settings)
            write_text(output, csv(Sheet([], rows, "Verdict")))
        else:
            claims, findings = printed_claims(settings, judged)
            # The additional # makes the title of the second table a subheading.
            write_text(output, f"{markdown(claims)}\n#{markdown(findings)}")


def printed_claims(
    settings: Settings, judged: Sequence[JudgedClaim]
) -> tuple[Sheet, Sheet]:
    """Return two tables: the claims with their verdicts, and the findings of all claims."""
    headings = headings_of(
        settings,
        "Claims of the papers, with verdicts",
        f"A verdict needs {LEAST_RUNS_IN_WORDS} runs a side: held, p < {LEVEL:g} in every "
        f"comparison; not held, a corrected p < {LEVEL:g} in one (docs/claims.md). Intervals "
        "without a verdict are over sentences alone. Differences are positive where "
        "they are as the claim says. Detectable: the smallest true difference that four of five "
        "such experiments would find.",
    )
    rows = []
    for claim in judged:
        counts = Counter(finding.verdict for finding in claim.findings)
        verdicts = [verdict for verdict in get_args(Verdict) if counts[verdict]]
        counted = [f"{counts[verdict]} {verdict}" for verdict in verdicts]
        decisive = claim.decisive
        notes = [claim.untested or decisive.note]
        if claim.exploratory:
            notes.append(f"exploratory: {claim.exploratory}")
        rows.append(
            {
                "Claim": claim.name,
                "What the paper says": claim.says,
                "Source": claim.source,
                "Verdict": claim.verdict,
                "Difference": _signed(decisive.value),
                "95% interval": _interval(decisive),
                "Detectable": _unsigned(decisive.detectable),
                "Measure": decisive.measure or "",
                "Comparisons": ", ".join(counted) if len(claim.findings) > 1 else "",
                "Tests": str(sum(finding.tests for finding in claim.findings) or ""),
                "Notes": "; ".join(filter(None, notes)),
            }
        )
    footnotes = {"Measure": "measured by {}", "Notes": "{}"}
    claims = Sheet(headings, rows, "Verdict", footnotes, shared=["Measure"])
    findings = Sheet(
        ["Comparisons"],
        rows_of_findings(judged),
        "Verdict",
        {"Metric": "{}", "Notes": "{}"},
        left_out=("Says", "Source", "Verdict of the claim"),
    )
    return claims, findings


def rows_of_findings(judged: Sequence[JudgedClaim]) -> list[dict[str, str]]:
    """Return a row for each finding. A claim without findings has one row, "not tested"."""
    rows = []
    for claim in judged:
        for finding in claim.findings or [
            Finding("", "not tested", note=claim.untested)
        ]:
            p = _p_value(finding.p)
            if finding.p_error:
                p += f" ± {finding.p_error:.4f}"
            rows.append(
                {
                    "Claim": claim.name,
                    "Says": claim.says,
                    "Source": claim.source,
                    "Verdict of the claim": claim.verdict,
                    "Comparison": finding.comparison,
                    "Verdict": finding.verdict,
                    "Difference (paper)": _signed(finding.printed),
                    "Difference (ours)": _signed(finding.value),
                    "95% interval": _interval(finding),
                    "Detectable": _unsigned(finding.detectable),
                    "Measure": finding.measure or "",
                    "Without brevity penalty": _signed(finding.without_brevity),
                    "p": p,
                    "p (Holm)": _p_value(finding.p_holm),
                    "p of a reversal": _p_value(finding.p_reversal),
                    "Tests": str(finding.tests or ""),
                    "Test": finding.test or "",
                    "Runs": finding.runs or "",
                    "Test set": finding.test_set or "",
                    "Metric": finding.metric or "",
                    "Notes": finding.note or "",
                }
            )
    return rows


def _interval(finding: Finding) -> str:
    return " to ".join(map(_signed, finding.interval or ()))


def _p_value(p: float | None) -> str:
    return "" if p is None else f"{p:.4f}"


def _unsigned(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+z.2f}"


def compare_cells(compared: CellsCompared, found: Sequence[Evidence]) -> Finding:
    """Test one comparison of cells, before the correction of p.

    ``found`` are the cells of ``compared.better``, then those of ``compared.worse``.
    """
    better = found[: len(compared.better)]
    worse = found[len(compared.better) :]
    link = "better than"
    region = (-compared.margin, math.inf)
    if compared.margin:
        link = f"at most {compared.margin:g} behind"
    if compared.within is not None:
        link = f"within {compared.within:g} of"
        region = (-compared.within, compared.within)
    # A cell may be on both sides, or twice on one side. It counts +1 for each time in better, and
    # -1 for each time in worse.
    counts = Counter(cell.address for cell in better)
    counts.subtract(cell.address for cell in worse)
    cells = {cell.address: cell for cell in found}.values()
    sign = _sign(cells)
    weighted = [(sign * counts[cell.address], cell) for cell in cells]
    labels_of_better = " + ".join(cell.label for cell in better)
    labels_of_worse = " + ".join(cell.label for cell in worse)
    finding = Finding(f"{labels_of_better} {link} {labels_of_worse}")
    if all(cell.printed is not None for cell in cells):
        finding.printed = sum(
            weight * (cell.printed or 0.0) for weight, cell in weighted
        )
    if not finding.describe(cells):
        return finding
    runs_of_better = " + ".join(cell.runs_in_words for cell in better)
    runs_of_worse = " + ".join(cell.runs_in_words for cell in worse)
    finding.runs = f"{runs_of_better} against {runs_of_worse}"
    models = min(cell.trainings for cell in better)
    has_all_models = compared.models is None or models >= compared.models
    if not has_all_models:
        finding.add_note(
            f"the claim is about {compared.models} models together; here are only {models}"
        )
    judge_effect(finding, weighted, region, decides=has_all_models)
    return finding


def _sign(cells: Iterable[Evidence]) -> float:
    """Return -1 if lower values of a measure of the cells are better, else 1."""
    return -1.0 if any(cell.measure in LOWER_IS_BETTER for cell in cells) else 1.0


def compare_length(within: float, cell: Evidence) -> Finding:
    """Test whether translations are as long as the references, before the correction of p.

    The value is the length ratio less 1: the share of words by which the translations are longer.
    The claim says that its absolute value is below ``within``.
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
    """Test whether phrases differ in their states if they differ in meaning.

    The value is the mean over the runs of the share of variance between meanings, less the share
    that chance gives. All runs have the same phrases, so their p-values are not combined: the
    largest one counts, before the correction. p is 1 if some runs are above the share by chance and
    others are not.
    """
    finding = Finding(f"meanings apart in {cell.label}, more than by chance")
    if not finding.describe([cell]):
        return finding
    finding.runs = cell.runs_in_words
    finding.verdict = "no verdict"
    why_not = why_incomparable([cell]) or why_no_verdict([(1, cell)])
    if why_not:
        finding.add_note(why_not)
    if not all("phrases_chance" in entry.scores for entry in cell.entries):
        finding.add_note(
            "the record has no test by swaps of meanings; run project_phrases again"
        )
        return finding
    scores = [entry.scores for entry in cell.entries]
    # Of each run: the share of variance, less that by chance.
    excesses = [
        run["phrases_apart"].score - run["phrases_chance"].score for run in scores
    ]
    finding.value = mean(excesses)
    if not why_not:
        finding.verdict = "held" if finding.value > 0 else "not held"
        is_on_one_side = len({excess > 0 for excess in excesses}) == 1
        p = max(run["phrases_p"].score for run in scores)
        finding.p = p if is_on_one_side else 1.0
        finding.tests = 1
        finding.test = PERMUTATIONS
    return finding


def follow_trend(trend: Trend, found: Sequence[Evidence]) -> Finding:
    """Test one trend over rows of a table, before the correction of p.

    ``found`` are the cells of the rows in ``trend.x``. The value is the slope of the least-squares
    line through the rows' means: the gain for each unit of x. A pair of rows in the reverse order,
    if rows are nested one with more of the same, refutes a trend, even if its slope is positive.
    The p of the clearest such pair, with
    ``_ERRORS_FROM_LEVEL`` Monte Carlo errors added, is multiplied by the number of pairs.
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
    # The slope of least squares is a weighted sum of the rows' means.
    middle = mean(trend.x[row] for row in scored)
    squares = sum((trend.x[row] - middle) ** 2 for row in scored)
    weighted = []
    for row, cell in scored.items():
        weighted.append((sign * (trend.x[row] - middle) / squares, cell))
    judge_effect(finding, weighted, (0.0, math.inf))
    if finding.p is None:
        return finding
    pairs = []
    for low, high in permutations(scored, 2):
        rises = trend.x[low] < trend.x[high]
        if trend.nested:
            rises = set(low.split(", ")) < set(high.split(", "))
        if rises:
            pairs.append((low, high))
    finding.tests = 1 + len(pairs)
    # p, row of the lower x, row of the higher x.
    reversals: list[tuple[float, str, str]] = []
    for low, high in pairs:
        effect = effect_of(samples_of([(sign, scored[high]), (-sign, scored[low])]))
        if effect.value < 0:
            p, error = effect.p_value(0.0)
            reversals.append((len(pairs) * (p + _ERRORS_FROM_LEVEL * error), low, high))
    finding.p_reversal = 1.0
    if reversals:
        # The smallest p. Pairs of equal p are in the order of their rows' names.
        p, low, high = min(reversals)
        finding.p_reversal = min(p, 1.0)
        if finding.p_reversal < LEVEL:
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
        decides: if False, set the value and its interval over sentences, but no verdict.
    """
    finding.verdict = "no verdict"
    cells = [cell for _, cell in weighted]
    if incomparable := why_incomparable(cells):
        finding.add_note(incomparable)
        return
    if not all(entry.processor for cell in cells for entry in cell.entries):
        finding.add_note("the processor of the runs is not recorded")
    # The sum of all that has no variance: the 1 that is subtracted from a length ratio, and the
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
    # One sample for several cells means that all cells have the same models.
    if len(samples) == 1 and len(computed) > 1:
        finding.test += SAME_MODELS


def _without_brevity(weighted: Weighted) -> float | None:
    """Return the difference of BLEU without its brevity penalty, if lengths differ.

    Lengths differ if the length ratio of a cell is further from 1 than ``_BREVITY``. Return None if
    they do not, if a measure is not tokenized BLEU, or if a cell has no sentences in the ledger.
    """
    difference = 0.0
    largest = 0.0
    for weight, cell in weighted:
        if not cell.measure.startswith("bleu_tokenized") or not cell.sentences("score"):
            return None
        ratio = cell.length_ratio
        if ratio is not None:
            largest = max(largest, abs(ratio - 1))
        difference += weight * mean(cell.scores("without_brevity"))
    return difference if largest > _BREVITY else None
