"""The papers' claims as rows of a table: one for each comparison that a verdict comes from."""

from collections.abc import Mapping
from pathlib import Path

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_json

ClaimRow = dict[str, str]
"""Heading -> text."""

_HEADINGS = {"says": "claim", "value": "difference", "p_positive": "p", "p_negative": "p, against"}
_NAMELESS = {"name", "findings"}


def read_claims(path: Path) -> list[ClaimRow]:
    """Return a row for each comparison of each claim, and one for a claim without any.

    Args:
        path: JSON: claims in a list, or in one under ``claims``; one may hold its comparisons as
            ``findings``.

    Raises:
        UserError: the file is missing, or is no list of claims.
    """
    found = read_json(path)
    found = found.get("claims") if isinstance(found, dict) else found
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UserError(f"{path}: not a list of claims; delete the file and ask for it again")
    with failures_of_file(str(path), "not a list of claims; delete the file and ask for it again"):
        rows = [row for claim in found for row in _rows(claim)]
    said = dict.fromkeys(key for row in rows for key in row if any(one.get(key) for one in rows))
    return [{key: row.get(key, "") for key in said} for row in rows]


def _rows(claim: Mapping[str, object]) -> list[ClaimRow]:
    stated = {_heading(key): _text(value) for key, value in claim.items() if key not in _NAMELESS}
    findings = claim.get("findings") or [{}]
    assert isinstance(findings, list)
    return [
        stated
        | {
            "verdict of the comparison" if key == "verdict" else _heading(key): _text(value)
            for key, value in finding.items()
        }
        for finding in findings
    ]


def _heading(key: str) -> str:
    return _HEADINGS.get(key, key.replace("_", " "))


def _text(value: object) -> str:
    """Return a value as a person reads it; empty for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return " to ".join(map(_text, value))
    return str(value)
