"""Two corpora of generated English and French sentences: the demo's, and one of long clauses.

``docs/demo_corpus.md`` says what is in them. Each is shipped as ``data/NAME.txt.xz``, three lines
for each pair: its split (``train``, ``valid``, ``test`` ...), its English and its French sentence.
"""

import hashlib
import lzma
from pathlib import Path

from convs2s.errors import UserError

CORPUS_SHA256 = {
    "clauses_en_fr": "30155f1cbb1565ee87df2a19cff074eb8c9f0ee3ed5ce0cd466f3962b8866a97",
    "en_fr": "3e20a18e4b687392abb23c9e82b0ecb29910711ea49307788f95159b19b132fc",
}
"""Folder of demo:// -> SHA-256 of its text; a run on a corpus is known by it before it runs."""

DATA = Path(__file__).with_name("data")


def shipped_data(path: Path, sha256: str) -> bytes:
    """Return the decompressed bytes of a file of this package; a UserError: it is another one."""
    try:
        data = lzma.decompress(path.read_bytes())
    except (lzma.LZMAError, EOFError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}; install convs2s again") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(f"{path}: damaged: its SHA-256 is another one; install convs2s again")
    return data


def read_demo_corpus(corpus: str = "en_fr") -> dict[str, list[tuple[str, str]]]:
    """Return the (English, French) pairs of each split; for errors see ``shipped_data``."""
    data = shipped_data(DATA / f"{corpus}.txt.xz", CORPUS_SHA256[corpus])
    lines = iter(data.decode().removesuffix("\n").split("\n"))
    splits: dict[str, list[tuple[str, str]]] = {}
    for split, english, french in zip(lines, lines, lines, strict=True):
        splits.setdefault(split, []).append((english, french))
    return splits


def write_demo_corpus(folder: Path, corpus: str = "en_fr") -> None:
    """Write each split of a corpus as ``.en`` and ``.fr`` into a folder, plain UTF-8."""
    # Imported here: planning reads the checksums above, with none of the jobs' libraries.
    from convs2s.files.text import write_lines

    for split, pairs in read_demo_corpus(corpus).items():
        write_lines(folder / f"{split}.en", (english for english, _ in pairs))
        write_lines(folder / f"{split}.fr", (french for _, french in pairs))
