"""Whether what the papers say in words holds here, by the runs that the ledger has."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from convs2s.config.claims import CellName
from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text, write_json
from convs2s.paper.claim_findings import (
    LEVEL,
    EntriesOfCells,
    Evidence,
    Finding,
    Verdict,
    compare_cells,
    entries_by_cell,
    evidence,
    follow_trend,
)
from convs2s.paper.ledger import read_ledger
from convs2s.paper.table_formats import Sheet, csv, markdown


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict, and the findings that it comes from.

    Attributes:
        name: key of config/claims.yaml.
        says: the claim in a sentence.
        source: paper and section.
        verdict: over all findings.
        findings: of each comparison, then of each trend.
        untested: why there are none; None where there are.
    """

    name: str
    says: str
    source: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    untested: str | None


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
    """Write the claims with their verdicts, and what they rest on.

    Args:
        settings: the configuration.
        ledger: the runs' JSON lines.
        outputs: the files to write; the suffix says the format: .md for a person, .csv with a line
            for each comparison, or .json with all of it unrounded.
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
            rows = [{**row, "Scale": described} for row in _rows_of_findings(judged)]
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
        f"Scale: {settings.options.scale}. A verdict needs p < {LEVEL:g}, of one side; "
        "how it comes about: docs/claims.md.",
    ]
    rows = []
    for claim in judged:
        counts = Counter(finding.verdict for finding in claim.findings)
        order: tuple[Verdict, ...] = ("held", "not held", "undecided", "not run")
        counted = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
        rows.append(
            {
                "Claim": claim.name,
                "What the paper says": claim.says,
                "Source": claim.source,
                "Verdict": claim.verdict,
                "Comparisons": counted or "none",
                "Notes": claim.untested or "",
            }
        )
    claims = Sheet(headings, rows, "Verdict", {"Notes": "{}"}, {}, ())
    findings = Sheet(
        ["Comparisons: differences are positive where they are as the claim says"],
        _rows_of_findings(judged),
        "Verdict",
        {"Metric": "{}", "Notes": "{}"},
        {},
        ("Says", "Source", "Verdict of the claim"),
    )
    return claims, findings


def _rows_of_findings(judged: Sequence[JudgedClaim]) -> list[dict[str, str]]:
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
            "95% interval": " to ".join(map(_signed, finding.interval or ())),
            "p": "" if finding.p_positive is None else f"{finding.p_positive:.4f}",
            "p of the opposite": "" if finding.p_negative is None else f"{finding.p_negative:.4f}",
            "Test": finding.test or "",
            "Runs": finding.runs or "",
            "Test set": finding.test_set or "",
            "Metric": finding.metric or "",
            "Notes": finding.note or "",
        }
        for claim in judged
        for finding in claim.findings or [Finding("", note=claim.untested)]
    ]


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"
