"""Word alignment as the paper has it: fast_align in both directions, joined by grow-diag-final-and.

The aligner is this package's own and draws nothing at random. Its links are those of fast_align.
eflomal may take its place.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from convs2s.config.corpus import AlignerName
from convs2s.files.text import NO_MARK, read_line_pairs, write_lines
from convs2s.text.alignment_state import remove_states, state_folder
from convs2s.text.diagonal_model import Side, most_probable_links
from convs2s.text.eflomal_aligner import eflomal_directions
from convs2s.text.symmetrize import Link, grow_diag_final_and

# A pair takes memory and time by the product of its lengths; no model has more positions.
_MOST_WORDS = 1023

Pair = tuple[str, str]


def align_words(
    *,
    source: str | Path,
    target: str | Path,
    links: str | Path,
    pairs: int | None,
    seed: int = 1,
    aligner: AlignerName = "fast_align",
) -> int:
    """Align the words of a parallel corpus: by fast_align the same text has the same links.

    A word is what stands between blanks; ``|||`` is a word as any other. A pair with an empty side,
    or with more than 1023 words on one side, is left out and has no links.
    fast_align keeps what each iteration has found in the folder ``LINKS.state`` until it is done: a
    killed one goes on from there, to the same links.

    Args:
        source: source side, tokenized (words, never BPE tokens).
        target: target side, as many lines.
        links: written: a line per pair, ``SOURCE-TARGET`` positions from 0, such as
            ``0-0 1-2``; an empty line where the pair was not aligned.
        pairs: align so many pairs only, drawn at random; None for all.
        seed: decides which, together with the number of pairs in the corpus.
        aligner: what aligns each direction.

    Returns:
        The number of pairs that were aligned.

    Raises:
        UserError: a side is missing, is not UTF-8, or has more lines than the other; eflomal is
            asked for and not installed; something cannot be written.
    """
    states = state_folder(Path(links))
    total = sum(1 for _ in read_line_pairs(source, target, mark=NO_MARK))
    chosen = partial(_sample, source, target, total, pairs, seed)
    aligned = sum(pair is not None for pair in chosen())
    directions = _directions(chosen, aligner, states) if aligned else iter(())
    write_lines(links, _symmetrized_lines(chosen, directions))
    remove_states(states)
    return aligned


def _sample(
    source: str | Path, target: str | Path, total: int, most: int | None, seed: int
) -> Iterator[Pair | None]:
    """Yield each of the pairs, or None for one that is not to be aligned: the same every time."""
    generator = Random(seed)
    wanted = total if most is None else min(most, total)
    for index, pair in enumerate(read_line_pairs(source, target, mark=NO_MARK)):
        # As many of the rest as are still wanted, each with the same chance.
        in_sample = generator.random() * (total - index) < wanted
        wanted -= in_sample
        yield pair if in_sample and _fits(*pair) else None


def _fits(source: str, target: str) -> bool:
    return all(0 < len(side.split()) <= _MOST_WORDS for side in (source, target))


def _directions(
    chosen: Callable[[], Iterator[Pair | None]], aligner: AlignerName, states: Path
) -> Iterator[tuple[list[Link], list[Link]]]:
    """Return the links of each chosen pair by either direction."""
    if aligner == "eflomal":
        return eflomal_directions(lambda: (pair for pair in chosen() if pair), states.parent)
    source, target = (_numbered(pair[side] for pair in chosen() if pair) for side in (0, 1))
    return _both_directions(source, target, states)


def _numbered(sentences: Iterable[str]) -> Side:
    """Return sentences with each word as a number."""
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    words, starts = array("i"), array("q", [0])
    for sentence in sentences:
        words.extend(numbers[word] for word in sentence.split())
        starts.append(len(words))
    return Side(np.asarray(words, dtype=np.int32), np.asarray(starts, dtype=np.int64))


def _both_directions(
    source: Side, target: Side, states: Path
) -> Iterator[tuple[list[Link], list[Link]]]:
    """Yield the links of each sentence pair by either direction."""
    forward = most_probable_links(source, target, states)
    reverse = most_probable_links(target, source, states)
    edges = zip(*(side.starts.tolist() for side in (target, source)), strict=True)
    (start, other_start) = next(edges)
    for end, other_end in edges:
        ahead = [(i, j) for j, i in enumerate(forward[start:end].tolist()) if i >= 0]
        back = [(i, j) for i, j in enumerate(reverse[other_start:other_end].tolist()) if j >= 0]
        yield ahead, back
        start, other_start = end, other_end


def _symmetrized_lines(
    chosen: Callable[[], Iterator[Pair | None]],
    directions: Iterator[tuple[list[Link], list[Link]]],
) -> Iterator[str]:
    """Yield a line of links for every pair of the corpus, chosen or not."""
    for pair in chosen():
        symmetrized = grow_diag_final_and(*next(directions)) if pair else []
        yield " ".join(f"{source}-{target}" for source, target in symmetrized)
