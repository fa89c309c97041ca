"""Stem words as ROUGE-1.5.5 does: by Porter's algorithm (1980), with the script's deviations.

The algorithm regards a word as [C](VC){m}[V], where C is a run of consonants, V a run of vowels,
and m the word's *measure*. Most endings are removed only if the measure of the rest is large
enough. Irregular forms come from a file that the user provides.
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

_SHORTEST = 3  # shorter words are not changed
# "plurals", "long" and "middle" have endings with their replacements; "last" has groups of endings.
_ENDINGS = yaml.safe_load(
    files(__package__).joinpath("data", "rouge_endings.yaml").read_text("utf-8")
)


@dataclass(frozen=True)
class RougeExceptions:
    """Irregular forms, whose base forms are used instead of stems."""

    bases: Mapping[str, str]  # word -> its base form
    # The first 8 hexadecimal digits of the SHA-256 of the file's lines, for signatures.
    digest: str


NO_EXCEPTIONS = RougeExceptions({}, "no")


def read_exceptions(path: Path) -> RougeExceptions:
    """Read a file of irregular forms. Each line has a word, a tab and the word's base form.

    Raises:
        UserError: a line has another form; the message names it.
    """
    bases = {}
    digest = hashlib.sha256()
    for number, line in enumerate(read_lines(path), start=1):
        line = line.removesuffix("\r")
        word, _, base = line.partition("\t")
        if not word or not base or "\t" in base:
            raise UserError(
                f"{path}:{number}: expected a word, a tab and its base form, such as 'mice', a "
                "tab, 'mouse'"
            )
        bases[word] = base
        digest.update(f"{line}\n".encode())
    return RougeExceptions(bases, digest.hexdigest()[:8])


@cache
def rouge_stem(word: str) -> str:
    """Return the stem of a word, which must consist of small letters and digits."""
    if len(word) < _SHORTEST:
        return word
    plural = _longest_of(_ENDINGS["plurals"], word)
    word = word.removesuffix(plural) + _ENDINGS["plurals"].get(plural, "")
    word = _without_ed_or_ing(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_ENDINGS["long"], _ENDINGS["middle"]):
        ending = _longest_of(endings, word)
        rest = word.removesuffix(ending)
        if ending and _measure(rest):
            word = rest + endings[ending]
    # Porter removes at most one of all last endings, the script at most one of each group. So
    # *developmental* loses both -al and -ment. *agreement* cannot lose -ement or -ment, because the
    # measures of *agre* and *agree* are too small, but it loses -ent.
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


def _without_ed_or_ing(word: str) -> str:
    """Remove -ed or -ing, and restore the ending of the base form (hoping -> hope, hopping -> hop).

    -eed becomes -ee.
    """
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
    """Return the longest of ``endings`` with which a word ends, or an empty text."""
    return max(
        (ending for ending in endings if word.endswith(ending)), key=len, default=""
    )


def _shape(word: str) -> str:
    """Return a text with v for each vowel of a word, and c for each consonant or digit.

    y is a vowel after a consonant, otherwise a consonant.
    """
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Return m of [C](VC){m}[V]: how often a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Return whether a word ends like *hop*: consonant, vowel, consonant other than w, x, y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
