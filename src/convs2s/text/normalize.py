"""Normalize punctuation and replace non-printing characters as Moses of May 2017 did.

The rules are those of sacremoses. Where they differ from ``normalize-punctuation.perl`` and
``remove-non-printing-char.perl`` of mosesdecoder b8de7c352, this module corrects them.
"""

import re
from typing import Any

import regex  # type: ignore[import-untyped]

from convs2s.text.moses import Guarded

# The Perl script replaces these two quotation marks by a double quote. sacremoses replaces them by
# a single quote, even with perl_parity=True.
_DOUBLE_QUOTES = frozenset("‘‚")

# This rule of sacremoses moves full stops from before a closing quote to after it. Python's re
# tries the pattern again at every full stop of a run, which takes quadratic time: 20 s for 50,000
# full stops.
_STOPS_BEFORE_QUOTE = r'(\.+)"(\s*[^<])'
# The same rule in linear time. A match starts only at the first full stop of a run, or (\G) where
# the previous match ended.
_STOPS_BEFORE_QUOTE_LINEAR = r'(?:(?<!\.)|\G)(\.++)"(\s*[^<])'

# Languages for which sacremoses treats a comma next to a quote like the Perl script. Neither has a
# rule for it in Czech.
_KNOWN_COMMA_RULE = frozenset({"en", "de", "es", "fr", "cs", "cz"})

# Older Romanian text has s and t with a cedilla in place of s and t with a comma below.
_COMMA_BELOW = str.maketrans("ŞşŢţ", "ȘșȚț")
_PLAIN_LETTERS = str.maketrans("ȘșȚțĂăÂâÎî", "SsTtAaAaIi")

# Pattern of a slow rule -> a text that every line contains that the rule can change.
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
    """Normalizes punctuation as ``normalize-punctuation.perl -l LANGUAGE`` does."""

    def __init__(self, language: str) -> None:
        """Compile the rules of a language.

        ``language`` is a code of two letters. It decides the rules for commas next to quotes and
        for numbers.
        """
        self._rules: list[tuple[Any, str]] = []
        # The rules that can change an ASCII line.
        self._ascii_rules: list[tuple[Any, str]] = []
        for pattern, replacement in _rules(language):
            if pattern == _STOPS_BEFORE_QUOTE:
                rule = regex.compile(_STOPS_BEFORE_QUOTE_LINEAR, regex.ASCII)
            else:
                # In the Perl script, \d and \s match ASCII characters only.
                rule = re.compile(pattern, re.ASCII)
            if pattern in _NEEDLES:
                rule = Guarded(rule, _NEEDLES[pattern])
            self._rules.append((rule, replacement))
            # No rule inserts a non-ASCII character, so an ASCII line stays ASCII, and patterns with
            # a non-ASCII character never match it.
            if pattern.isascii():
                self._ascii_rules.append((rule, replacement))

    def __call__(self, line: str) -> str:
        """Return the line with normalized punctuation; spaces at its ends are kept."""
        # The Perl script applies the rules to the line with its line feed, and some rules need a
        # character after a quote, which may be the line feed.
        with_line_feed = line + "\n"
        rules = self._ascii_rules if line.isascii() else self._rules
        for rule, replacement in rules:
            with_line_feed = rule.sub(replacement, with_line_feed)
        return with_line_feed.removesuffix("\n")


def remove_non_printing(line: str) -> str:
    """Replace every control, format, private-use and unassigned character by a space.

    sacremoses deletes these characters, but ``remove-non-printing-char.perl`` writes a space.
    """
    # True for nearly all lines, and much faster than the search.
    if line.isprintable():
        return line
    return str(_NON_PRINTING.sub(" ", line))


def normalize_romanian(line: str) -> str:
    """Replace s and t with a cedilla by s and t with a comma below (``normalize-romanian.py``)."""
    return line.translate(_COMMA_BELOW)


def remove_romanian_diacritics(line: str) -> str:
    """Remove the Romanian diacritics of a normalized line (``remove-diacritics.py``)."""
    return line.translate(_PLAIN_LETTERS)


def _rules(language: str) -> list[tuple[str, str]]:
    """Return (pattern, replacement) pairs in the order in which the Perl script applies them."""
    # Not imported at the top: convs2s.text.moses must be the first module to import sacremoses.
    from sacremoses import MosesPunctNormalizer

    moses = MosesPunctNormalizer(lang=language, perl_parity=True)
    rules = []
    for pattern, text in moses.substitutions:
        replacement = '"' if pattern in _DOUBLE_QUOTES else text
        rules.append((pattern, replacement))
    if language not in _KNOWN_COMMA_RULE:
        # The Perl script applies the German rule to all other languages, just before the last rule,
        # which is the one for numbers.
        rules[-1:-1] = MosesPunctNormalizer.DE_ES_FR_QUOTATION_FOLLOWED_BY_COMMA
    return rules
