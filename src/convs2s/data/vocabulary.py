"""Vocabularies: the types that a model knows, with an index for each."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import read_rows, write_lines
from convs2s.text.reserved_words import RESERVED_WORDS

PADDING = 0
END = 1
UNKNOWN = 2
"""Indices of the special tokens. ``</s>`` ends each sentence, and is the decoder's first input."""

SPECIAL_TOKENS = ("<pad>", "</s>", "<unk>")
HEADER = "type\tcount"
"""The first line of a table of counts."""

# At most 18 digits, so that a count fits into 64 bits.
_COUNT = re.compile("[0-9]{1,18}")


class Vocabulary:
    """A bijection between types and the indices 0 .. size - 1, with the special tokens first.

    ``token in vocabulary`` is False for the special tokens.
    """

    def __init__(self, types: Sequence[str]) -> None:
        """Number ``types`` in their order, after the special tokens.

        ``types`` must not contain the special tokens.

        Raises:
            UserError: a type occurs twice.
        """
        self.tokens = (*SPECIAL_TOKENS, *types)
        self._index = {
            token: index for index, token in enumerate(types, len(SPECIAL_TOKENS))
        }
        if len(self._index) < len(types):
            raise UserError("a type occurs twice in the vocabulary")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._index

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the indices of tokens, and then that of ``</s>``.

        A token outside of the vocabulary gets the index of ``<unk>``. This is also true of a token
        that is spelled like a special token, so that a text cannot contain special tokens.
        """
        indices = [self._index.get(token, UNKNOWN) for token in tokens]
        indices.append(END)
        return indices

    def decode(self, indices: Iterable[int]) -> list[str]:
        """Return the tokens with these indices."""
        return [self.tokens[index] for index in indices]


def most_frequent(
    counts: Iterable[tuple[str, int]],
    size: int | None,
    minimum_count: int = 1,
) -> list[tuple[str, int]]:
    """Return the most frequent types and their counts, sorted by falling count.

    Types with equal counts are sorted by code point. At most ``size`` types are returned (None sets
    no limit), and only those with at least ``minimum_count`` occurrences. Words that are spelled
    like special tokens are left out, because they are read as unknown words.
    """
    kept = []
    for token, count in counts:
        if count >= minimum_count and token not in RESERVED_WORDS:
            kept.append((token, count))
    kept.sort(key=lambda entry: (-entry[1], entry[0]))
    return kept[:size]


def write_counts(path: str | Path, types: Iterable[tuple[str, int]]) -> None:
    """Write (type, count) pairs as a table with a header, in the given order."""
    rows = (f"{token}\t{count}" for token, count in types)
    write_lines(path, chain([HEADER], rows))


def read_counts(path: str | Path) -> Iterator[tuple[str, int]]:
    """Yield the (type, count) pairs of a table that `write_counts` wrote.

    Raises:
        UserError: a line is malformed. The message names it.
    """
    for number, (token, count) in enumerate(read_rows(path, HEADER), start=2):
        if not _COUNT.fullmatch(count):
            raise UserError(
                f"{path}:{number}: expected the count of {token!r}, found {count!r}"
            )
        yield token, int(count)


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary from a table that `write_counts` wrote.

    Raises:
        UserError: a line is malformed, or a type occurs twice.
    """
    types = [token for token, _ in read_counts(path)]
    try:
        return Vocabulary(types)
    except UserError as error:
        raise UserError(f"{path}: {error}: build it again") from None
