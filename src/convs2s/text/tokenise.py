"""Tokenization and detokenization as Moses of May 2017 did them, by sacremoses.

sacremoses 0.2.0 equals ``tokenizer.perl`` and ``detokenizer.perl`` of mosesdecoder b8de7c352 on
real text in English, German, French and Romanian; docs/preparation.md says where it does not.
"""

import re

from sacremoses import MosesDetokenizer, MosesTokenizer

# Perl's white space does not include U+001C to U+001F, Python's does: delete what Perl deletes
# before sacremoses can split a word there.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")
_LOWER = frozenset(MosesTokenizer.IsLower)
_ALPHA = frozenset(MosesTokenizer.IsAlpha)


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
        self._moses = MosesTokenizer(language)
        # The library looks characters and abbreviations up in strings and lists, built per call.
        self._moses.NONBREAKING_PREFIXES = frozenset(self._moses.NONBREAKING_PREFIXES)
        self._moses.islower = _LOWER.issuperset
        self._moses.isanyalpha = _has_letter

    def __call__(self, line: str) -> str:
        """Return the line's tokens, joined by single spaces."""
        tokens: str = self._moses.tokenize(
            _CONTROLS.sub("", line),
            aggressive_dash_splits=self._aggressive,
            escape=self._escape,
            return_str=True,
        )
        return tokens


class Detokenizer:
    """``detokenizer.perl -q -l LANGUAGE``: it also takes XML entities and ``@-@`` back."""

    def __init__(self, language: str) -> None:
        """Prepare for a language, given by its two-letter code."""
        self._moses = MosesDetokenizer(language)

    def __call__(self, tokens: str) -> str:
        """Return the text of tokens that are joined by spaces."""
        text: str = self._moses.detokenize([tokens])
        return text


def _has_letter(text: str) -> bool:
    """Say whether any character is alphabetic in Moses' tables."""
    return not _ALPHA.isdisjoint(text)
