"""The table of docs/benchmarks.md that the GPU's benchmark fills."""

from pathlib import Path
from typing import Any

from page import PAGE, replace_section

SECTION = "gpu"

Figures = dict[str, Any]


def write_docs(figures: Figures, page: Path = PAGE) -> None:
    """Replace the page's section by the figures' table."""
    replace_section(SECTION, table(figures), page)


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
