"""Whether what the papers say in words holds here, by the runs that the ledger has."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Literal, get_args

import numpy as np

from convs2s.config.claims import CellName, CellsCompared, Trend, printed_number, row_index
from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text, write_json
from convs2s.paper.cells import MEASURES, CellAddress
from convs2s.paper.ledger import LedgerEntry, read_ledger
from convs2s.paper.table_formats import Sheet, csv, markdown
from convs2s.scoring.bleu import SAMPLES, decode_statistics
from convs2s.scoring.significance import (
    LEAST_POINTS,
    DrawnScores,
    Effect,
    drawn_scores,
    over_runs,
    over_sentences,
    trend,
)

LEVEL = 0.05  # how probable by chance an effect may be that a verdict rests on
LOWER_IS_BETTER = ("perplexity", "seconds_cpu", "seconds_cuda")
"""Measures; of all others the higher value is better."""

WELCH = "Welch's t-test over runs"
SAME_MODELS = "t-test over runs, the same models on both sides"
BOOTSTRAP = f"paired bootstrap over sentences, {SAMPLES:,} resamples"
RANKS = "rank correlation of the rows' means against random orders"

Verdict = Literal["held", "not held", "undecided", "no verdict", "not run"]
"""No verdict: there are scores, and too few runs, or of several processors."""

EntriesOfCells = Mapping[CellAddress, Sequence[LedgerEntry]]
"""The entries of the runs that each cell shows."""


@dataclass(frozen=True)
class Evidence:
    """What is known of a cell."""

    address: CellAddress
    label: str  # what a comparison calls it
    measure: str
    printed: float | None  # the paper's number; None where it prints none
    is_cited: bool  # whether the printed number is all that there is
    entries: tuple[LedgerEntry, ...]  # the runs that have a score, by name
    missing: str | None  # why there is no score; None where there is one

    @property
    def scores(self) -> list[float]:
        """The scores of the runs."""
        return [entry.scores[self.measure].score for entry in self.entries]

    @property
    def runs_in_words(self) -> str:
        """How many runs there are, or which ensemble."""
        runs = [entry.run.run for entry in self.entries]
        ensembles = [run for run in runs if run.startswith("ensemble")]
        return "printed" if self.is_cited else ", ".join(ensembles) or str(len(runs))


CellFinder = Callable[[CellName], Evidence]

Weighted = Sequence[tuple[int, Evidence]]
"""Cells, and how often each counts: negative on the worse side, or where lower is better."""


@dataclass(frozen=True)
class Finding:
    """What one comparison or trend of a claim came to; None where there is nothing to say."""

    comparison: str  # what is compared, in words
    verdict: Verdict = "not run"
    value: float | None = None  # a difference, or a trend's correlation; above 0 as the claim says
    printed: float | None = None  # the same of the printed values, where all are printed
    interval: tuple[float, float] | None = None  # of 95% confidence around the value
    p: float | None = None  # of two sides: how probable so large an effect is by chance
    p_error: float | None = None  # the standard error of p by the number of draws
    p_holm: float | None = None  # p by Holm's correction for all tests of the claim: it decides
    tests: int = 0  # how many tests this line is: a trend also looks at each pair of its rows
    without_brevity: float | None = None  # the difference of BLEU without brevity penalty, where
    # a side's translations are shorter or longer than the references by more than 3 percent
    test: str | None = None  # what the probabilities come from
    runs: str | None = None  # how many of the better side against how many of the worse
    test_set: str | None = None  # test sets with their lines; None for validation data
    metric: str | None = None
    note: str | None = None  # which cells lack a score, or why nothing was tested


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
    def tests(self) -> int:
        """How many tests the correction is for."""
        return sum(finding.tests for finding in self.findings)

    @property
    def decisive(self) -> Finding:
        """The first finding of the claim's verdict that has a value; else one without any."""
        valued = (finding for finding in self.findings if finding.value is not None)
        return next((one for one in valued if one.verdict == self.verdict), Finding(""))


