"""The links between aligned words, as a file holds them; to read one takes no aligner."""

from collections.abc import Iterator
from pathlib import Path

from convs2s.files import read_lines
from convs2s.text.symmetrize import Link


def read_links(path: str | Path) -> Iterator[list[Link]]:
    """Yield the (source, target) links of each line of a file that `convs2s.text.align` wrote.

    Raises:
        UserError: the file is missing or not UTF-8.
    """
    for line in read_lines(path):
        yield [(int(i), int(j)) for i, _, j in (link.partition("-") for link in line.split())]
