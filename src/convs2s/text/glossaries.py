"""Patterns of words that BPE leaves whole, as subword-nmt has them.

A pattern may come from a stranger's model file. Python's own ``re`` can take longer than anybody
lives for a word of thirty letters; here a search that takes more than a moment is given up.
"""

from collections.abc import Iterable
from itertools import pairwise

import regex  # type: ignore[import-untyped]

from convs2s.errors import UserError
from convs2s.files.limits import GLOSSARY_SECONDS


class Glossaries:
    """What subword-nmt asks about words: whether one stays whole, and which of its parts do."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile the patterns.

        Raises:
            UserError: one of them is no regular expression.
        """
        self._patterns = [_Pattern(pattern) for pattern in patterns]

    def match(self, word: str) -> bool:
        """Return whether a word is one that a pattern matches as a whole.

        Raises:
            UserError: a pattern takes too long.
        """
        return any(pattern.is_whole(word) for pattern in self._patterns)

    def isolate(self, word: str) -> list[str]:
        """Return the parts of a word, in order: what a pattern matches is a part of its own.

        Raises:
            UserError: a pattern takes too long.
        """
        parts = [word]
        for pattern in self._patterns:
            parts = [inner for part in parts for inner in pattern.split(part)]
        return parts


class _Pattern:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        try:
            # No group around it: the pattern's own groups and backreferences keep their numbers.
            self._whole = regex.compile(f"(?:{pattern})$")
            self._part = regex.compile(f"(?:{pattern})")
        except (regex.error, RecursionError) as fault:
            raise UserError(
                f"glossaries: {pattern[:80]!r} is no regular expression: {fault}"
            ) from None

    def is_whole(self, word: str) -> bool:
        try:
            return self._whole.match(word, timeout=GLOSSARY_SECONDS) is not None
        except TimeoutError:
            raise self._too_slow(word) from None

    def split(self, word: str) -> list[str]:
        if self.is_whole(word):
            return [word]
        try:
            found = self._part.finditer(word, timeout=GLOSSARY_SECONDS)
            cuts = [place for match in found for place in match.span()]
        except TimeoutError:
            raise self._too_slow(word) from None
        return [word[start:end] for start, end in pairwise([0, *cuts, len(word)]) if start < end]

    def _too_slow(self, word: str) -> UserError:
        return UserError(
            f"glossaries: {self._text[:80]!r} takes more than {GLOSSARY_SECONDS:g} s on "
            f"{word[:40]!r}: write it without repetitions inside repetitions"
        )
