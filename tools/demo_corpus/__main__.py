"""Writes the text of both corpora to where the package ships it, and prints the checksums."""

import hashlib
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path

from convs2s.demo.corpus import DATA
from demo_corpus.clauses import generate_clauses
from demo_corpus.corpus import generate

Pairs = list[tuple[str, str]]

GENERATORS: Mapping[str, Callable[[], dict[str, Pairs]]] = {
    "clauses_en_fr": generate_clauses,
    "en_fr": generate,
}


def text_of(splits: Mapping[str, Pairs]) -> bytes:
    """Return a corpus as one text: for each pair a line with its split, and its two sides."""
    return "".join(
        f"{split}\n{english}\n{french}\n"
        for split, pairs in splits.items()
        for english, french in pairs
    ).encode()


def write_shipped_text(folder: Path) -> None:
    """Write ``NAME.txt.xz`` for each corpus into a folder."""
    for name, generated in GENERATORS.items():
        text = text_of(generated())
        compressed = lzma.compress(text, preset=6 | lzma.PRESET_EXTREME)
        (folder / f"{name}.txt.xz").write_bytes(compressed)
        print(f'"{name}": "{hashlib.sha256(text).hexdigest()}",')


if __name__ == "__main__":
    write_shipped_text(DATA)
