"""The sections of docs/benchmarks.md that a benchmark writes."""

from pathlib import Path

from convs2s.files.text import atomic_text
from workloads import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"


def marks(name: str) -> tuple[str, str]:
    """Return the lines between which a section stands."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def replace_section(name: str, text: str, page: Path = PAGE) -> None:
    """Replace what stands between the two lines of a section."""
    begin, end = marks(name)
    before, rest = page.read_text("utf-8").split(begin)
    _, after = rest.split(end)
    with atomic_text(page) as stream:
        stream.write(f"{before}{begin}\n{text}\n{end}{after}")
