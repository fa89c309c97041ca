"""The tables of a word alignment."""

from pathlib import Path

from convs2s.text.dictionary import build_dictionary


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
