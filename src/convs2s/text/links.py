"""The links between aligned words: read from a file, and those of both directions made one.

Koehn, Och and Marcu (2003), grow-diag-final-and, as Moses' symal does it: the dictionaries of the
released ConvS2S models come from such links (fairseq's build_sym_alignment.py calls symal). The
order in which symal visits the links decides which of two competing ones is taken; it is kept here:
by target position, then source position.
"""

import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import read_lines

Link = tuple[int, int]  # two positions from 0, (source, target)
_LINK = re.compile("([0-9]{1,9})-([0-9]{1,9})")

# symal's order: straight neighbours before diagonal ones.
_NEIGHBOURS = (
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
    """Yield the links of each line that `align_words` wrote; a UserError names a bad line."""
    for number, line in enumerate(read_lines(path), start=1):
        links = []
        for written in line.split():
            link = _LINK.fullmatch(written)
            if not link:
                raise UserError(
                    f"{path}:{number}: expected links such as 0-0 1-2, found {line[:60]!r}"
                )
            links.append((int(link[1]), int(link[2])))
        yield links


def grow_diag_final_and(forward: Iterable[Link], reverse: Iterable[Link]) -> list[Link]:
    """Return the symmetrized links of one sentence pair, by target and then source position.

    Start from the links that both directions have. Grow: add links of either direction that touch a
    link, at a corner too, and reach a word that has none. At last add links between two words that
    still have none, first those of the forward direction.
    """
    # Inside, links are (target, source), so that they sort as symal visits them.
    ahead = {(target, source) for source, target in forward}
    back = {(target, source) for source, target in reverse}
    links = sorted(ahead & back)
    candidates = ahead ^ back
    targets = {target for target, _ in links}
    sources = {source for _, source in links}
    _grow(links, candidates, targets, sources)
    for direction in (ahead, back):
        for target, source in sorted(candidates & direction):
            if target not in targets and source not in sources:
                targets.add(target)
                sources.add(source)
                links.append((target, source))
    links.sort()
    return [(source, target) for target, source in links]


def _grow(links: list[Link], candidates: set[Link], targets: set[int], sources: set[int]) -> None:
    """Move candidates that touch a link into the sorted ``links`` until none can be added.

    A link that is added behind the one at hand is visited in the same round, as in symal.
    """
    added = True
    while added and candidates:
        added = False
        place = 0
        while place < len(links):
            here = links[place]
            for down, right in _NEIGHBOURS:
                target = here[0] + down
                source = here[1] + right
                link = (target, source)
                if link in candidates and not (target in targets and source in sources):
                    candidates.remove(link)
                    targets.add(target)
                    sources.add(source)
                    insort(links, link)
                    added = True
            place = bisect_right(links, here)
