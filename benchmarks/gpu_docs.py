"""The table of docs/notes/gpu.md that the GPU's benchmark fills."""

from pathlib import Path
from typing import Any

from page import replace_section
from workloads import ROOT

SECTION = "gpu"
NOTE = ROOT / "docs" / "notes" / "gpu.md"

Figures = dict[str, Any]


def write_docs(figures: Figures, page: Path = NOTE) -> None:
    """Replace the page's section by the figures' table."""
    replace_section(SECTION, table(figures), page)


def table(figures: Figures) -> str:
    """Return the figures as a table: a row for each measurement."""
    machine = f"{figures['device']}, torch {figures['torch']}, {figures['date']}"
    rows = [
        f"{machine}, `python benchmarks/gpu.py`:",
        "",
        "| what | figures |",
        "| --- | --- |",
    ]
    rows += [
        f"| {name} | {_said(found)} |"
        for name, found in figures["measurements"].items()
    ]
    return "\n".join(rows)


UNITS = {
    "share_of_matrix_rate": "of the matrix rate",
    "share_of_one": "of one",
    "peak_gigabytes": "GB",
    "training_seconds": "s",
    "seconds": "s",
}
"""What the page says behind some of the figures; behind others stands their name."""

LEFT_OUT = (
    "took_seconds",
    "seconds_of_the_first_updates",
    "sentences",
    "of_hypotheses",
    "text",
)


def _said(found: object) -> str:
    if not isinstance(found, dict):
        return str(found)
    shown = [name for name in found if name not in LEFT_OUT]
    return "; ".join(f"{_number(found[name])} {_unit(name)}" for name in shown)


def _unit(name: str) -> str:
    rate = name.replace("_per_second", "/s").replace("_gflops", " GFLOP/s")
    return UNITS.get(name, rate.replace("_", " "))


def _number(found: object) -> str:
    if isinstance(found, bool) or found is None:
        return {True: "yes", False: "no", None: "not measured"}[found]
    if isinstance(found, int):
        return f"{found:,}"
    if isinstance(found, float) and abs(found) < 1e-2:
        return f"{found:.3g}"
    return str(found).replace("|", "\\|")