def judge(settings: Settings, entries: EntriesOfCells) -> list[JudgedClaim]:
    """Return every claim of config/claims.yaml with its verdict."""

    @cache
    def cell(name: CellName) -> Evidence:
        return evidence(settings, name, entries)

    judged = []
    for name, claim in settings.claims.items():
        compared = [compare_cells(settings, cells, cell) for cells in claim.comparisons]
        findings = (*compared, *(follow_trend(settings, trend, cell) for trend in claim.trends))
        verdict = verdict_of(finding.verdict for finding in findings)
        judged.append(
            JudgedClaim(name, claim.says, claim.source, verdict, findings, claim.untested)
        )
    return judged


def verdict_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return a claim's verdict: of the findings that were run all must hold; one can refute it."""
    run = set(verdicts) - {"not run"}
    if not run:
        return "not run"
    if "not held" in run:
        return "not held"
    return "held" if run == {"held"} else "undecided"


def write_claims(settings: Settings, *, ledger: Path, outputs: Sequence[Path]) -> None:
    """Write the claims with the verdicts of a ledger's runs, and what they rest on.

    The suffix says the format: .md, .csv with a line for each comparison, .json unrounded.
    """
    judged = judge(settings, entries_by_cell(read_ledger(ledger)))
    scale, stand_in = settings.options.scale, settings.scale.stand_in
    for output in outputs:
        if output.suffix == ".json":
            about = {"scale": scale, "stand_in": stand_in, "level": LEVEL}
            write_json(output, {**about, "claims": [asdict(claim) for claim in judged]})
            continue
        if output.suffix == ".csv":
            described = scale + (" (STAND-IN DATA)" if stand_in else "")
            rows = [{**row, "Scale": described} for row in rows_of_findings(judged)]
            text = csv(Sheet([], rows, "Verdict", {}, {}, ()))
        else:
            text = "\n#".join(map(markdown, printed_claims(settings, judged)))
        with atomic_text(output) as stream:
            stream.write(text)


def printed_claims(settings: Settings, judged: Sequence[JudgedClaim]) -> tuple[Sheet, Sheet]:
    """Return the claims with their verdicts, and the comparisons that those come from."""
    stand_in = settings.scale.stand_in
    headings = [
        "Claims: what the papers say in words, and whether it holds here",
        *([f"STAND-IN DATA: {stand_in}"] if stand_in else []),
        f"Scale: {settings.options.scale}. A verdict needs p < {LEVEL:g}, of two sides; "
        "how it comes about: docs/claims.md.",
    ]
    rows = []
    for claim in judged:
        counts = Counter(finding.verdict for finding in claim.findings)
        counted = ", ".join(
            f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict]
        )
        rows.append(
            {
                "Claim": claim.name,
                "What the paper says": claim.says,
                "Source": claim.source,
                "Verdict": claim.verdict,
                "Difference": _signed(claim.decisive.value),
                "95% interval": _interval(claim.decisive),
                "Comparisons": counted or "none",
                "Notes": claim.untested or "",
            }
        )
    claims = Sheet(headings, rows, "Verdict", {"Notes": "{}"}, {}, ())
    findings = Sheet(
        ["Comparisons: differences are positive where they are as the claim says"],
        rows_of_findings(judged),
        "Verdict",
        {"Metric": "{}", "Notes": "{}"},
        {},
        ("Says", "Source", "Verdict of the claim"),
    )
    return claims, findings


def rows_of_findings(judged: Sequence[JudgedClaim]) -> list[dict[str, str]]:
    """Return a row for each comparison, and one for a claim that has none."""
    return [
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
            "p": "" if finding.p is None else f"{finding.p:.4f}",
            "Test": finding.test or "",
            "Runs": finding.runs or "",
            "Test set": finding.test_set or "",
            "Metric": finding.metric or "",
            "Notes": finding.note or "",
        }
        for claim in judged
        for finding in claim.findings or [Finding("", note=claim.untested)]
    ]


def _interval(finding: Finding) -> str:
    return " to ".join(map(_signed, finding.interval or ()))


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def entries_by_cell(entries: Iterable[LedgerEntry]) -> dict[CellAddress, list[LedgerEntry]]:
    """Return the entries of the runs that each cell shows."""
    shown: dict[CellAddress, list[LedgerEntry]] = {}
    for entry in entries:
        for address in entry.table_cells:
            shown.setdefault(address, []).append(entry)
    return shown


