"""Whether what the papers say in words holds here, by the runs that the ledger has."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
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
    LOWER_IS_BETTER,
    CellFinder,
    EntriesOfCells,
    Evidence,
    Quantity,
    Weighted,
    equal_processors,
    evidence,
    on_one_processor,
    samples_of,
    why_incomparable,
    why_no_verdict,
)
from convs2s.paper.ledger import read_ledger
from convs2s.paper.results import runs_by_cell
from convs2s.paper.table_formats import Sheet, csv, markdown
from convs2s.scoring.significance import DRAWS, effect_of, holm, over_sentences

LEVEL = 0.05  # how probable by chance an effect may be that a verdict rests on
LEAST_POINTS = 3  # rows of a trend
_ERRORS = 3  # Monte Carlo errors by which p is away from the level where a verdict rests on it
_BREVITY = 0.03  # by which share lengths differ that BLEU without brevity penalty is stated

HIERARCHICAL = f"runs and sentences drawn anew (hierarchical bootstrap, {DRAWS:,} draws)"
RUNS = "t-test over runs"
PERMUTATIONS = "swaps of the phrases' meanings, the largest p of the runs"
SAME_MODELS = ", the same models on both sides"

Verdict = Literal["held", "not held", "undecided", "no verdict", "not run", "not tested"]
"""No verdict: too few runs, or of several processors. Not tested: the claim has no test."""


@dataclass
class Finding:
    """What one comparison or trend of a claim came to; None where there is nothing to say."""

    comparison: str  # what is compared, in words
    verdict: Verdict = "not run"
    value: float | None = None  # a difference, or a trend's slope; above 0 as the claim says
    measure: str | None = None  # what the value is of: the heading of the column
    printed: float | None = None  # the same of the printed values, where all are printed
    interval: tuple[float, float] | None = None  # of 95% confidence around the value
    p: float | None = None  # of two sides: how probable so large an effect is by chance
    p_error: float | None = None  # the standard error of p by the number of draws
    p_holm: float | None = None  # p by Holm's correction for all tests of the claim: it decides
    p_reversal: float | None = None  # of a trend: p of the clearest pair of rows against it
    tests: int = 0  # how many tests this line is: a trend also looks at each pair of its rows
    without_brevity: float | None = None  # the difference of BLEU without brevity penalty, where
    # a side's translations are shorter or longer than the references by more than 3 percent
    test: str | None = None  # what the probabilities come from
    runs: str | None = None  # how many of the better side against how many of the worse
    test_set: str | None = None  # test sets with their lines; None for validation data
    metric: str | None = None
    note: str | None = None  # which cells lack a score, or why nothing was tested

    def add_note(self, note: str) -> None:
        """Note something beside what is noted already."""
        self.note = f"{self.note}; {note}" if self.note else note

    def describe(self, cells: Iterable[Evidence]) -> None:
        """Note the test sets, measures and metrics of cells."""
        test_sets = []
        measures = []
        metrics = []
        for cell in cells:
            for entry in cell.entries:
                measures.append(cell.heading)
                if entry.run.testset:
                    lines = f" ({entry.lines:,} lines)" if entry.lines is not None else ""
                    test_sets.append(f"{entry.run.task} {entry.run.testset}{lines}")
                signature = entry.scores[cell.measure].signature or ""
                metrics.append(f"{MEASURES[cell.measure].label} {signature}".strip())
        self.test_set = "; ".join(dict.fromkeys(test_sets)) or None
        self.measure = " and ".join(dict.fromkeys(measures))
        self.metric = "; ".join(dict.fromkeys(metrics)) or None


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of config/claims.yaml with its verdict, and the findings that it comes from."""

    name: str
    says: str
    source: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    untested: str | None  # why there are none

    @property
    def decisive(self) -> Finding:
        """The first finding of the claim's verdict that has a value; else one without any.

        Of a trend that a pair of rows refutes that is what its note says, not its slope.
        """
        for finding in self.findings:
            if finding.value is not None and finding.verdict == self.verdict:
                if finding.p_reversal is not None and finding.p_reversal < LEVEL:
                    return replace(finding, value=None, interval=None, measure=None)
                return replace(finding, note=None)
        return Finding("")


