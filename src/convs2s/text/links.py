"""The links between aligned words, as a file holds them; to read one takes no aligner."""

import re
from collections.abc import Iterator
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import read_lines
from convs2s.text.symmetrize import Link

_LINK = re.compile("([0-9]{1,9})-([0-9]{1,9})")


def read_links(path: str | Path) -> Iterator[list[Link]]:
    """Yield the (source, target) links of each line of a file that `convs2s.text.align` wrote.

    Raises:
        UserError: the file is missing or not UTF-8, or a line is none of links.
    """
    for number, line in enumerate(read_lines(path), start=1):
        links = [_LINK.fullmatch(link) for link in line.split()]
        if not all(links):
            raise UserError(f"{path}:{number}: expected links such as 0-0 1-2, found {line[:60]!r}")
        yield [(int(link[1]), int(link[2])) for link in links if link]
