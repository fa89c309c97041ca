"""Vocabulary selection: the target types that an output layer scores for some source words.

Section 5.4 (Mi et al. 2016; L'Hostis et al. 2016). As in the authors' code these are the most
frequent types, the candidates of each source word by the alignment, and in training the
references' own. A shortlist is a function of the sentences alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain

import numpy as np
import numpy.typing as npt

from convs2s.data.vocabulary import END, SPECIAL_TOKENS, UNKNOWN, Vocabulary

Types = npt.NDArray[np.int64]
"""Target types (S,), ascending: the special tokens stand at their own indices."""


@dataclass(frozen=True, eq=False)
class Shortlist:
    """A table of candidates, with how many frequent types join them."""

    target_types: int  # size of the target vocabulary, whose order is by falling frequency
    frequent: int  # types that are always selected, special tokens not counted
    offsets: npt.NDArray[np.int64]  # (source types + 1,): where each one's candidates begin
    candidates: npt.NDArray[np.int32]  # target types, of source type s up to offsets[s + 1]

    @classmethod
    def from_words(
        cls,
        table: Iterable[tuple[str, Sequence[str]]],
        source: Vocabulary,
        target: Vocabulary,
        *,
        frequent: int,
        most: int,
    ) -> "Shortlist":
        """Number a table of source words, each with its candidates, the best first.

        Words that a vocabulary does not have are left out, as the model reads ``<unk>``.
        ``frequent`` types are always selected, and of each source word ``most`` candidates.
        """
        rows: list[list[int]] = [[] for _ in range(len(source))]
        for word, words in table:
            if word in source:
                known = [index for index in target.encode(words) if index not in (UNKNOWN, END)]
                rows[source.encode([word])[0]] = known[:most]
        lengths = [len(row) for row in rows]
        offsets = np.cumsum([0, *lengths], dtype=np.int64)
        candidates = np.fromiter(chain.from_iterable(rows), np.int32)
        return cls(len(target), frequent, offsets, candidates)

    def __eq__(self, other: object) -> bool:
        """Whether both select the same types for every sentence."""
        if not isinstance(other, Shortlist):
            return False
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def types(self, source: npt.ArrayLike, target: npt.ArrayLike = ()) -> Types:
        """Select for source indices of any shape, and with ``target`` those types as well."""
        chosen = np.zeros(self.target_types, bool)
        chosen[: len(SPECIAL_TOKENS) + self.frequent] = True
        for word in np.unique(np.asarray(source, np.int64)):
            start = self.offsets[word]
            end = self.offsets[word + 1]
            chosen[self.candidates[start:end]] = True
        chosen[np.asarray(target, np.int64)] = True
        return np.flatnonzero(chosen)

    def of_sentences(self, sources: Sequence[Sequence[int]]) -> tuple[Types, npt.NDArray[np.bool_]]:
        """Select for each of B sentences on its own, so that none depends on the others.

        Returned are the types (S,) that any of them may use, and (B, S) those that each may not.
        """
        each = [self.types(source) for source in sources]
        union = np.unique(np.concatenate(each))  # (S,)
        mask = np.ones((len(each), len(union)), bool)  # (B, S)
        for row, types in zip(mask, each, strict=True):
            row[np.searchsorted(union, types)] = False
        return union, mask


def places_of(types: Types, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where tokens stand among the selected types; ``<unk>`` for those that do not."""
    places = np.searchsorted(types, tokens)
    last = len(types) - 1  # a token behind all types has the place after it
    inside = types[np.minimum(places, last)] == tokens
    return np.where(inside, places, UNKNOWN)