def judge(settings: Settings, entries: EntriesOfCells) -> list[JudgedClaim]:
    """Return every claim of config/claims.yaml with its verdict."""
    processors = equal_processors(entries)

    def find(names: Iterable[CellName]) -> list[Evidence]:
        cells = [evidence(settings, name, entries) for name in names]
        return on_one_processor(cells, entries, processors)

    judged = []
    for name, claim in settings.claims.items():
        findings = []
        for compared in claim.comparisons:
            findings.append(compare_cells(settings, compared, find))
        for trend in claim.trends:
            findings.append(follow_trend(settings, trend, find))
        for lengths in claim.lengths:
            for cell_name in lengths.cells:
                findings.append(compare_length(settings, lengths.within, *find([cell_name])))
        for cell_name in claim.phrases:
            findings.append(compare_meanings(settings, *find([cell_name])))
        correct(findings)
        verdict: Verdict = "not tested"
        if not claim.untested:
            verdict = verdict_of(finding.verdict for finding in findings)
        judged.append(
            JudgedClaim(name, claim.says, claim.source, verdict, tuple(findings), claim.untested)
        )
    return judged


def correct(findings: Iterable[Finding]) -> None:
    """Give a claim's findings p by Holm's correction, and the verdicts that follow.

    Where p is too close to the level for the number of draws, there is no telling.
    """
    tested = [finding for finding in findings if finding.p is not None]
    stated: list[float] = []
    for finding in tested:
        stated += [p for p in (finding.p, finding.p_reversal) if p is not None]
    corrected = iter(holm(stated))
    for finding in tested:
        finding.p_holm = next(corrected)
        # The error of p grows as p does by the correction.
        growth = finding.p_holm / finding.p if finding.p else 1.0
        error = (finding.p_error or 0.0) * growth
        if finding.p_reversal is not None:
            finding.p_reversal = next(corrected)
        if finding.p_reversal is not None and finding.p_reversal < LEVEL:
            finding.verdict = "not held"
        elif error and abs(finding.p_holm - LEVEL) <= _ERRORS * error:
            finding.verdict = "undecided"
            finding.add_note("more draws could turn the verdict")
        elif finding.p_holm >= LEVEL:
            finding.verdict = "undecided"


