"""The small laws of both languages: plural, feminine, elision, contraction, articles.

They work on single words or on a whole sentence, and know neither the dictionary nor templates.
French is composed in its underlying form (``de le homme``, ``à les enfants``) and gets its surface
form at the end by ``french_surface``; English likewise by ``english_surface``.
"""

import re
from collections.abc import Sequence

ASPIRATED = (
    "hache",
    "hamac",
    "hamster",
    "hareng",
    "haricot",
    "harpe",
    "haut",
    "hérisson",
    "hibou",
)
"""Openings of the words that take no elision in spite of their h, the h aspiré."""

VOWELS_AND_H = tuple("aàâeéèêëiîïoôuùûœæh")
ENGLISH_VOWELS = "aeiou"


def opens_with_vowel(word: str) -> bool:
    """Say whether a French word opens with a vowel sound, so that ``le`` before it is ``l'``."""
    lowered = word.lower()
    return lowered.startswith(VOWELS_AND_H) and not lowered.startswith(ASPIRATED)


def elide(sentence: str) -> str:
    """Shorten le, la, de, que ... before a vowel sound: ``le homme`` becomes ``l'homme``."""

    def shorten(match: re.Match[str]) -> str:
        short, following = match.group(1)[:-1], match.group(2)
        return f"{short}'" if opens_with_vowel(following) else match.group(0)

    return re.sub(r"\b(le|la|de|que|ne|se|je|me)\s+(?=([\w'-]+))", shorten, sentence)


def contract(sentence: str) -> str:
    """Join de and à with the articles le and les: ``de le pain`` becomes ``du pain``."""
    for apart, joined in (
        ("de le", "du"),
        ("de les", "des"),
        ("à le", "au"),
        ("à les", "aux"),
    ):
        sentence = re.sub(rf"\b{apart}\b(?!')", joined, sentence)
    return sentence


def french_surface(sentence: str) -> str:
    """Return a French sentence with elisions, contractions and a capital at its start."""
    return capital(contract(elide(sentence)))


def english_surface(sentence: str) -> str:
    """Return an English sentence with ``an`` where it is due and a capital at its start."""
    return capital(re.sub(r"\ba (?=[aeio]|umb|unc|hour)", "an ", sentence))


def capital(sentence: str) -> str:
    """Return the sentence with its first letter raised."""
    return sentence[0].upper() + sentence[1:]


def agreeing(forms: Sequence[str], gender: str, plural: bool) -> str:
    """Choose among the forms masculine, feminine, masculine plural, feminine plural."""
    return forms[2 * plural + (gender == "f")]


def french_plural(word: str) -> str:
    """Return the regular plural of a French noun or adjective."""
    if word[-1] in "sxz":
        return word
    if word.endswith("eau"):
        return word + "x"
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + "s"


def french_feminine(adjective: str) -> str:
    """Return the regular feminine of a French adjective."""
    for ending, feminine in (("eux", "euse"), ("er", "ère")):
        if adjective.endswith(ending):
            return adjective.removesuffix(ending) + feminine
    return adjective if adjective.endswith("e") else adjective + "e"


def with_s(word: str) -> str:
    """Add the -s of an English plural noun or third person: box, boxes; carry, carries."""
    if word.endswith(("s", "x", "ch", "sh", "o")):
        return word + "es"
    if word.endswith("y") and word[-2] not in ENGLISH_VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def english_past(verb: str) -> str:
    """Return the regular past of an English verb."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in ENGLISH_VOWELS:
        return verb[:-1] + "ied"
    return verb + "ed"


def english_ing(verb: str) -> str:
    """Return the -ing form of an English verb: read, reading; write, writing; swim, swimming."""
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    one_syllable = len(re.findall(r"[aeiou]+", verb)) == 1
    if one_syllable and re.search(r"[^aeiou][aeiou][bdgmnprt]$", verb):
        return verb + verb[-1] + "ing"
    return verb + "ing"
