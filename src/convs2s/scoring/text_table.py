"""How the reports lay out their headings and tables as plain text."""

from collections.abc import Iterable, Iterator, Sequence


def underlined(heading: str) -> Iterator[str]:
    """Yield a heading and the line below it."""
    yield heading
    yield "=" * len(heading)


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines: its first column aligned to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for first, *others in lines:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()
