"""Word alignment: eflomal in both directions, joined by grow-diag-final-and.

The paper used fast_align; the dictionaries of both agree on most words. eflomal draws its seed from
the system, so that two runs differ a little: keep the links that a result was made with.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from eflomal import Aligner

from convs2s.files import read_line_pairs, write_lines
from convs2s.guards.writing import scratch_folder
from convs2s.text.links import read_links
from convs2s.text.symmetrize import grow_diag_final_and

# eflomal's own limit (MAX_SENT_LEN); what is longer must not reach it.
_MOST_WORDS = 1023
# Lower than eflomal's 0.2, so that fewer words stay without a link: on Multi30k en-de, 93.7%
# to 94.1% of the dictionary then agree with fast_align's (4 runs), else 93.1% to 93.4% (4 runs).
_NULL_PRIOR = 0.003

Pair = tuple[str, str]


def align_words(
    *,
    source: str | Path,
    target: str | Path,
    links: str | Path,
    pairs: int | None,
    seed: int = 1,
) -> int:
    """Align the words of a parallel corpus.

    A word is what stands between blanks; ``|||`` is a word as any other. A pair with an empty side,
    or with more than 1023 words on one side, is not given to eflomal and has no links.

    Args:
        source: source side, tokenized (words, never BPE tokens).
        target: target side, as many lines.
        links: written: a line per pair, ``SOURCE-TARGET`` positions from 0, such as
            ``0-0 1-2``; an empty line where the pair was not aligned.
        pairs: align so many pairs only, drawn at random; None for all.
        seed: decides which, together with the number of pairs in the corpus.

    Returns:
        The number of pairs that were aligned.

    Raises:
        UserError: a side is missing, is not UTF-8, or has more lines than the other.
    """
    total = sum(1 for _ in read_line_pairs(source, target))
    chosen = partial(_sample, source, target, total, pairs, seed)
    Path(links).parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(Path(links).parent) as folder:
        forward, reverse = folder / "forward", folder / "reverse"
        aligned = _run_eflomal(chosen, forward, reverse)
        write_lines(links, _symmetrized_lines(chosen(), forward, reverse))
    return aligned


def _sample(
    source: str | Path, target: str | Path, total: int, most: int | None, seed: int
) -> Iterator[Pair | None]:
    """Yield each of the pairs, or None for one that is not to be aligned: the same every time."""
    generator = Random(seed)
    wanted = total if most is None else min(most, total)
    for index, pair in enumerate(read_line_pairs(source, target)):
        # As many of the rest as are still wanted, each with the same chance.
        in_sample = generator.random() * (total - index) < wanted
        wanted -= in_sample
        yield pair if in_sample and _fits(*pair) else None


def _fits(source: str, target: str) -> bool:
    return all(0 < len(side.split()) <= _MOST_WORDS for side in (source, target))


def _run_eflomal(chosen: Callable[[], Iterator[Pair | None]], forward: Path, reverse: Path) -> int:
    """Write one line of links per chosen pair and direction; return the number of these pairs."""
    aligned = sum(pair is not None for pair in chosen())
    if not aligned:
        forward.touch()
        reverse.touch()
        return 0
    Aligner(null_prior=_NULL_PRIOR).align(
        (pair[0] for pair in chosen() if pair),
        (pair[1] for pair in chosen() if pair),
        links_filename_fwd=str(forward),
        links_filename_rev=str(reverse),
    )
    return aligned


def _symmetrized_lines(
    chosen: Iterator[Pair | None], forward: Path, reverse: Path
) -> Iterator[str]:
    """Yield a line of links for every pair of the corpus, chosen or not."""
    directions = zip(read_links(forward), read_links(reverse), strict=True)
    for pair in chosen:
        symmetrized = grow_diag_final_and(*next(directions)) if pair else []
        yield " ".join(f"{source}-{target}" for source, target in symmetrized)
