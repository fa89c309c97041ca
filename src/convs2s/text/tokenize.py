"""Tokenization and detokenization as Moses of May 2017 did them, by sacremoses.

sacremoses 0.2.0 equals ``tokenizer.perl`` and ``detokenizer.perl`` of mosesdecoder b8de7c352 on
real text in English, German, French and Romanian; docs/preparation.md says where it does not.
"""

import re
from typing import Any, ClassVar

from convs2s.text.moses import MosesDetokenizer, MosesTokenizer
from convs2s.text.substitution import Blanks, Guarded

# Perl's white space does not include U+001C to U+001F, Python's does: delete what Perl deletes
# before sacremoses can split a word there.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")
_LOWER = frozenset(MosesTokenizer.IsLower)
_ALPHA = frozenset(MosesTokenizer.IsAlpha)
_DIGITS = frozenset("0123456789")

_Rule = tuple[Any, str]


def _guarded(rule: _Rule, needle: str) -> _Rule:
    pattern, replacement = rule
    return Guarded(pattern, needle), replacement


class Tokenizer:
    """``tokenizer.perl -q -l LANGUAGE``, with ``-a`` and without ``-no-escape`` by default."""

    def __init__(self, language: str, *, aggressive: bool = True, escape: bool = True) -> None:
        """Load the language's abbreviations.

        Args:
            language: two-letter code; an unknown one gets the English abbreviations, as in Moses.
            aggressive: split hyphenated words, ``low-cost`` to ``low @-@ cost``.
            escape: write ``& | < > ' " [ ]`` as XML entities.
        """
        self._aggressive = aggressive
        self._escape = escape
        self._moses = _FastTokenizer(language)

    def __call__(self, line: str) -> str:
        """Return the line's words, joined by single spaces."""
        words: str = self._moses.tokenize(
            _CONTROLS.sub("", line),
            aggressive_dash_splits=self._aggressive,
            escape=self._escape,
            return_str=True,
        )
        return words


class _FastTokenizer(MosesTokenizer):  # type: ignore[misc]
    """The library's tokenizer with the same output in half the time."""

    DEDUPLICATE_SPACE = Blanks, " "  # both times, the library strips the ends next
    COMMA_SEPARATE_1 = _guarded(MosesTokenizer.COMMA_SEPARATE_1, ",")
    COMMA_SEPARATE_2 = _guarded(MosesTokenizer.COMMA_SEPARATE_2, ",")
    COMMA_SEPARATE_3 = _guarded(MosesTokenizer.COMMA_SEPARATE_3, ",")
    AGGRESSIVE_HYPHEN_SPLIT = _guarded(MosesTokenizer.AGGRESSIVE_HYPHEN_SPLIT, "-")
    MULTIDOT_RUN = Guarded(MosesTokenizer.MULTIDOT_RUN, "..")
    MULTIDOT_MARKER = Guarded(MosesTokenizer.MULTIDOT_MARKER, "MULTI")
    ENGLISH_SPECIFIC_APOSTROPHE: ClassVar = [
        _guarded(rule, "'") for rule in MosesTokenizer.ENGLISH_SPECIFIC_APOSTROPHE
    ]
    FR_IT_SPECIFIC_APOSTROPHE: ClassVar = [
        _guarded(rule, "'") for rule in MosesTokenizer.FR_IT_SPECIFIC_APOSTROPHE
    ]

    def __init__(self, language: str) -> None:
        super().__init__(language)
        # Looked up for each word that ends in a full stop.
        self._numeric_only = frozenset(self.NUMERIC_ONLY_PREFIXES)
        self._nonbreaking = frozenset(self.NONBREAKING_PREFIXES) - self._numeric_only

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        """Separate the full stop of each word that is no abbreviation."""
        words = text.split()
        for index, word in enumerate(words):
            if word[-1] == "." and len(word) > 1:
                following = words[index + 1] if index + 1 < len(words) else ""
                if not self._keeps_full_stop(word[:-1], following):
                    words[index] = word[:-1] + " ."
        return " ".join(words)

    def _keeps_full_stop(self, prefix: str, following: str) -> bool:
        return (
            ("." in prefix and not _ALPHA.isdisjoint(prefix))
            or prefix in self._nonbreaking
            or following[:1] in _LOWER
            or (prefix in self._numeric_only and following[:1] in _DIGITS)
        )


class Detokenizer:
    """``detokenizer.perl -q -l LANGUAGE``: it also takes XML entities and ``@-@`` back."""

    def __init__(self, language: str) -> None:
        """Prepare for a language, given by its two-letter code."""
        self._moses = MosesDetokenizer(language)

    def __call__(self, words: str) -> str:
        """Return the text of words that are joined by spaces."""
        text: str = self._moses.detokenize([words])
        return text
