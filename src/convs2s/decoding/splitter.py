"""From text to the tokens that a model reads, of either side."""

import sys
from collections.abc import Sequence
from typing import Literal

from convs2s.model_file import ModelDescription
from convs2s.text.bpe import Bpe
from convs2s.text.preparation import Preparation
from convs2s.text.truecase import Truecaser

Form = Literal["raw", "words", "tokens"]
"""What a line is: text as people write it, words that blanks separate, or the model's tokens."""


class Splitter:
    """Splits lines of one side."""

    def __init__(self, description: ModelDescription, language: str, form: Form) -> None:
        """Take the preparation, the truecaser and the codes from a model.

        Args:
            description: of the model that reads the tokens.
            language: of the lines.
            form: what they are.
        """
        self._preparation = Preparation(description.preparation, language)
        words = description.truecasers.get(language)
        self._truecase = None if words is None else Truecaser(words)
        self._bpe, self._form = bpe_of(description), form

    def __call__(self, line: str) -> list[str]:
        """Return the tokens of a line."""
        if self._form == "tokens":
            return line.split()
        words = self._preparation.prepare(line) if self._form == "raw" else line
        if self._truecase is not None:
            words = self._truecase(words)
        return (words if self._bpe is None else self._bpe.split(words)).split()


def bpe_of(description: ModelDescription) -> Bpe | None:
    """Return what splits a model's words, or None for a model of whole words."""
    if description.bpe_codes is None:
        return None
    allowed = description.splittable
    return Bpe(
        description.bpe_codes, None if allowed is None else set(allowed), description.glossaries
    )


def warn_if_overlong(tokens: Sequence[str], positions: int | None, text: str) -> None:
    """Say on the standard error that a line has more tokens than a model has positions."""
    if positions is not None and len(tokens) >= positions:
        print(
            f"warning: a line of {len(tokens)} tokens is longer than the model's "
            f"{positions} positions; the last ones share a position: {text[:60]}...",
            file=sys.stderr,
        )
