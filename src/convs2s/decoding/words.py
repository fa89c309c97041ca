"""From a line to the tokens that a model reads, and unknown words of its output replaced."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypedDict

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

    def __init__(
        self,
        description: ModelDescription,
        language: str,
        form: Form,
    ) -> None:
        self._form = form
        self._preparation = Preparation(description.preparation, language)
        self._then: list[Callable[[str], str]] = []  # what words go through
        cased_words = description.truecasers.get(language)
        if cased_words is not None:
            self._then.append(Truecaser(cased_words))
        if description.bpe_codes is not None:
            bpe = Bpe(description.bpe_codes, description.splittable, description.glossaries)
            self._then.append(bpe.split)

    def __call__(self, line: str) -> list[str]:
        """Return the tokens of a line."""
        if self._form == "tokens":
            return line.split()
        words = self._preparation.prepare(line) if self._form == "raw" else line
        for change in self._then:
            words = change(words)
        return words.split()


def most_tokens(positions: int | None) -> int:
    """Return how many tokens of a line a model with so many positions reads, ``</s>`` aside."""
    return (positions or LONGEST_SENTENCE) - 1


def cut_overlong(
    tokens: list[str],
    positions: int | None,
    number: int,
    text: str,
) -> list[str]:
    """Return what a model reads of the tokens of a line; say on the standard error what is cut."""
    most = most_tokens(positions)
    if len(tokens) > most:
        print(
            f"warning: line {number}, of {len(tokens):,} tokens, is cut: the model reads its "
            f"first {most:,} alone; split it into sentences: {text[:60]}...",
            file=sys.stderr,
        )
    return tokens[:most]


class Replacement(TypedDict):
    """One replaced ``<unk>``; positions are from 0, of tokens or of words."""

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
    tokens a source position among real words. What is replaced is told with positions of tokens.
    """
    replaced = list(tokens)
    replacements: list[Replacement] = []
    for position, token in enumerate(tokens):
        if token != SPECIAL_TOKENS[UNKNOWN]:
            continue
        source_position = alignment[position]
        source_word = source_tokens[source_position]
        replaced[position] = dictionary.get(source_word, source_word)
        replacement: Replacement = {
            "position": position,
            "source_position": source_position,
            "source_word": source_word,
            "word": replaced[position],
            "by": "dictionary" if source_word in dictionary else "copied",
        }
        replacements.append(replacement)
    return replaced, replacements