def verdict_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return a claim's verdict: of the findings that were tested all must hold; one can refute it.

    Without a test it is that of the runs that there are.
    """
    tested = set(verdicts) - {"not run"}
    if not tested:
        return "not run"
    if tested == {"no verdict"}:
        return "no verdict"
    if "not held" in tested:
        return "not held"
    return "held" if tested <= {"held", "no verdict"} else "undecided"


def write_claims(settings: Settings, *, ledger: Path, outputs: Sequence[Path]) -> None:
    """Write the claims with the verdicts of a ledger's runs, and what they rest on.

    The suffix says the format: .md, .csv with a line for each comparison, .json unrounded.
    """
    cells = chain.from_iterable(cells_of_tables(settings).values())
    judged = judge(settings, runs_by_cell(cells, read_ledger(ledger)))
    scale = settings.options.scale
    stand_in = settings.scale.stand_in
    for output in outputs:
        if output.suffix == ".json":
            about = {"scale": scale, "stand_in": stand_in, "level": LEVEL}
            write_json(output, {**about, "claims": [asdict(claim) for claim in judged]})
        elif output.suffix == ".csv":
            described = f"{scale} (STAND-IN DATA)" if stand_in else scale
            rows = [{**row, "Scale": described} for row in rows_of_findings(judged)]
            write_text(output, csv(Sheet([], rows, "Verdict")))
        else:
            claims, findings = printed_claims(settings, judged)
            write_text(output, f"{markdown(claims)}\n#{markdown(findings)}")


def printed_claims(settings: Settings, judged: Sequence[JudgedClaim]) -> tuple[Sheet, Sheet]:
    """Return the claims with their verdicts, and the comparisons that those come from."""
    headings = ["Claims of the papers, with verdicts"]
    if settings.scale.stand_in:
        headings.append(f"STAND-IN DATA: {settings.scale.stand_in}")
    headings.append(
        f"Scale: {settings.options.scale}. A verdict needs three runs a side and a two-sided, "
        f"corrected p < {LEVEL:g} (docs/claims.md). Intervals are not corrected, and without a "
        "verdict over sentences alone. A difference is positive where it is as the claim says; "
        "where that says that two are equal, it is the first less the second."
    )
    rows = []
    for claim in judged:
        counts = Counter(finding.verdict for finding in claim.findings)
        counted = [
            f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict]
        ]
        decisive = claim.decisive
        rows.append(
            {
                "Claim": claim.name,
                "What the paper says": claim.says,
                "Source": claim.source,
                "Verdict": claim.verdict,
                "Difference": _signed(decisive.value),
                "95% interval": _interval(decisive),
                "Measure": decisive.measure or "",
                "Comparisons": ", ".join(counted) if len(claim.findings) > 1 else "",
                "Tests": str(sum(finding.tests for finding in claim.findings) or ""),
                "Notes": claim.untested or decisive.note or "",
            }
        )
    shared = {"Measure": "measured by {}"}
    claims = Sheet(headings, rows, "Verdict", {**shared, "Notes": "{}"}, shared=shared)
    findings = Sheet(
        ["Comparisons"],
        rows_of_findings(judged),
        "Verdict",
        {"Metric": "{}", "Notes": "{}"},
        left_out=("Says", "Source", "Verdict of the claim"),
    )
    return claims, findings


def rows_of_findings(judged: Sequence[JudgedClaim]) -> list[dict[str, str]]:
    """Return a row for each comparison, and one for a claim that has none."""
    rows = []
    for claim in judged:
        for finding in claim.findings or [Finding("", "not tested", note=claim.untested)]:
            p = _chance(finding.p)
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
                    "Measure": finding.measure or "",
                    "Without brevity penalty": _signed(finding.without_brevity),
                    "p": p,
                    "p (Holm)": _chance(finding.p_holm),
                    "p of a reversal": _chance(finding.p_reversal),
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


def _chance(p: float | None) -> str:
    return "" if p is None else f"{p:.4f}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+z.2f}"


def _begun(comparison: str, cells: Collection[Evidence]) -> Finding:
    """Return the finding on cells that are compared; its note names those without a score."""
    finding = Finding(comparison)
    for cell in cells:
        if cell.missing:
            finding.add_note(f"{cell.label}: {cell.missing}")
    if not finding.note:
        finding.describe(cells)
    return finding


def compare_cells(settings: Settings, compared: CellsCompared, find: CellFinder) -> Finding:
    """Return what a comparison of cells came to, before the correction."""
    found = find([*compared.better, *compared.worse])
    better = found[: len(compared.better)]
    worse = found[len(compared.better) :]
    link = "better than"
    region = (-compared.margin, math.inf)
    if compared.margin:
        link = f"at most {compared.margin:g} behind"
    if compared.within is not None:
        link = f"within {compared.within:g} of"
        region = (-compared.within, compared.within)
    # A cell may stand on both sides, or twice on one: what counts is the sum.
    counts = Counter(cell.address for cell in better)
    counts.subtract(cell.address for cell in worse)
    cells = {cell.address: cell for cell in found}.values()
    sign = _sign(cells)
    weighted = [(sign * counts[cell.address], cell) for cell in cells]
    labels_of_better = " + ".join(cell.label for cell in better)
    labels_of_worse = " + ".join(cell.label for cell in worse)
    finding = _begun(f"{labels_of_better} {link} {labels_of_worse}", cells)
    if all(cell.printed is not None for cell in cells):
        finding.printed = sum(weight * (cell.printed or 0.0) for weight, cell in weighted)
    if finding.note:
        return finding
    runs_of_better = " + ".join(cell.runs_in_words for cell in better)
    runs_of_worse = " + ".join(cell.runs_in_words for cell in worse)
    finding.runs = f"{runs_of_better} against {runs_of_worse}"
    fewest = min(cell.trainings for cell in better)
    decides = True
    if compared.models and fewest < compared.models:
        finding.add_note(f"the claim is of {compared.models} models together, here are {fewest}")
        decides = False
    judge_effect(settings, finding, weighted, region, decides=decides)
    return finding


def _sign(cells: Iterable[Evidence]) -> float:
    """Return 1, or -1 where the lower value is the better one."""
    return -1.0 if any(cell.measure in LOWER_IS_BETTER for cell in cells) else 1.0


def compare_length(settings: Settings, within: float, cell: Evidence) -> Finding:
    """Return by which share translations are longer than the references, before the correction."""
    finding = _begun(f"length of {cell.label} within {within:.0%} of the references'", [cell])
    if finding.note:
        return finding
    finding.runs = cell.runs_in_words
    finding.measure = "Length ratio, less 1"
    if cell.length_ratio is None:
        finding.verdict = "no verdict"
        finding.add_note("the sentences are not known")
    else:
        region = (-within, within)
        judge_effect(settings, finding, [(1, cell)], region, quantity="length_ratio")
    return finding


def compare_meanings(settings: Settings, cell: Evidence) -> Finding:
    """Return how far the meanings of phrases are apart, less what chance gives, with its p.

    Runs have the same phrases: the largest p counts, and 1 where they lie on both sides of chance.
    """
    finding = _begun(f"meanings apart in {cell.label}, more than by chance", [cell])
    if finding.note:
        return finding
    finding.runs = cell.runs_in_words
    finding.verdict = "no verdict"
    if why_not := why_incomparable(settings, [cell]) or why_no_verdict([(1, cell)]):
        finding.add_note(why_not)
    if not all("phrases_chance" in entry.scores for entry in cell.entries):
        finding.add_note("a record without swaps; let project_phrases run again")
        return finding
    more: list[float] = []  # of each run: the share less what chance gives
    p_values: list[float] = []
    for entry in cell.entries:
        apart = entry.scores["phrases_apart"].score
        more.append(apart - entry.scores["phrases_chance"].score)
        p_values.append(entry.scores["phrases_p"].score)
    finding.value = mean(more)
    if not why_not:
        finding.verdict = "held" if finding.value > 0 else "not held"
        is_on_one_side = len({share > 0 for share in more}) == 1
        finding.p = max(p_values) if is_on_one_side else 1.0
        finding.tests = 1
        finding.test = PERMUTATIONS
    return finding


def follow_trend(settings: Settings, wanted: Trend, find: CellFinder) -> Finding:
    """Return what a trend over rows of a table came to, before the correction.

    The value is the slope of the rows' means over x, a linear contrast: the gain by each unit of
    x. Two rows in the reverse order refute what rises on the whole; p of the clearest such pair is
    corrected for the number of pairs, and has the Monte Carlo errors added.
    """
    found = find([wanted.cell(row) for row in wanted.x])
    cells = dict(zip(wanted.x, found, strict=True))
    first = min(wanted.x, key=wanted.x.__getitem__)
    last = max(wanted.x, key=wanted.x.__getitem__)
    finding = Finding(f"better from {cells[first].label} to {cells[last].label}, {len(cells)} rows")
    scored = {row: cell for row, cell in cells.items() if cell.entries}
    if missing := ", ".join(repr(row) for row in cells if row not in scored):
        finding.add_note(f"no score: {missing}")
    if len({wanted.x[row] for row in scored}) < LEAST_POINTS:
        finding.add_note(f"{LEAST_POINTS} rows are needed")
        return finding
    finding.describe(scored.values())
    finding.runs = f"{sum(cell.trainings for cell in scored.values())} in {len(scored)} rows"
    finding.measure = f"{finding.measure} per {wanted.per}"
    sign = _sign(found)
    # The slope of least squares is a weighted sum of the rows' means.
    middle = mean(wanted.x[row] for row in scored)
    squares = sum((wanted.x[row] - middle) ** 2 for row in scored)
    slopes = []
    for row, cell in scored.items():
        slopes.append((sign * (wanted.x[row] - middle) / squares, cell))
    judge_effect(settings, finding, slopes, (0.0, math.inf))
    if finding.p is None:
        return finding
    pairs = [(low, high) for low, high in permutations(scored, 2) if wanted.x[low] < wanted.x[high]]
    finding.tests = 1 + len(pairs)
    reversals = [(1.0, "", "")]
    for low, high in pairs:
        effect = effect_of(samples_of([(sign, scored[high]), (-sign, scored[low])]))
        if effect.value < 0:
            p, error = effect.two_sided_p(0.0)
            reversals.append((len(pairs) * (p + _ERRORS * error), low, high))
    finding.p_reversal, low, high = min(reversals)
    if finding.p_reversal < LEVEL:
        chance = f"p = {finding.p_reversal:.4f} of {len(pairs)} pairs, before Holm"
        finding.add_note(f"{low!r} is better than {high!r} in {scored[low].heading} ({chance})")
    return finding


def judge_effect(
    settings: Settings,
    finding: Finding,
    weighted: Weighted,
    region: tuple[float, float],
    *,
    quantity: Quantity = "score",
    decides: bool = True,
) -> None:
    """Give a finding its value, p, and the verdict that p would give without correction.

    ``weighted`` are cells that have scores; the claim says that their sum lies within ``region``.
    """
    finding.verdict = "no verdict"
    cells = [cell for _, cell in weighted]
    if incomparable := why_incomparable(settings, cells):
        finding.add_note(incomparable)
        return
    if not all(entry.processor for cell in cells for entry in cell.entries):
        finding.add_note("of processors that are not stated")
    # Printed values of others are a constant part of the difference.
    constant = -1.0 if quantity == "length_ratio" else 0.0
    ours = []
    for weight, cell in weighted:
        if not cell.is_cited:
            ours.append((weight, cell))
        elif cell.printed is not None:
            constant += weight * cell.printed
    samples = samples_of(ours, quantity)
    finding.value = constant + sum(mean(sample.scores) for sample in samples)
    if quantity == "score":
        finding.without_brevity = _without_brevity(weighted)
    drawn = [sample.drawn for sample in samples if sample.drawn is not None]
    of_sentences = len(drawn) == len(samples)
    too_few = why_no_verdict(ours)
    if too_few:
        finding.add_note(too_few)
    if too_few or not decides:
        if of_sentences:
            finding.interval = over_sentences(drawn, constant)
        return
    effect = effect_of(samples, constant)
    low, high = region
    finding.verdict = "held" if low < finding.value < high else "not held"
    finding.interval = effect.interval
    finding.p, finding.p_error = effect.two_sided_p(low, high)
    finding.tests = 1
    finding.test = HIERARCHICAL if of_sentences else RUNS
    if len(samples) == 1 and len(ours) > 1:
        finding.test += SAME_MODELS


def _without_brevity(weighted: Weighted) -> float | None:
    """Return the difference of BLEU without its brevity penalty, where lengths differ.

    None where they do not, where it is no tokenized BLEU, or where sentences are not known.
    """
    difference = 0.0
    lengths_differ = False
    for weight, cell in weighted:
        if not cell.measure.startswith("bleu_tokenized") or not cell.sentences("score"):
            return None
        ratio = cell.length_ratio
        if ratio is not None and abs(ratio - 1) > _BREVITY:
            lengths_differ = True
        difference += weight * mean(cell.scores("without_brevity"))
    return difference if lengths_differ else None
