"""Word alignment as the paper has it: fast_align in both directions, joined by grow-diag-final-and.

The aligner is this package's own and draws nothing at random. Its links are those of fast_align.
eflomal, which samples, may take its place: it draws its seed from the system and takes none, so
that its links, and the scores of word models that rest on them, move from run to run.
"""

import shutil
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np

from convs2s.config.corpus import AlignerName
from convs2s.errors import UserError
from convs2s.files.atomic import scratch_folder
from convs2s.files.text import NO_MARK, atomic_text, read_line_pairs
from convs2s.text.fast_align import Side, most_probable_links
from convs2s.text.links import Link, grow_diag_final_and, read_links

# A pair takes memory and time by the product of its lengths; no model has more positions.
_MOST_WORDS = 1023

# Lower than eflomal's 0.2, so that fewer words stay without a link. On Multi30k en-de, one run of
# each, 92.3% of the 2,000 most frequent words have the same entry as in fast_align's dictionary
# (91.6% with 0.2), and 77.2% of all words that are in both dictionaries (76.4%).
_NULL_PRIOR = 0.003

Pair = tuple[str, str]
Sample = Callable[[], Iterator[Pair | None]]
"""Gives each pair of the corpus, or None for one that is not to be aligned: the same every time."""
Directions = Iterator[tuple[list[Link], list[Link]]]
"""The links of each pair that is aligned, by either direction."""


def align_words(
    *,
    source: str | Path,
    target: str | Path,
    links: str | Path,
    pairs: int | None,
    seed: int = 1,
    aligner: AlignerName = "fast_align",
) -> int:
    """Align the words of a parallel corpus; return the number of pairs that were aligned.

    By fast_align the same text has the same links. A word, never a BPE token, is what stands
    between blanks; ``|||`` is a word as any other. A pair with an empty side, or with more than
    1023 words on one side, is left out and has no links. fast_align keeps the result of each
    iteration in the folder ``LINKS.state``, which no rule declares, as the workflow deletes a
    failed job's outputs: a killed alignment resumes from there, to the same links.

    ``links`` has a line per pair, ``SOURCE-TARGET`` positions from 0, such as ``0-0 1-2``; it is
    empty where a pair was not aligned. ``pairs`` says how many of the corpus
    the ``seed`` draws; None aligns all.
    """
    states = Path(f"{links}.state")
    total = sum(1 for _ in read_line_pairs(source, target, mark=NO_MARK))
    most = total if pairs is None else min(pairs, total)

    def sample() -> Iterator[Pair | None]:
        generator = Random(seed)
        wanted = most
        for index, pair in enumerate(read_line_pairs(source, target, mark=NO_MARK)):
            # As many of the rest as are still wanted, each with the same chance.
            in_sample = generator.random() * (total - index) < wanted
            wanted -= in_sample
            lengths = [len(side.split()) for side in pair] if in_sample else [0]
            yield pair if min(lengths) > 0 and max(lengths) <= _MOST_WORDS else None

    align = _eflomal_directions if aligner == "eflomal" else _fast_align_directions
    directions = align(sample, states)
    aligned = 0
    with atomic_text(links) as stream:
        for pair in sample():
            symmetrized: list[Link] = []
            if pair:
                aligned += 1
                forward, reverse = next(directions)
                symmetrized = grow_diag_final_and(forward, reverse)
            stream.write(" ".join(f"{i}-{j}" for i, j in symmetrized) + "\n")
    if states.exists():
        shutil.rmtree(states)
    return aligned


def _fast_align_directions(sample: Sample, states: Path) -> Directions:
    source = _numbered(pair[0] for pair in sample() if pair)
    target = _numbered(pair[1] for pair in sample() if pair)
    forward = most_probable_links(source, target, states)
    reverse = most_probable_links(target, source, states)
    source_edges = pairwise(source.starts.tolist())
    target_edges = pairwise(target.starts.tolist())
    for of_source, of_target in zip(source_edges, target_edges, strict=True):
        source_places = forward[slice(*of_target)].tolist()  # of each target word
        target_places = reverse[slice(*of_source)].tolist()  # of each source word
        ahead = [(i, j) for j, i in enumerate(source_places) if i >= 0]
        back = [(i, j) for i, j in enumerate(target_places) if j >= 0]
        yield ahead, back


def _numbered(sentences: Iterable[str]) -> Side:
    """Return sentences with each word as a number."""
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    words = array("i")
    starts = array("q", [0])
    for sentence in sentences:
        words.extend(numbers[word] for word in sentence.split())
        starts.append(len(words))
    return Side(np.asarray(words, dtype=np.int32), np.asarray(starts, dtype=np.int64))


def _eflomal_directions(sample: Sample, states: Path) -> Directions:
    """Yield eflomal's links, kept in a folder beside ``states`` until the end."""
    try:
        from eflomal import Aligner
    except ImportError:
        raise UserError(
            "alignment.aligner: eflomal is not installed: run pip install 'convs2s[eflomal]', "
            "which needs a C compiler, or take fast_align"
        ) from None
    with scratch_folder(states.parent) as folder:
        forward = folder / "forward"
        reverse = folder / "reverse"
        Aligner(null_prior=_NULL_PRIOR).align(
            (pair[0] for pair in sample() if pair),
            (pair[1] for pair in sample() if pair),
            links_filename_fwd=str(forward),
            links_filename_rev=str(reverse),
        )
        yield from zip(read_links(forward), read_links(reverse), strict=True)
