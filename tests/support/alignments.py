"""Links of both directions made one, and the dictionary of links."""

from collections.abc import Iterator
from itertools import starmap
from pathlib import Path

from convs2s.text.dictionary import build_dictionary
from convs2s.text.links import grow_diag_final_and, read_links
from tests.support.golden import golden_lines, plain_or_packed


def symmetrized(folder: Path) -> Iterator[list[tuple[int, int]]]:
    """Yield our grow-diag-final-and links of fast_align's two directions."""
    ways = [
        read_links(plain_or_packed(folder, f"fast_align.{way}"))
        for way in ("fwd", "rev")
    ]
    return starmap(grow_diag_final_and, zip(*ways, strict=True))


def counted_links(folder: Path, name: str) -> list[str]:
    """Return the rows that a dictionary is to have by a table of counts.

    A word that no link reaches is in no dictionary.
    """
    rows = (line.split("\t") for line in golden_lines(folder, name))
    return [
        f"{source}\t{target}\t{count}\t{frequency}"
        for source, frequency, target, count, _ in rows
        if target
    ]


def dictionary_of(sides: tuple[Path, Path], links: Path, folder: Path) -> Path:
    """Write the tables of an alignment into a folder; return the dictionary."""
    source, target = sides
    dictionary, candidates = folder / "dictionary", folder / "candidates"
    build_dictionary(
        source=source,
        target=target,
        links=links,
        dictionary=dictionary,
        candidates=candidates,
    )
    return dictionary
