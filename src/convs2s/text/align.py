"""Word alignment as in the paper: fast_align in both directions, joined by grow-diag-final-and.

By default the words are aligned by this package's own implementation of fast_align. It finds the
same links as fast_align and uses no random numbers. eflomal can be used instead. It samples with a
seed that it takes from the system and that cannot be set. Its links therefore differ from run to
run, and so do the scores of word models, which depend on the links.
"""

import shutil
from array import array
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
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

# Maximum number of words of a sentence. It is limited because memory and time grow with the product
# of the two lengths. By default, models do not take longer sentences either.
_MOST_WORDS = 1023

# Prior probability that eflomal gives no link to a word. It is lower than eflomal's default of 0.2,
# so that fewer words have no link. The dictionaries that are made from the links of eflomal and of
# fast_align give the same translation for 92.3% of the 2,000 most frequent words (91.6% with 0.2),
# and for 77.2% of all words that are in both (76.4% with 0.2). Measured on Multi30k en-de, with one
# run for each value.
_NULL_PRIOR = 0.003

Pair = tuple[str, str]

Sample = Callable[[], Iterator[Pair | None]]
"""Yields each pair of the corpus, or None in place of a pair that is not to be aligned.

Every call yields the same items.
"""

Directions = Generator[tuple[list[Link], list[Link]], None, None]
"""The forward and the reverse links of each pair that is aligned."""


def align_words(
    *,
    source: str | Path,
    target: str | Path,
    links: str | Path,
    pairs: int | None,
    seed: int = 1,
    aligner: AlignerName = "fast_align",
) -> int:
    """Align the words of a parallel corpus, and return the number of pairs that were aligned.

    Words are separated by blanks, and the text must not be split into BPE tokens. ``|||`` is a word
    like any other. A pair with an empty side, or with more than 1023 words on one side, is not
    aligned. With fast_align, the same text gets the same links on every run.

    fast_align keeps the result of each iteration in the folder ``LINKS.state``. If it is killed,
    the next call continues from there and finds the same links. No Snakemake rule declares this
    folder as an output, because Snakemake deletes the outputs of a failed job. The folder is
    removed at the end.

    - ``source``, ``target``: The sides of the corpus, one sentence a line.
    - ``links``: The file to write. It has a line per pair with ``SOURCE-TARGET`` positions counted
      from 0, such as ``0-0 1-2``. The line of a pair that was not aligned is empty.
    - ``pairs``: How many pairs to draw from the corpus and align; None aligns all pairs.
    - ``seed``: Seed of the generator that draws the pairs.
    """
    states = Path(f"{links}.state")
    total = sum(1 for _ in read_line_pairs(source, target, mark=NO_MARK))
    sample_size = total if pairs is None else min(pairs, total)

    def sample() -> Iterator[Pair | None]:
        """Yield each pair of the corpus, or None if it is not drawn or cannot be aligned."""
        generator = Random(seed)
        wanted = sample_size
        for index, pair in enumerate(read_line_pairs(source, target, mark=NO_MARK)):
            # Selection sampling: each remaining pair is drawn with the probability wanted / left,
            # so that exactly sample_size pairs are drawn, and every pair with the same probability.
            left = total - index
            if generator.random() * left >= wanted:
                yield None
                continue
            wanted -= 1
            lengths = [len(side.split()) for side in pair]
            can_be_aligned = min(lengths) > 0 and max(lengths) <= _MOST_WORDS
            yield pair if can_be_aligned else None

    align = _eflomal_directions if aligner == "eflomal" else _fast_align_directions
    aligned = 0
    # eflomal's temporary folder is removed once its links are read or the generator is closed.
    with closing(align(sample, states)) as directions, atomic_text(links) as stream:
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
    """Yield the links of fast_align, which keeps the state of its work in the folder ``states``."""
    source = _numbered(pair[0] for pair in sample() if pair)
    target = _numbered(pair[1] for pair in sample() if pair)
    # forward has the source position of each target word, reverse the target position of each
    # source word, for all sentences one after the other. -1 means that a word has no link.
    # Both directions share the folder: their state files are named after their input.
    forward = most_probable_links(source, target, states)
    reverse = most_probable_links(target, source, states)
    source_bounds = pairwise(source.starts.tolist())
    target_bounds = pairwise(target.starts.tolist())
    bounds = zip(source_bounds, target_bounds, strict=True)
    for (source_start, source_end), (target_start, target_end) in bounds:
        source_positions = forward[target_start:target_end].tolist()
        target_positions = reverse[source_start:source_end].tolist()
        forward_links = [(i, j) for j, i in enumerate(source_positions) if i >= 0]
        reverse_links = [(i, j) for i, j in enumerate(target_positions) if j >= 0]
        yield forward_links, reverse_links


def _numbered(sentences: Iterable[str]) -> Side:
    """Number the distinct words in order of first occurrence; return the sentences as numbers."""
    # A word that has no number yet gets the next one.
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    words = array("i")
    starts = array("q", [0])
    for sentence in sentences:
        words.extend(numbers[word] for word in sentence.split())
        starts.append(len(words))
    return Side(np.asarray(words, dtype=np.int32), np.asarray(starts, dtype=np.int64))


def _eflomal_directions(sample: Sample, states: Path) -> Directions:
    """Yield the links of eflomal, which writes them to a temporary folder beside ``states``."""
    try:
        from eflomal import Aligner
    except ImportError:
        raise UserError(
            "alignment.aligner: eflomal is not installed: run pip install 'convs2s[eflomal]', "
            "which needs a C compiler, or set alignment.aligner to fast_align"
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
