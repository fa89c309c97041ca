"""Split a line into the tokens that a model reads, and replace unknown words of its output."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypedDict

from convs2s.data.vocabulary import SPECIAL_TOKENS, UNKNOWN, Vocabulary
from convs2s.files.limits import LONGEST_SENTENCE
from convs2s.model_file import ModelDescription
from convs2s.text.bpe import Bpe
from convs2s.text.preparation import Preparation
from convs2s.text.truecase import Truecaser

Form = Literal["raw", "words", "tokens"]
"""The form of a line: raw text, words separated by blanks, or the model's tokens."""


class Splitter:
    """Splits lines of one side into tokens, with a model's preparation, truecaser and BPE codes."""

    def __init__(
        self,
        description: ModelDescription,
        language: str,
        form: Form,
    ) -> None:
        self._form = form
        self._preparation = Preparation(description.preparation, language)
        # Functions of a line's words, separated by blanks. They are applied in this order.
        self._steps: list[Callable[[str], str]] = []
        cased_words = description.truecasers.get(language)
        if cased_words is not None:
            self._steps.append(Truecaser(cased_words))
        if description.bpe_codes is not None:
            bpe = Bpe(
                description.bpe_codes, description.splittable, description.glossaries
            )
            self._steps.append(bpe.split)

    def __call__(self, line: str) -> list[str]:
        """Return the tokens of a line."""
        if self._form == "tokens":
            return line.split()
        text = self._preparation.prepare(line) if self._form == "raw" else line
        for step in self._steps:
            text = step(text)
        return text.split()


def most_tokens(positions: int | None) -> int:
    """Return the maximum number of tokens in a line, without ``</s>``.

    ``positions`` is the model's number of positions. If it is None, the model has no such limit,
    and ``LONGEST_SENTENCE`` applies.
    """
    return (positions or LONGEST_SENTENCE) - 1


def cut_overlong(
    tokens: list[str],
    limit: int,
    number: int,
    text: str,
) -> list[str]:
    """Return the first ``limit`` tokens of a line, which are those that the model can read.

    If the line is cut, print a warning with its ``number`` and the beginning of its ``text``.
    """
    if len(tokens) > limit:
        print(
            f"warning: line {number} has {len(tokens):,} tokens and is cut, because the model "
            f"reads only the first {limit:,}; split it into sentences: {text[:60]}...",
            file=sys.stderr,
        )
    return tokens[:limit]


def held_positions(tokens: Sequence[str], vocabulary: Vocabulary) -> list[int]:
    """Return the positions of the tokens of each word that has a token in the vocabulary.

    ``tokens`` are BPE tokens. A word without a token in the vocabulary, such as an emoji, consists
    of characters that the model has never seen.
    """
    held: list[int] = []
    word: list[int] = []  # positions of the tokens of the current word
    for position, token in enumerate(tokens):
        word.append(position)
        is_last = position == len(tokens) - 1
        if token.endswith("@@") and not is_last:
            continue
        if any(tokens[index] in vocabulary for index in word):
            held += word
        word = []
    return held


def put_back(
    tokens: Sequence[str],
    alignment: Sequence[int],
    held: Sequence[int],
    source_length: int,
) -> tuple[list[str], list[int]]:
    """Put an ``<unk>`` into an output for each source token that the search has not read.

    The ``<unk>`` stands after the output word that is aligned with the nearest earlier source
    token, or at the start if no output word is aligned with an earlier one. If the search has read
    no later source token, the ``<unk>`` stands at the end.

    Args:
        tokens: the output.
        alignment: for each token of the output, an index into ``held``.
        held: the positions of the source tokens that were read, in ascending order.
        source_length: number of source tokens.

    Returns:
        The output and its alignment, with positions among all source tokens.
    """
    whole = list(tokens)
    places = [held[index] for index in alignment]
    for position in sorted(set(range(source_length)).difference(held)):
        index = len(whole)
        if held and position < held[-1]:
            nearest = max((place for place in places if place < position), default=None)
            # Behind the last token that is aligned with `nearest`.
            index = 0 if nearest is None else len(places) - places[::-1].index(nearest)
            # The <unk> must not split a word of several tokens.
            while 0 < index < len(whole) and whole[index - 1].endswith("@@"):
                index += 1
        whole.insert(index, SPECIAL_TOKENS[UNKNOWN])
        places.insert(index, position)
    return whole, places


class Replacement(TypedDict):
    """One replaced ``<unk>``. Positions count from 0, in tokens or in words."""

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
    """Replace each ``<unk>`` of an output, using the source word with the most attention.

    The replacement is the source word's entry in the alignment dictionary. A source word without
    an entry is copied (section 4.3).

    Args:
        tokens: the output.
        alignment: for each token of the output, the position in ``source_tokens`` with the most
            attention, ``</s>`` and padding excluded.
        source_tokens: the source as it was before its unknown words became ``<unk>``.
        dictionary: source word -> target word.

    Returns:
        The output after the replacement, and the list of replacements, with positions in tokens.
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
