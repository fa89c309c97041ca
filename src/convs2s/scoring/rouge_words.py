"""From a text to the words that ROUGE-1.5.5 counts: its bytes are cut, lowered and split."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import read_lines
from convs2s.scoring.rouge_stem import rouge_stem

_LONGEST_UNSTEMMED = 3
"""Letters of a word that is short enough to be its own stem."""

_KEPT = b"abcdefghijklmnopqrstuvwxyz0123456789"

# Every other byte separates words, those of a letter such as é too; so does a hyphen, of which the
# script makes a word of its own that it then does not count.
_BYTES = bytes(byte if byte in _KEPT else ord(" ") for byte in bytes(range(256)).lower())


@dataclass(frozen=True)
class RougeExceptions:
    """Irregular forms that are looked up before a word is stemmed.

    Attributes:
        bases: word -> its base form.
        digest: the first 8 digits of the SHA-256 of the file's lines, for signatures.
    """

    bases: Mapping[str, str]
    digest: str


def read_exceptions(path: Path) -> RougeExceptions:
    """Read irregular forms: a word, a tab and its base form a line.

    Raises:
        UserError: the file is missing, or a line has another form.
    """
    bases, digest = {}, hashlib.sha256()
    for number, line in enumerate(read_lines(path), start=1):
        line = line.removesuffix("\r")
        word, *base = line.split("\t")
        if len(base) != 1 or not word or not base[0]:
            raise UserError(
                f"{path}:{number}: expected a word, a tab and its base form, such as: mice, tab, "
                "mouse"
            )
        bases[word] = base[0]
        digest.update(f"{line}\n".encode())
    return RougeExceptions(bases, digest.hexdigest()[:8])


def rouge_words(
    text: str, *, byte_limit: int | None, stem: bool, exceptions: RougeExceptions | None
) -> list[str]:
    """Return the words of a text.

    Args:
        text: a line of it.
        byte_limit: how many of its bytes in UTF-8 count, before anything else; None: all.
        stem: whether words of more than three letters are stemmed.
        exceptions: irregular forms, which are looked up where words are stemmed.
    """
    words = text.encode()[:byte_limit].translate(_BYTES).decode("ascii").split()
    if not stem:
        return words
    bases = exceptions.bases if exceptions else {}
    return [_stemmed(word, bases) for word in words]


def _stemmed(word: str, bases: Mapping[str, str]) -> str:
    return word if len(word) <= _LONGEST_UNSTEMMED else bases.get(word) or rouge_stem(word)
