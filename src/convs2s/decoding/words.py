"""From a line to the tokens that a model reads, and unknown words of its output replaced."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from convs2s.data.vocabulary import SPECIAL_TOKENS, UNKNOWN
from convs2s.files.limits import LONGEST_SENTENCE
from convs2s.model_file import ModelDescription
from convs2s.text.bpe import Bpe
from convs2s.text.preparation import Preparation
from convs2s.text.truecase import Truecaser

Form = Literal["raw", "words", "tokens"]
"""What a line is: text as people write it, words that blanks separate, or the model's tokens."""


class Splitter:
    """Splits lines of one side, by the preparation, the truecaser and the codes of a model."""

    def __init__(self, description: ModelDescription, language: str, form: Form) -> None:
        self._form = form
        self._preparation = Preparation(description.preparation, language)
        self._truecase: Truecaser | None = None
        cased_words = description.truecasers.get(language)
        if cased_words is not None:
            self._truecase = Truecaser(cased_words)
        self._bpe: Bpe | None = None
        if description.bpe_codes is not None:
            self._bpe = Bpe(description.bpe_codes, description.splittable, description.glossaries)

    def __call__(self, line: str) -> list[str]:
        """Return the tokens of a line."""
        if self._form == "tokens":
            return line.split()
        words = self._preparation.prepare(line) if self._form == "raw" else line
        if self._truecase is not None:
            words = self._truecase(words)
        if self._bpe is not None:
            words = self._bpe.split(words)
        return words.split()


def most_tokens(positions: int | None) -> int:
    """Return how many tokens of a line a model with so many positions reads, ``</s>`` aside."""
    if positions is None:
        positions = LONGEST_SENTENCE
    return positions - 1


def cut_overlong(tokens: list[str], positions: int | None, number: int, text: str) -> list[str]:
    """Return what a model reads of the tokens of a line; say on the standard error what is cut."""
    most = most_tokens(positions)
    if len(tokens) > most:
        print(
            f"warning: line {number}, of {len(tokens):,} tokens, is cut: the model reads its "
            f"first {most:,} alone; split it into sentences: {text[:60]}...",
            file=sys.stderr,
        )
    return tokens[:most]


@dataclass(frozen=True)
class Replacement:
    """One replaced ``<unk>``; positions are of tokens, from 0."""

    position: int
    source_position: int
    source_word: str
    word: str
    by: Literal["dictionary", "copied"]


def replace_unknown(
    tokens: Sequence[str],
    alignment: Sequence[int],
    source_tokens: Sequence[str],
    dictionary: Mapping[str, str],
) -> tuple[list[str], list[Replacement]]:
    """Replace each ``<unk>`` of an output by the source word with the most attention (section 4.3).

    It is looked up in the alignment dictionary; a word that is not in it is copied. The source is
    as text, before unknown words became ``<unk>``; ``alignment`` has for each of the output's
    tokens a source position among real words.
    """
    replaced = list(tokens)
    replacements: list[Replacement] = []
    for position, token in enumerate(tokens):
        if token != SPECIAL_TOKENS[UNKNOWN]:
            continue
        source_position = alignment[position]
        source_word = source_tokens[source_position]
        known = dictionary.get(source_word)
        replacement = Replacement(
            position=position,
            source_position=source_position,
            source_word=source_word,
            word=source_word if known is None else known,
            by="copied" if known is None else "dictionary",
        )
        replaced[position] = replacement.word
        replacements.append(replacement)
    return replaced, replacements
