"""Substitutions that cost next to nothing where there is nothing to substitute."""

import re
from typing import Any


class Guarded:
    """A pattern that is only tried on text which holds what each of its matches holds.

    Most of Moses' rules are about a sign that few lines have. Python finds a fixed text much faster
    than a pattern that begins with anything else.
    """

    def __init__(self, pattern: "re.Pattern[str] | Any", needle: str) -> None:
        """Take a pattern, and a text without which a substitution changes nothing."""
        self._pattern = pattern
        self._needle = needle

    def sub(self, replacement: str, text: str) -> str:
        """Return the text with every match replaced, as the pattern's own ``sub``."""
        if self._needle not in text:
            return text
        replaced: str = self._pattern.sub(replacement, text)
        return replaced


class Blanks:
    """Stands for a pattern of blanks where each run becomes one space and the ends are stripped."""

    @staticmethod
    def sub(replacement: str, text: str) -> str:
        """Return the text's words joined by the replacement."""
        return replacement.join(text.split())