def evidence(settings: Settings, name: CellName, entries: EntriesOfCells) -> Evidence:
    """Return what there is on a cell that a claim names."""
    table, index = settings.paper[name.table], row_index(name, settings.paper, "config/claims.yaml")
    row, address = table.rows[index], CellAddress(name.table, index, name.column)
    (column,) = (column for column in table.columns if column.key == name.column)
    measure = row.measures.get(name.column, column.measure)
    assert measure is not None
    is_cited = row.kind == "cited"
    scored = [] if is_cited else sorted(entries.get(address, ()), key=lambda entry: entry.run.run)
    missing = None
    if is_cited and settings.scale.stand_in:
        missing = "a printed value is of the paper's data"
    elif not is_cited and not scored and settings.scale.why_left_out(row):
        missing = "left out at this scale"
    elif not is_cited and not scored:
        has_model = row.model and settings.scale.model_for(row.model)
        missing = "not run" if has_model else "no stand-in"
    group = f"{row.group} " if row.group else ""
    which = f" {column.name}" if len(table.columns) > 1 else ""
    return Evidence(
        address=address,
        label=f"{name.table} {group}{row.system!r}{which}",
        measure=measure,
        printed=printed_number(row, name.column),
        is_cited=is_cited,
        entries=tuple(scored),
        missing=missing,
    )


def compare_cells(settings: Settings, compared: CellsCompared, cell: CellFinder) -> Finding:
    """Return what a comparison of cells came to."""
    better, worse = (list(map(cell, side)) for side in (compared.better, compared.worse))
    sides = [" + ".join(each.label for each in side) for side in (better, worse)]
    link = f"at most {compared.margin:g} behind" if compared.margin else "better than"
    cells = list({each.address: each for each in (*better, *worse)}.values())
    counts = Counter(each.address for each in better)
    counts.subtract(each.address for each in worse)
    sign = -1 if better[0].measure in LOWER_IS_BETTER else 1
    weighted = [(sign * counts[each.address], each) for each in cells]
    printed = [weight * each.printed for weight, each in weighted if each.printed is not None]
    of_printed = sum(printed) if len(printed) == len(weighted) else None
    finding = Finding(f"{sides[0]} {link} {sides[1]}", printed=of_printed)
    missing = [f"{each.label}: {each.missing}" for each in cells if each.missing]
    note = "; ".join(missing) or _why_incomparable(settings, cells)
    if note:
        return replace(finding, note=note)
    runs = [" + ".join(each.runs_in_words for each in side) for side in (better, worse)]
    finding = replace(_described(finding, cells), runs=" against ".join(runs))
    # Printed values of others are a constant part of the difference.
    constant = sum(weight * (each.printed or 0) for weight, each in weighted if each.is_cited)
    measured = [(weight, each) for weight, each in weighted if not each.is_cited]
    tested = _test(measured, constant, compared.margin)
    if tested is None:
        value = constant + sum(weight * mean(each.scores) for weight, each in measured)
        note = "one run alone, and its sentences are not known: its chance is not"
        return replace(finding, verdict="undecided", value=value, note=note)
    return _decided(finding, *tested)


def follow_trend(settings: Settings, wanted: Trend, cell: CellFinder) -> Finding:
    """Return what a trend over rows of a table came to, the mean of each row's runs a point.

    Runs of a row are no points of their own: they resemble each other, whatever the order of the
    rows, and a test that took them for independent would find trends where there are none.
    """
    cells = {row: cell(wanted.cell(row)) for row in wanted.x}
    rows = list(wanted.x)
    first, last = min(rows, key=wanted.x.__getitem__), max(rows, key=wanted.x.__getitem__)
    finding = Finding(f"better from {cells[first].label} to {cells[last].label}, {len(rows)} rows")
    scored = {row: cells[row] for row in rows if cells[row].entries}
    missing = [row for row in rows if row not in scored]
    note = f"no score: {', '.join(map(repr, missing))}" if missing else None
    if len(scored) < LEAST_POINTS:
        needed = f"{LEAST_POINTS} rows are needed"
        return replace(finding, note=f"{note}; {needed}" if note else needed)
    incomparable = _why_incomparable(settings, scored.values())
    if incomparable:
        return replace(finding, note=incomparable)
    sign = -1 if cells[first].measure in LOWER_IS_BETTER else 1
    points = [(wanted.x[row], sign * mean(each.scores)) for row, each in scored.items()]
    runs = f"{sum(len(each.entries) for each in scored.values())} of {len(scored)} rows"
    finding = replace(_described(finding, scored.values()), runs=runs, note=note)
    return _decided(finding, RANKS, trend(*zip(*points, strict=True)))


