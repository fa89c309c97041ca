"""Text that looks like German and like Romanian, made from French word by word.

It is neither language: a few frequent words are translated, the others are respelled by fixed
rules, and what has a capital letter stays. So each French word gives the same word each time, which
is what a model can learn, and each language's own letters occur.
"""

import re
from collections.abc import Callable, Mapping

_GERMAN_WORDS = {
    **{"le": "der", "la": "die", "les": "die", "l'": "das ", "un": "ein", "une": "eine"},
    **{"des": "einige", "du": "vom", "de": "von", "d'": "von ", "à": "zu", "au": "zum"},
    **{"aux": "zu den", "et": "und", "est": "ist", "sont": "sind", "a": "hat", "ont": "haben"},
    **{"dans": "in", "pour": "für", "avec": "mit", "sur": "auf", "sous": "unter", "que": "daß"},
    **{"qu'": "daß ", "qui": "wer", "ne": "nicht", "n'": "nicht ", "pas": "ganz", "je": "ich"},
    **{"j'": "ich ", "s'": "sich ", "se": "sich", "mon": "mein", "ma": "meine", "mes": "meine"},
    **{"il": "er", "elle": "sie", "ils": "sie", "elles": "sie", "y": "dort", "euros": "Euro"},
    **{"deux": "zwei", "trois": "drei", "plus": "mehr", "très": "sehr", "mais": "aber"},
}
_GERMAN_LETTERS = {
    **{"ss": "ß", "ç": "ß", "ch": "sch", "qu": "kw", "c": "k", "v": "w", "ou": "u", "eau": "au"},
    **{"é": "ä", "è": "e", "ê": "e", "ë": "e", "à": "a", "â": "a", "î": "i", "ï": "i"},
    **{"ô": "ö", "œu": "ö", "œ": "ö", "û": "ü", "ù": "u"},
}
_ROMANIAN_WORDS = {
    **{"le": "cel", "la": "cea", "les": "cei", "l'": "acel ", "un": "un", "une": "o"},
    **{"des": "niște", "du": "din", "de": "de", "d'": "de ", "à": "la", "au": "la", "aux": "la"},
    **{"et": "și", "est": "este", "sont": "sunt", "a": "are", "ont": "au", "dans": "în"},
    **{"pour": "pentru", "avec": "cu", "sur": "pe", "sous": "sub", "que": "că", "qu'": "că "},
    **{"qui": "care", "ne": "nu", "n'": "nu ", "pas": "deloc", "je": "eu", "j'": "eu "},
    **{"s'": "se ", "se": "se", "mon": "meu", "ma": "mea", "mes": "mei", "il": "el", "elle": "ea"},
    **{"ils": "ei", "elles": "ele", "y": "acolo", "deux": "două", "trois": "trei", "plus": "mai"},
    **{"très": "foarte", "mais": "dar", "euros": "euro"},
}
_ROMANIAN_LETTERS = {
    **{"ch": "ș", "ss": "ș", "ç": "ț", "tion": "ție", "qu": "c", "eau": "ău", "ou": "u", "y": "i"},
    **{"é": "ă", "è": "ă", "ê": "â", "ë": "e", "à": "a", "â": "â", "î": "î", "ï": "i"},
    **{"ô": "o", "œ": "oe", "û": "u", "ù": "u"},
}
_CEDILLAS = str.maketrans("ȘșȚț", "ŞşŢţ")


def german(french: str) -> str:
    """Return a French sentence as text that looks like German."""
    return _unspaced(_respelled(french, _GERMAN_WORDS, _GERMAN_LETTERS))


def romanian(french: str) -> str:
    """Return a French sentence as text that looks like Romanian."""
    return _unspaced(_respelled(french, _ROMANIAN_WORDS, _ROMANIAN_LETTERS))


def with_cedillas(line: str) -> str:
    """Write Romanian's s and t with a cedilla, as text older than the right letters does."""
    return line.translate(_CEDILLAS)


def _respelled(sentence: str, words: Mapping[str, str], letters: Mapping[str, str]) -> str:
    """Replace each word: from the table, or letter by letter where it has no capital."""
    spelling = re.compile("|".join(sorted(letters, key=len, reverse=True)))

    def replacement(match: re.Match[str]) -> str:
        word = match[0]
        known = words.get(word.lower())
        if known:
            return known[0].upper() + known[1:] if word[0].isupper() else known
        return word if word[0].isupper() else spelling.sub(lambda found: letters[found[0]], word)

    return re.sub(r"[^\W\d_]+'?", replacement, sentence)


def _unspaced(sentence: str) -> str:
    """Write numbers and punctuation without the blanks that French has in them."""
    return re.sub(r" (?=[;:?!])", "", re.sub(r"(?<=\d) (?=\d{3}\b)", ".", sentence))


FROM_FRENCH: dict[str, Callable[[str], str]] = {"fr": str, "de": german, "ro": romanian}
"""Language -> what makes its text from French."""
