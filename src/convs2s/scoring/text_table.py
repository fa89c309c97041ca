"""How the reports lay out their headings and tables as plain text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence


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
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for first, *others in lines:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def mean_text(mean: float, deviation: float | None, digits: int) -> str:
    """Return a mean with its deviation, if it has one."""
    text = f"{mean:.{digits}f}"
    return text if deviation is None else f"{text} ± {deviation:.{digits}f}"


def gain(before: float, after: float) -> str:
    """Return two scores and their difference, which is of the unrounded ones."""
    return f"{before:.2f} -> {after:.2f} ({after - before:+.2f})"