def _why_incomparable(settings: Settings, cells: Iterable[Evidence]) -> str | None:
    """Return why scores cannot be held against each other; None where they can.

    Perplexity is of one vocabulary, any other score of one test set and one metric.
    """
    kinds = dict[str, None]()
    for cell in cells:
        for entry in cell.entries:
            task, signature = entry.run.task, entry.scores[cell.measure].signature
            text = settings.tasks[task].text_name
            of_test_set = f"{text} {entry.run.testset} ({entry.lines} lines), {signature}"
            of_training = f"{MEASURES[cell.measure].label} of {task}"
            kinds[of_training if cell.measure == "perplexity" else of_test_set] = None
    return "not of one kind: " + " against ".join(kinds) if len(kinds) > 1 else None


def _test(measured: Weighted, constant: float, margin: float) -> tuple[str, Effect] | None:
    """Return the test that fits what there is, and its effect; None where none does.

    Where all cells are of the same models, the difference is taken model by model: what the models
    differ in is then no part of its chance.
    """
    least = min(len(cell.entries) for _, cell in measured)
    models = {tuple(entry.models or entry.run for entry in cell.entries) for _, cell in measured}
    if least > 1 and len(models) == 1 and len(measured) > 1:
        pairs = zip(
            *([weight * score for score in cell.scores] for weight, cell in measured), strict=True
        )
        differences = [(1.0, [sum(scores) for scores in pairs])]
        return SAME_MODELS, over_runs(differences, constant=constant, margin=margin)
    if least > 1:
        samples = [(float(weight), cell.scores) for weight, cell in measured]
        return WELCH, over_runs(samples, constant=constant, margin=margin)
    if any(cell.measure not in entry.sentences for _, cell in measured for entry in cell.entries):
        return None
    value = constant + sum(weight * mean(cell.scores) for weight, cell in measured)
    drawn = [
        [_drawn_scores(entry.sentences[cell.measure], str(entry.run)) for entry in cell.entries]
        for _, cell in measured
    ]
    weights = [weight for weight, _ in measured]
    means = (np.mean(of_runs, axis=0) for of_runs in drawn)
    resampled = sum(weight * scores for weight, scores in zip(weights, means, strict=True))
    return BOOTSTRAP, over_sentences(value, constant + resampled, margin)


@cache  # a cell stands in several comparisons
def _drawn_scores(sentences: str, run: str) -> DrawnScores:
    """Return the scores of test sets drawn anew from a run's sentences."""
    return drawn_scores(decode_statistics(sentences, f"the ledger's {run}"))


def _decided(finding: Finding, test: str, effect: Effect) -> Finding:
    """Return the finding with the effect that a test gave, and the verdict that follows."""
    verdict: Verdict = "undecided"
    p = min(1.0, 2 * min(effect.p_positive, effect.p_negative))
    if p < LEVEL:
        verdict = "held" if effect.p_positive < effect.p_negative else "not held"
    return replace(
        finding,
        verdict=verdict,
        value=effect.value,
        interval=effect.interval,
        p=p,
        p_holm=p,
        tests=1,
        test=test,
    )


def _described(finding: Finding, cells: Iterable[Evidence]) -> Finding:
    """Return the finding with the test sets and metrics of its cells."""
    test_sets, metrics = dict[str, None](), dict[str, None]()
    for cell in cells:
        for entry in cell.entries:
            lines = f" ({entry.lines:,} lines)" if entry.lines is not None else ""
            if entry.run.testset:
                test_sets[f"{entry.run.task} {entry.run.testset}{lines}"] = None
            signature = entry.scores[cell.measure].signature
            metrics[" ".join(filter(None, [MEASURES[cell.measure].label, signature]))] = None
    return replace(finding, test_set="; ".join(test_sets) or None, metric="; ".join(metrics))
