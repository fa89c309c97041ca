"""ROUGE-1.5.5's stemmer: Porter's algorithm (1980), with what is its own.

A word is a run of consonants and vowels, [C](VC){m}[V]; most endings go only where what is left
before them has a large enough m, its *measure*. Irregular forms are looked up in a user's file.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml

from convs2s.errors import UserError
from convs2s.files.text import read_lines

_SHORTEST = 3  # letters of a word that has an ending to lose
_ENDINGS = yaml.safe_load(
    files(__package__).joinpath("data", "rouge_endings.yaml").read_text("utf-8")
)


@dataclass(frozen=True)
class RougeExceptions:
    """Irregular forms that are looked up before a word is stemmed."""

    bases: Mapping[str, str]  # word -> its base form
    digest: str  # the first 8 digits of the SHA-256 of the file's lines, for signatures


def read_exceptions(path: Path) -> RougeExceptions:
    """Read irregular forms: a word, a tab and its base form a line; a UserError names any other."""
    bases = {}
    digest = hashlib.sha256()
    for number, line in enumerate(read_lines(path), start=1):
        line = line.removesuffix("\r")
        word, _, base = line.partition("\t")
        if not word or not base or "\t" in base:
            raise UserError(
                f"{path}:{number}: expected a word, a tab and its base form, such as: mice, tab, "
                "mouse"
            )
        bases[word] = base
        digest.update(f"{line}\n".encode())
    return RougeExceptions(bases, digest.hexdigest()[:8])


@cache
def rouge_stem(word: str) -> str:
    """Return the stem of a word of small letters and digits."""
    if len(word) < _SHORTEST:
        return word
    plural = _longest_of(_ENDINGS["plurals"], word)
    word = word.removesuffix(plural) + _ENDINGS["plurals"].get(plural, "")
    word = _present(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_ENDINGS["long"], _ENDINGS["middle"]):
        ending = _longest_of(endings, word)
        rest = word.removesuffix(ending)
        if ending and _measure(rest):
            word = rest + endings[ending]
    # Porter takes one of all last endings away, the script one of each group. So *agreement*, whose
    # *agre* and *agree* are too short for it to lose -ement or -ment, loses -ent, and
    # *developmental* -al and -ment.
    for group in _ENDINGS["last"]:
        ending = _longest_of(group, word)
        rest = word.removesuffix(ending)
        if _measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t"))):
            word = rest
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _is_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _present(word: str) -> str:
    """Take -ed and -ing away, and give the rest the ending that it has by itself."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    ending = _longest_of(("ed", "ing"), word)
    rest = word.removesuffix(ending)
    if not ending or "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    last = rest[-1]
    if rest.endswith(2 * last) and _shape(rest).endswith("c") and last not in "lsz":
        return rest.removesuffix(last)
    if _measure(rest) == 1 and _is_short(rest):
        return rest + "e"
    return rest


def _longest_of(endings: Iterable[str], word: str) -> str:
    """Return the longest of the endings that a word has, and an empty one if it has none."""
    return max((ending for ending in endings if word.endswith(ending)), key=len, default="")


def _shape(word: str) -> str:
    """Return v for each vowel, c for each consonant or digit; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Tell whether a word ends as in *hop*: consonant, vowel, consonant other than w, x, y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
