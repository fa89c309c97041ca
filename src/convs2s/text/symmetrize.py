"""Join the word alignments of both directions: grow-diag-final-and, as Moses' symal does it.

Koehn, Och and Marcu (2003). The dictionaries of the released ConvS2S models come from such links
(fairseq's build_sym_alignment.py calls symal). The order in which symal visits the links decides
which of two competing ones is taken; it is kept here: by target position, then source position.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable

Link = tuple[int, int]
"""Two positions from 0: (source, target) outside of this module, (target, source) inside."""

# symal's order: straight neighbours before diagonal ones.
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def grow_diag_final_and(forward: Iterable[Link], reverse: Iterable[Link]) -> list[Link]:
    """Return the symmetrized links of one sentence pair.

    Start from the links that both directions have. Grow: add links of either direction that touch a
    link, at a corner too, and reach a word that has none. At last add links between two words that
    still have none, first those of the forward direction.

    Args:
        forward: (source, target) links, at most one per target position.
        reverse: (source, target) links, at most one per source position.

    Returns:
        (source, target) links, by target and then source position.
    """
    ahead, back = _swapped(forward), _swapped(reverse)
    links = sorted(ahead & back)
    candidates = (ahead | back).difference(links)
    if candidates:
        targets = {target for target, _ in links}
        sources = {source for _, source in links}
        _grow(links, candidates, targets, sources)
        for target, source in [*sorted(candidates & ahead), *sorted(candidates & back)]:
            if target not in targets and source not in sources:
                targets.add(target)
                sources.add(source)
                links.append((target, source))
        links.sort()
    return [(source, target) for target, source in links]


def _swapped(links: Iterable[Link]) -> set[Link]:
    return {(second, first) for first, second in links}


def _grow(links: list[Link], candidates: set[Link], targets: set[int], sources: set[int]) -> None:
    """Move candidates that touch a link into the sorted ``links`` until none can be added.

    A link that is added behind the one at hand is visited in the same round, as in symal.
    """
    added = True
    while added and candidates:
        added = False
        place = 0
        while place < len(links):
            target, source = here = links[place]
            for down, right in _NEIGHBOURS:
                link = target + down, source + right
                if link in candidates and not (link[0] in targets and link[1] in sources):
                    candidates.remove(link)
                    targets.add(link[0])
                    sources.add(link[1])
                    insort(links, link)
                    added = True
            place = bisect_right(links, here)
