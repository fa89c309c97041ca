"""Detokenize as ``detokenizer.perl`` of Moses does.

sacremoses has a detokenizer, too, but it differs from the script in Czech, Finnish, Irish and
English, and splits words at blanks other than the space. The rules here are written anew. Where
they differ from the script on purpose, docs/preparation.md says so.
"""

import re

import regex  # type: ignore[import-untyped]

_CHARACTER_OF_ENTITY = {
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "quot": '"',
    "apos": "'",
    "bar": "|",
    "#124": "|",
    "bra": "[",
    "#91": "[",
    "ket": "]",
    "#93": "]",
}
_ENTITY = re.compile(f"&({'|'.join(_CHARACTER_OF_ENTITY)});")

# Words of Chinese, Japanese and Korean begin or end with one of these characters.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua840-\ua87f\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff65-\uffdc"
    "\U00020000-\U0002ffff]"
)
_OPENING = regex.compile(r"[\p{Sc}(\[{¿¡]+")
_CLOSING = re.compile(r"[,.?!:;\\%})\]]+")
_QUOTES = re.compile("['\"„“`]+")
_DOUBLE_QUOTES = re.compile("[„“]+")

_SPACED_IN_FRENCH = frozenset("?!:;\\%")
_ENGLISH_CONTRACTION = regex.compile(r"'\p{Alphabetic}")
_ENDS_IN_LETTER_OR_DIGIT = regex.compile(r"[\p{Alphabetic}\p{Nd}]$")
_ELISION = regex.compile(r"\p{Alphabetic}'$")
_ENDS_IN_LETTER = regex.compile(r"\p{Alphabetic}$")
_STARTS_WITH_LETTER = regex.compile(r"\p{Alphabetic}")
_DIGITS = re.compile("[0-9]+")
_DECIMAL_MARKS = frozenset(".,")
_CZECH_DASHES = frozenset("-–")

_FINNISH_ENDING = re.compile(
    "([NnAaÄä]|[UuYyAaÄäÖö]n|[Hh](un|yn|an|än|ön)|[Ss]een|[Ss]s[aä]|[Ss]t[aä]|[Ll]l[aä]|[Ll]t[aä]"
    "|[Ll]le|[Kk]s[ie]|[Tt]ta|[Ii]ne)(ni|si|mme|nne|nsa)?(ko|kö|han|hän|pa|pä|kaan|kään|kin)?"
)
"""A case ending after an abbreviation and a colon, such as the "n" of "EU:n"."""


class Detokenizer:
    """Detokenizes as ``detokenizer.perl -q -l LANGUAGE`` does."""

    def __init__(self, language: str) -> None:
        """Take the two-letter code of the language, which selects further rules."""
        self._language = language

    def __call__(self, line: str) -> str:
        """Return the text of a line of words that are joined by spaces.

        XML entities are replaced by their characters and ``@-@`` by a hyphen. Two spaces in a row
        have an empty word between them, which separates its neighbours.
        """
        plain = f" {line} ".replace(" @-@ ", "-")
        if "&" in plain:
            plain = _ENTITY.sub(_character, plain)
        # Like the script's list of words, this one begins with an empty word.
        words = plain.rstrip(" ").split(" ")
        text: list[str] = []
        # What separates the next word from the one before it.
        separator = " "
        open_quotes: set[str] = set()
        for position, word in enumerate(words):
            joins_before, joins_after = self._joins(words, position, open_quotes)
            # In French, a space comes before these marks, although they join the word before.
            if self._language == "fr" and word in _SPACED_IN_FRENCH:
                text.append(" ")
            elif not joins_before:
                text.append(separator)
            is_ending = self._language == "fi" and _is_finnish_ending(words, position)
            text.append(word.lower() if is_ending else word)
            separator = "" if joins_after else " "
        single_spaced = re.sub(" +", " ", "".join(text))
        return single_spaced.removeprefix(" ").removesuffix(" ")

    def _joins(
        self,
        words: list[str],
        position: int,
        open_quotes: set[str],
    ) -> tuple[bool, bool]:
        """Return whether a word joins the word before it without a space, and the one after it.

        ``open_quotes`` are the kinds of quotation marks that are open. If the word is a quotation
        mark, the set is changed.
        """
        word = words[position]
        before = _at(words, position - 1)
        if _CJK.match(word):
            # The script of 2017 joins Korean words as well, although Korean has spaces.
            joins = _CJK.match(before[-1:]) is not None and self._language != "ko"
            return joins, False
        if _OPENING.fullmatch(word):
            return False, True
        if _CLOSING.fullmatch(word):
            return True, False
        if _QUOTES.fullmatch(word):
            return self._quote_joins(word, before, open_quotes)
        match self._language:
            case "en":
                if not _ENGLISH_CONTRACTION.match(word):
                    return False, False
                return _ENDS_IN_LETTER_OR_DIGIT.search(before) is not None, False
            case "fr" | "it":
                if not _ELISION.search(word):
                    return False, False
                after = _at(words, position + 1)
                return False, _STARTS_WITH_LETTER.match(after) is not None
            case "cs":
                return _czech_joins(words, position)
            case "fi":
                return _is_finnish_ending(words, position), False
            case _:
                return False, False

    def _quote_joins(
        self,
        word: str,
        before: str,
        open_quotes: set[str],
    ) -> tuple[bool, bool]:
        """Open or close a quotation, and return what `_joins` does for the quotation mark."""
        kind = '"' if _DOUBLE_QUOTES.fullmatch(word) else word
        # In Czech, „ always opens a quotation, and “ always closes one.
        if self._language == "cs" and word == "„":
            open_quotes.discard(kind)
        if self._language == "cs" and word == "“":
            open_quotes.add(kind)
        if kind in open_quotes:
            open_quotes.remove(kind)
            return True, False
        if self._language == "en" and word == "'" and before.endswith("s"):
            # The possessive of a plural, as in "the Joneses' house".
            return True, False
        open_quotes.add(kind)
        return False, True


def _character(entity: re.Match[str]) -> str:
    return _CHARACTER_OF_ENTITY[entity[1]]


def _at(words: list[str], position: int) -> str:
    """Return a word of a line, or the empty word before its beginning and after its end."""
    return words[position] if 0 <= position < len(words) else ""


def _is_finnish_ending(words: list[str], position: int) -> bool:
    follows_colon = _at(words, position - 1).endswith(":")
    return follows_colon and _FINNISH_ENDING.fullmatch(words[position]) is not None


def _czech_joins(words: list[str], position: int) -> tuple[bool, bool]:
    """Return what `Detokenizer._joins` does for a Czech word that is no punctuation.

    "3 , 5" is a number, and "je - li" and "e - mail" are words with a hyphen. As in the script, a
    word with a hyphen is joined only if another word follows it.
    """
    word = words[position]
    before = _at(words, position - 1)
    if word in _CZECH_DASHES:
        after = _at(words, position + 1).lower()
        is_in_word = after == "li" or after.startswith("mail")
        has_stem = _ENDS_IN_LETTER.search(before) and not _CJK.match(before)
        is_followed = position + 2 < len(words)
        joins = bool(is_in_word and has_stem and is_followed)
        return joins, joins
    if before in _DECIMAL_MARKS and _DIGITS.fullmatch(word):
        whole = _at(words, position - 2)
        return _DIGITS.fullmatch(whole) is not None, False
    return False, False
