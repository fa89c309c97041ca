"""How the reports lay out their headings and tables as plain text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tabulate import tabulate


def underlined(title: str) -> Iterator[str]:
    """Yield a title and the line below it."""
    yield title
    yield "=" * len(title)


def heading(stand_in: str | None, header: Mapping[str, str]) -> Iterator[str]:
    """Yield how a report begins: that its data stands in for the paper's, and what it is about."""
    if stand_in:
        yield f"STAND-IN DATA: {stand_in}"
        yield ""
    for name, value in header.items():
        yield f"{name:<9} {value}"
    yield ""


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines: its first column aligned to the left, the others to the right."""
    alignments = ["right" for _ in header]
    alignments[0] = "left"
    # The header as a row: tabulate pads columns below headers of its own.
    table = tabulate([header, *rows], tablefmt="plain", disable_numparse=True, colalign=alignments)
    for line in table.split("\n"):
        yield line.rstrip()
