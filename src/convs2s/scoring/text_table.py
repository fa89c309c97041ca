"""Format headings and tables as plain text."""

from collections.abc import Iterable, Iterator, Sequence


def underlined(title: str) -> Iterator[str]:
    """Yield a title and a line of ``=`` that underlines it."""
    yield title
    yield "=" * len(title)


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table. The first column is aligned to the left, the others to the right.

    The header is the first line.
    """
    from tabulate import tabulate  # installed with the extra `report`

    alignments = ["left", *("right" for _ in header[1:])]
    # Pass the header as a row, because tabulate pads the columns below its own headers.
    table = tabulate(
        [header, *rows], tablefmt="plain", disable_numparse=True, colalign=alignments
    )
    for line in table.split("\n"):
        yield line.rstrip()
