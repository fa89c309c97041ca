"""Links between aligned words: read them from a file, and combine those of both directions.

The links of both directions are combined by grow-diag-final-and (Koehn, Och and Marcu, 2003), as in
Moses' symal. The dictionaries of the released ConvS2S models come from such links: fairseq's
build_sym_alignment.py calls symal. If two links compete, the order in which they are visited
decides which of them is added. The order here is that of symal: by target position, then by source
position.
"""

import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import read_lines

Link = tuple[int, int]
"""The positions of two linked words, (source, target), counted from 0."""

_LINK = re.compile("([0-9]{1,9})-([0-9]{1,9})")

# Offsets (target, source) of a link's neighbors in the order of symal, which visits the diagonal
# neighbors last.
_NEIGHBORS = (
    (-1, 0),
    (0, -1),
    (1, 0),
    (0, 1),
    (-1, -1),
    (-1, 1),
    (1, -1),
    (1, 1),
)


def read_links(path: str | Path) -> Iterator[list[Link]]:
    """Yield the links of each line of a file that `align_words` wrote.

    Raises:
        UserError: a line is malformed. The message names it.
    """
    for number, line in enumerate(read_lines(path), start=1):
        links = []
        for text in line.split():
            match = _LINK.fullmatch(text)
            if not match:
                raise UserError(
                    f"{path}:{number}: expected links such as 0-0 1-2, found {line[:60]!r}"
                )
            links.append((int(match[1]), int(match[2])))
        yield links


def grow_diag_final_and(forward: Iterable[Link], reverse: Iterable[Link]) -> list[Link]:
    """Return the symmetrized links of one sentence pair, by target and then source position.

    There are three steps:

    1. Take the links that both directions have.
    2. Grow: add a link of one direction if it is next to a link that was taken, horizontally,
       vertically or diagonally, and if at least one of its two words has no link yet.
    3. Final-and: add a link of one direction if neither of its two words has a link yet. Links of
       the forward direction come first.
    """
    # In these sets and lists, links are (target, source), so that sorting gives the order in which
    # symal visits them.
    forward_links = {(target, source) for source, target in forward}
    reverse_links = {(target, source) for source, target in reverse}
    links = sorted(forward_links & reverse_links)
    linked_targets = {target for target, _ in links}
    linked_sources = {source for _, source in links}
    # Links of one direction alone.
    candidates = forward_links ^ reverse_links
    # Grow, until no candidate can be added. As in symal, a link that is added after the current
    # link is visited in the same round, and a link that is added before it in the next round.
    is_grown = True
    while is_grown and candidates:
        is_grown = False
        index = 0
        while index < len(links):
            current = links[index]
            for target_offset, source_offset in _NEIGHBORS:
                target = current[0] + target_offset
                source = current[1] + source_offset
                both_linked = target in linked_targets and source in linked_sources
                if (target, source) in candidates and not both_linked:
                    candidates.remove((target, source))
                    linked_targets.add(target)
                    linked_sources.add(source)
                    insort(links, (target, source))
                    is_grown = True
            # Links may have been inserted before the current link, so its index is searched again.
            index = bisect_right(links, current)
    # Final-and.
    for direction in (forward_links, reverse_links):
        for target, source in sorted(candidates & direction):
            if target not in linked_targets and source not in linked_sources:
                linked_targets.add(target)
                linked_sources.add(source)
                links.append((target, source))
    links.sort()
    return [(source, target) for target, source in links]
