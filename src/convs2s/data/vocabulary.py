"""Vocabularies: which types a model knows, and their numbers."""

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
"""Indices of the special tokens; ``</s>`` ends both sides and is the decoder's first input."""

SPECIAL_TOKENS = ("<pad>", "</s>", "<unk>")
HEADER = "type\tcount"


class Vocabulary:
    """A bijection between types and the indices 0 .. size-1; the special tokens come first."""

    def __init__(self, types: Sequence[str]) -> None:
        """Number ``types`` (special tokens not among them) from ``len(SPECIAL_TOKENS)`` on."""
        self.tokens = (*SPECIAL_TOKENS, *types)
        self._index = {token: index for index, token in enumerate(types, len(SPECIAL_TOKENS))}
        if len(self._index) + len(SPECIAL_TOKENS) != len(self.tokens):
            raise UserError("a vocabulary holds a type twice")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._index

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the tokens' indices, ``<unk>`` for unknown ones, with ``</s>`` at the end.

        A token of the text that is spelt like a special token is unknown: text cannot forge one.
        """
        indices = [self._index.get(token, UNKNOWN) for token in tokens]
        indices.append(END)
        return indices

    def decode(self, indices: Iterable[int]) -> list[str]:
        """Return the tokens of the indices."""
        return [self.tokens[index] for index in indices]


def most_frequent(
    counts: Iterable[tuple[str, int]], size: int | None, minimum_count: int = 1
) -> list[tuple[str, int]]:
    """Return at most ``size`` types by falling count, equal counts by code point.

    Words of the text that are spelt like a special token are left out: they are unknown words.
    """
    kept = []
    for token, count in counts:
        if count >= minimum_count and token not in RESERVED_WORDS:
            kept.append((token, count))
    kept.sort(key=lambda entry: (-entry[1], entry[0]))
    return kept[:size]


_COUNT = re.compile("[0-9]{1,18}")


def write_counts(path: str | Path, types: Iterable[tuple[str, int]]) -> None:
    """Write types and counts as a table with a header, one type a line, in the order given."""
    rows = (f"{token}\t{count}" for token, count in types)
    write_lines(path, chain([HEADER], rows))


def read_counts(path: str | Path) -> Iterator[tuple[str, int]]:
    """Yield a vocabulary's types and counts in their order; a UserError names a bad line."""
    for number, (token, count) in enumerate(read_rows(path, HEADER), start=2):
        if not _COUNT.fullmatch(count):
            raise UserError(f"{path}:{number}: expected the count of {token!r}, found {count!r}")
        yield token, int(count)


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a table of ``write_counts``; a UserError says that it is none, or has a type twice."""
    types = [token for token, _ in read_counts(path)]
    try:
        return Vocabulary(types)
    except UserError as error:
        raise UserError(f"{path}: {error}: build it again") from None
