"""The table of docs/benchmarks.md that the GPU's benchmark fills."""

from pathlib import Path
from typing import Any

from convs2s.files.text import atomic_text
from workloads import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- gpu: begin -->", "<!-- gpu: end -->"
"""The lines of the page between which ``write_docs`` writes."""

Figures = dict[str, Any]


def write_docs(figures: Figures, page: Path = PAGE) -> None:
    """Replace what stands between the two lines of the page by the figures' table."""
    text = page.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    with atomic_text(page) as stream:
        stream.write(f"{before}{BEGIN}\n{table(figures)}\n{END}{after}")


def table(figures: Figures) -> str:
    """Return the figures as a table: a row for each measurement."""
    machine = f"{figures['device']}, torch {figures['torch']}, {figures['date']}"
    rows = [f"{machine}, `python benchmarks/gpu.py`:", "", "| what | figures |", "| --- | --- |"]
    rows += [f"| {name} | {_said(found)} |" for name, found in figures["measurements"].items()]
    return "\n".join(rows)


def _said(found: object) -> str:
    if not isinstance(found, dict):
        return str(found)
    return "; ".join(f"{name.replace('_', ' ')} {_number(one)}" for name, one in found.items())


def _number(found: object) -> str:
    if isinstance(found, bool) or found is None:
        return {True: "yes", False: "no", None: "not measured"}[found]
    if isinstance(found, int):
        return f"{found:,}"
    return f"{found:.3g}" if isinstance(found, float) and abs(found) < 1e-2 else str(found)
