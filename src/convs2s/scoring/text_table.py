"""Headings and tables as plain text."""

from collections.abc import Iterable, Iterator, Sequence


def underlined(title: str) -> Iterator[str]:
    """Yield a title and the line below it."""
    yield title
    yield "=" * len(title)


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines: its first column aligned to the left, the others to the right."""
    from tabulate import tabulate  # of the extra `report`

    alignments = ["left", *("right" for _ in header[1:])]
    # The header as a row: tabulate pads columns below headers of its own.
    table = tabulate([header, *rows], tablefmt="plain", disable_numparse=True, colalign=alignments)
    for line in table.split("\n"):
        yield line.rstrip()
