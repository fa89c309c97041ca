"""Punctuation normalization and removal of non-printing characters, as Moses of May 2017 did them.

The rules are sacremoses' own, repaired where they differ from ``normalize-punctuation.perl`` and
``remove-non-printing-char.perl`` of mosesdecoder b8de7c352.
"""

import re
from typing import Any

import regex  # type: ignore[import-untyped]

from convs2s.text.moses import Guarded

# Perl writes both as a double quote; sacremoses, also with perl_parity, as a single one.
_DOUBLE_QUOTES = frozenset("‘‚")
# The full stops before a closing quote go behind it. Python's re would try the pattern anew at
# every full stop of a run (quadratic: 20 s for 50,000 of them); this form starts at the first one
# only, or (\G) where the replacement before ended.
_STOPS_BEFORE_QUOTE = r'(\.+)"(\s*[^<])'
_STOPS_BEFORE_QUOTE_LINEAR = r'(?:(?<!\.)|\G)(\.++)"(\s*[^<])'
# The languages for which sacremoses chooses the comma and quote rule as Perl does (Czech: none).
_KNOWN_COMMA_RULE = frozenset({"en", "de", "es", "fr", "cs", "cz"})

# Unicode's older letters with a cedilla stand for Romanian's with a comma.
_COMMA_BELOW = str.maketrans("ŞşŢţ", "ȘșȚț")
_PLAIN_LETTERS = str.maketrans("ȘșȚțĂăÂâÎî", "SsTtAaAaIi")

# Of the rules that are slow to find nothing: what a line must hold for them to change it.
_NEEDLES = {
    r" +": "  ",
    r"\) ([.!:?;,])": ") ",
    r"(\d) %": " %",
    "([a-zA-Z])‘([a-zA-Z])": "‘",
    "([a-zA-Z])’([a-zA-Z])": "’",
    r'"([,.]+)': '"',
    _STOPS_BEFORE_QUOTE: '."',
    "(\\d)\u00a0(\\d)": "\u00a0",
}

_NON_PRINTING = regex.compile(r"\p{C}")


class Normalizer:
    """``normalize-punctuation.perl -l LANGUAGE``, its patterns compiled once."""

    def __init__(self, language: str) -> None:
        """Compile the rules of a language (two letters), which decides on commas and numbers."""
        self._rules: list[tuple[Any, str]] = []
        self._ascii_rules: list[tuple[Any, str]] = []
        for pattern, text in _rules(language):
            if pattern == _STOPS_BEFORE_QUOTE:
                rule = regex.compile(_STOPS_BEFORE_QUOTE_LINEAR, regex.ASCII)
            else:  # the Perl script's digits and blanks are those of ASCII
                rule = re.compile(pattern, re.ASCII)
            if pattern in _NEEDLES:
                rule = Guarded(rule, _NEEDLES[pattern])
            self._rules.append((rule, text))
            # No rule puts a character beyond ASCII into a line: those about one can be skipped.
            if pattern.isascii():
                self._ascii_rules.append((rule, text))

    def __call__(self, line: str) -> str:
        """Return the line with its punctuation normalized; outer spaces stay."""
        # Perl works on the line with its end: a rule may ask for any character after a quote.
        ended = line + "\n"
        rules = self._ascii_rules if line.isascii() else self._rules
        for rule, text in rules:
            ended = rule.sub(text, ended)
        return ended.removesuffix("\n")


def remove_non_printing(line: str) -> str:
    """Replace every control, format, private-use and unassigned character by a space.

    sacremoses deletes them; ``remove-non-printing-char.perl`` does not.
    """
    if line.isprintable():  # true of nearly every line, and much cheaper than the search
        return line
    return str(_NON_PRINTING.sub(" ", line))


def normalize_romanian(line: str) -> str:
    """Write s and t with a comma below where there is a cedilla (``normalize-romanian.py``)."""
    return line.translate(_COMMA_BELOW)


def remove_romanian_diacritics(line: str) -> str:
    """Write plain letters for a normalized line's Romanian ones (``remove-diacritics.py``)."""
    return line.translate(_PLAIN_LETTERS)


def _rules(language: str) -> list[tuple[str, str]]:
    """Return (pattern, replacement) in the order in which Perl applies them."""
    # Here and not at the top, as convs2s.text.moses must load sacremoses first.
    from sacremoses import MosesPunctNormalizer

    moses = MosesPunctNormalizer(lang=language, perl_parity=True)
    rules = []
    for pattern, text in moses.substitutions:
        rules.append((pattern, '"' if pattern in _DOUBLE_QUOTES else text))
    if language not in _KNOWN_COMMA_RULE:
        # All other languages follow the German rule, which comes before the last one (numbers).
        rules[-1:-1] = MosesPunctNormalizer.DE_ES_FR_QUOTATION_FOLLOWED_BY_COMMA
    return rules
