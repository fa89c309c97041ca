"""ROUGE-1.5.5's stemmer: Porter's algorithm (1980), with what is its own.

A word is a run of consonants and vowels, [C](VC){m}[V]; most endings go only where what is left
before them has a large enough m, its *measure*.
"""

from collections.abc import Sequence
from functools import cache

_SHORTEST = 3
"""Letters of the shortest word that has an ending to lose."""

_PLURALS = (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))
_LONG_ENDINGS = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
_MIDDLE_ENDINGS = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_LAST_ENDINGS = (
    (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement"),
        *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
    ),
    ("ment",),
    ("ent", "ion"),
)


@cache
def rouge_stem(word: str) -> str:
    """Return the stem of a word of small letters and digits."""
    if len(word) < _SHORTEST:
        return word
    for step in (_plural, _past, _final_y, _long, _middle, _last, _final_e):
        word = step(word)
    return word


def _plural(word: str) -> str:
    for ending, other in _PLURALS:
        if word.endswith(ending):
            return word.removesuffix(ending) + other
    return word


def _past(word: str) -> str:
    """Take -ed and -ing away, and give the rest the ending that it has by itself."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return _completed(rest) if "v" in _shape(rest) else word
    return word


def _completed(rest: str) -> str:
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _is_doubled(rest) and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _is_short(rest) else rest


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and "v" in _shape(word[:-1]) else word


def _long(word: str) -> str:
    return _replaced(word, _LONG_ENDINGS)


def _middle(word: str) -> str:
    return _replaced(word, _MIDDLE_ENDINGS)


def _replaced(word: str, endings: Sequence[tuple[str, str]]) -> str:
    fitting = [pair for pair in endings if word.endswith(pair[0])]
    if not fitting:
        return word
    ending, other = max(fitting, key=lambda pair: len(pair[0]))
    rest = word.removesuffix(ending)
    return rest + other if _measure(rest) else word


def _last(word: str) -> str:
    """Take up to three last endings away, one of each group (Porter takes one of all).

    So *agreement*, whose *agre* and *agree* are too short for it to lose -ement or -ment, loses
    -ent, and *developmental* -al and -ment.
    """
    for endings in _LAST_ENDINGS:
        word = _without_last(word, endings)
    return word


def _without_last(word: str, endings: Sequence[str]) -> str:
    ending = next((one for one in endings if word.endswith(one)), None)
    rest = word.removesuffix(ending or "")
    if ending == "ion" and not rest.endswith(("s", "t")):
        return word
    return rest if _measure(rest) > 1 else word


def _final_e(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _is_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _shape(word: str) -> str:
    """Return a letter for each of the word's: v for a vowel, c for a consonant or digit.

    y is a vowel after a consonant.
    """
    shape = ""
    for letter in word:
        shape += "v" if letter in "aeiou" or (letter == "y" and shape.endswith("c")) else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _is_doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word).endswith("c")


def _is_short(word: str) -> bool:
    """Tell whether a word ends as in *hop*: consonant, vowel, consonant other than w, x, y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
