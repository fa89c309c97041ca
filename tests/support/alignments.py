"""Links of both directions made one, and the dictionary of links."""

from pathlib import Path

from convs2s.text.dictionary import build_dictionary
from convs2s.text.links import grow_diag_final_and, read_links
from tests.support.golden import plain_or_packed


def symmetrized(folder: Path, aligner: str) -> list[list[tuple[int, int]]]:
    """Return our grow-diag-final-and links of an aligner's two directions."""
    ways = [read_links(plain_or_packed(folder, f"{aligner}.{way}")) for way in ("fwd", "rev")]
    return [grow_diag_final_and(*pair) for pair in zip(*ways, strict=True)]


def dictionary_of(sides: tuple[Path, Path], links: Path, folder: Path) -> Path:
    """Write the tables of an alignment into a folder; return the dictionary."""
    source, target = sides
    dictionary, candidates = folder / "dictionary", folder / "candidates"
    build_dictionary(
        source=source, target=target, links=links, dictionary=dictionary, candidates=candidates
    )
    return dictionary
