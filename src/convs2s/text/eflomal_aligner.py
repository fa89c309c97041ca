"""Word alignment by eflomal, which samples.

It draws its seed from the system and takes none, so that its links, and the scores of word models
that rest on them, move from run to run.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.atomic import scratch_folder
from convs2s.text.links import read_links
from convs2s.text.symmetrize import Link

# Lower than eflomal's 0.2, so that fewer words stay without a link: on Multi30k en-de, 93.7%
# to 94.1% of the dictionary then agree with fast_align's (4 runs), else 93.1% to 93.4% (4 runs).
_NULL_PRIOR = 0.003


def eflomal_directions(
    pairs: Callable[[], Iterable[tuple[str, str]]], beside: Path
) -> Iterator[tuple[list[Link], list[Link]]]:
    """Yield the links of each sentence pair by either direction.

    Args:
        pairs: gives the pairs, at least one; asked for them twice.
        beside: a folder in which there is room for the links of both directions, until the end.

    Raises:
        UserError: eflomal is not installed.
    """
    try:
        from eflomal import Aligner
    except ImportError:
        raise UserError(
            "alignment.aligner: eflomal is not installed: run pip install 'convs2s[eflomal]', "
            "which needs a C compiler, or take fast_align"
        ) from None
    beside.mkdir(parents=True, exist_ok=True)
    with scratch_folder(beside) as folder:
        forward, reverse = folder / "forward", folder / "reverse"
        Aligner(null_prior=_NULL_PRIOR).align(
            (source for source, _ in pairs()),
            (target for _, target in pairs()),
            links_filename_fwd=str(forward),
            links_filename_rev=str(reverse),
        )
        yield from zip(read_links(forward), read_links(reverse), strict=True)
