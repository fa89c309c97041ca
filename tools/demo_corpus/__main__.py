"""Writes the text of both corpora to where the package ships it, and prints the checksums."""

import hashlib
import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from convs2s.demo.corpus import DATA
from demo_corpus.clauses import joined_sentences
from demo_corpus.corpus import sentences
from demo_corpus.notation import Sentence

GENERATORS: Mapping[str, Callable[[], Mapping[str, Sequence[Sentence]]]] = {
    "clauses_en_fr": joined_sentences,
    "en_fr": sentences,
}


def text_of(splits: Mapping[str, Sequence[Sentence]]) -> bytes:
    """Return a corpus as one text: for each pair a line with its split, and its two sides."""
    return "".join(
        f"{split}\n{sentence.english()}\n{sentence.french()}\n"
        for split, drawn in splits.items()
        for sentence in drawn
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
