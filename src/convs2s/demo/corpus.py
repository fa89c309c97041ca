"""Two corpora of generated English and French sentences: that of the demo, and one of long clauses.

``docs/demo_corpus.md`` describes their contents. Each is shipped as ``data/NAME.txt.xz``, which has
three lines for each pair: its split (``train``, ``valid``, ``test`` ...), the English sentence and
the French sentence.
"""

import hashlib
import lzma
from pathlib import Path

from convs2s.errors import UserError

CORPUS_SHA256 = {
    "clauses_en_fr": "30155f1cbb1565ee87df2a19cff074eb8c9f0ee3ed5ce0cd466f3962b8866a97",
    "en_fr": "3e20a18e4b687392abb23c9e82b0ecb29910711ea49307788f95159b19b132fc",
}
"""Name of a corpus, as in ``demo://NAME`` -> SHA-256 of its decompressed text.

The fingerprint of a run contains this digest, not the one of the files that are written. So the
fingerprint is known before they are written.
"""

DATA = Path(__file__).with_name("data")


def shipped_data(path: Path, sha256: str) -> bytes:
    """Return the decompressed bytes of a data file of this package.

    Raises:
        UserError: the file cannot be read, or its decompressed bytes have another SHA-256.
    """
    try:
        data = lzma.decompress(path.read_bytes())
    except (lzma.LZMAError, EOFError, OSError) as error:
        raise UserError(
            f"{path}: cannot be read: {error}; install convs2s again"
        ) from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(
            f"{path}: damaged, because its SHA-256 is wrong; install convs2s again"
        )
    return data


def read_demo_corpus(corpus: str = "en_fr") -> dict[str, list[tuple[str, str]]]:
    """Return the (English, French) pairs of each split.

    Raises:
        UserError: the shipped data is damaged.
    """
    data = shipped_data(DATA / f"{corpus}.txt.xz", CORPUS_SHA256[corpus])
    lines = iter(data.decode().removesuffix("\n").split("\n"))
    splits: dict[str, list[tuple[str, str]]] = {}
    # Each round takes the next three lines from the same iterator.
    for split, english, french in zip(lines, lines, lines, strict=True):
        splits.setdefault(split, []).append((english, french))
    return splits


def write_demo_corpus(folder: Path, corpus: str = "en_fr") -> None:
    """Write the sentences of each split of a corpus as SPLIT.en and SPLIT.fr, in UTF-8."""
    # Imported here, because planning imports this module, for CORPUS_SHA256, without the libraries
    # of jobs.
    from convs2s.files.text import write_lines

    for split, pairs in read_demo_corpus(corpus).items():
        write_lines(folder / f"{split}.en", (english for english, _ in pairs))
        write_lines(folder / f"{split}.fr", (french for _, french in pairs))
