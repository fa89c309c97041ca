"""The verdicts on the papers' claims as files: claims.md, claims.csv and claims.json."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import get_args

from convs2s.config.settings import Settings
from convs2s.files.text import read_checked, write_json, write_text
from convs2s.paper.cells import cells_of_tables
from convs2s.paper.claims import LEVEL, Finding, JudgedClaim, Verdict, judge
from convs2s.paper.evidence import LEAST_RUNS_IN_WORDS
from convs2s.paper.ledger import read_ledger
from convs2s.paper.results import runs_by_cell
from convs2s.paper.table_formats import Sheet, csv, markdown
from convs2s.paper.tables import headings_of, scale_name


@dataclass(frozen=True)
class JudgedClaims:
    """The content of claims.json: the claims, the scale of the runs, and the level of the tests."""

    claims: list[JudgedClaim]
    scale: str | None = None
    stand_in: str | None = None  # what stands in for the paper's data
    level: float = LEVEL  # the level of significance


def write_claims(
    settings: Settings,
    *,
    ledger: Path,
    outputs: Sequence[Path],
) -> None:
    """Judge the claims by a ledger, and write them with their verdicts and findings.

    The suffix of an output chooses its format: Markdown (.md), a row for each finding (.csv), or
    all fields with unrounded numbers (.json).
    """
    cells = chain.from_iterable(cells_of_tables(settings).values())
    judged = judge(settings, runs_by_cell(cells, read_ledger(ledger)))
    for output in outputs:
        if output.suffix == ".json":
            content = JudgedClaims(
                judged, settings.options.scale, settings.scale.stand_in
            )
            write_json(output, content)
        elif output.suffix == ".csv":
            rows = rows_of_findings(judged)
            for row in rows:
                row["Scale"] = scale_name(settings)
            write_text(output, csv(Sheet([], rows, "Verdict")))
        else:
            claims, findings = printed_claims(settings, judged)
            # One more # makes the title of the second table a subheading.
            write_text(output, f"{markdown(claims)}\n#{markdown(findings)}")


def read_claims(path: Path) -> list[JudgedClaim]:
    """Read claims.json.

    Raises:
        UserError: the file is damaged.
    """
    problem = "not a list of claims; delete the file and make it again"
    return read_checked(path, JudgedClaims, problem).claims


def printed_claims(
    settings: Settings, judged: Sequence[JudgedClaim]
) -> tuple[Sheet, Sheet]:
    """Return two tables: the claims with their verdicts, and the findings of all claims."""
    headings = headings_of(
        settings,
        "Claims of the papers, with verdicts",
        f"A verdict needs {LEAST_RUNS_IN_WORDS} runs a side: held, p < {LEVEL:g} in every "
        f"comparison; not held, a corrected p < {LEVEL:g} in one (docs/claims.md). Intervals "
        "without a verdict are over sentences alone. Differences that agree with the claim are "
        "positive. Detectable: the smallest true difference that four of five such experiments "
        "would find.",
    )
    rows = []
    for claim in judged:
        counts = Counter(finding.verdict for finding in claim.findings)
        counted = [
            f"{counts[verdict]} {verdict}"
            for verdict in get_args(Verdict)
            if counts[verdict]
        ]
        tests = sum(finding.tests for finding in claim.findings)
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
                "Tests": str(tests) if tests else "",
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
        untested = Finding("", "not tested", note=claim.untested)
        for finding in claim.findings or [untested]:
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
    # "z" prints a small negative value as +0.00, not as -0.00.
    return "" if value is None else f"{value:+z.2f}"
