"""Vocabulary selection: restrict the output layer to some target types per batch of sentences.

Paper, section 5.4 (Mi et al. 2016; L'Hostis et al. 2016). As in the authors' code, the selected
types are the most frequent types, the candidates that the word alignment gives for each source
word, and in training also the types of the reference translations. The selection depends
only on the sentences, the candidates, the number of frequent types and the two vocabularies.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain

import numpy as np
import numpy.typing as npt

from convs2s.data.vocabulary import END, SPECIAL_TOKENS, UNKNOWN, Vocabulary

Types = npt.NDArray[np.int64]
"""Indices of selected target types (S,), ascending.

The special tokens are always selected and have the lowest indices, so that each of them has the
same index in this array as in the vocabulary.
"""


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The candidate target types of each source type, and the number of frequent target types.

    The candidates of the source type with the index s are
    ``candidates[offsets[s] : offsets[s + 1]]``.
    """

    target_types: int
    """Size of the target vocabulary, which is ordered by falling frequency."""

    frequent: int
    """Number of most frequent target types that are always selected, besides special tokens."""

    # (source types + 1,)
    offsets: npt.NDArray[np.int64]
    # (C,), target indices
    candidates: npt.NDArray[np.int32]

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
        """Build the shortlist from a table of words.

        Source and candidate words outside of the vocabularies are left out, because the model knows
        them as ``<unk>`` only.

        Args:
            table: Source words, each with its candidate target words, the best candidate first.
            source: The source vocabulary.
            target: The target vocabulary.
            frequent: Number of most frequent target types that are always selected.
            most: Maximum number of candidates of a source word.
        """
        # The candidates of each source type, as target indices.
        rows: list[list[int]] = [[] for _ in range(len(source))]
        for source_word, target_words in table:
            if source_word not in source:
                continue
            # `Vocabulary.encode` appends </s>.
            source_index, _ = source.encode([source_word])
            target_indices = target.encode(target_words)
            known = [index for index in target_indices if index not in (UNKNOWN, END)]
            rows[source_index] = known[:most]
        lengths = [len(row) for row in rows]
        offsets = np.cumsum([0, *lengths], dtype=np.int64)
        candidates = np.fromiter(chain.from_iterable(rows), np.int32)
        return cls(len(target), frequent, offsets, candidates)

    def __eq__(self, other: object) -> bool:
        """Return whether all fields are equal, so that both select the same types."""
        if not isinstance(other, Shortlist):
            return False
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def types(self, source: npt.ArrayLike, target: npt.ArrayLike = ()) -> Types:
        """Return the types that are selected for source sentences.

        ``source`` and ``target`` are arrays of indices of any shape. The types in ``target``, the
        reference translations in training, are selected as well.
        """
        is_selected = np.zeros(self.target_types, bool)
        is_selected[: len(SPECIAL_TOKENS) + self.frequent] = True
        for source_type in np.unique(np.asarray(source, np.int64)):
            start = self.offsets[source_type]
            end = self.offsets[source_type + 1]
            is_selected[self.candidates[start:end]] = True
        is_selected[np.asarray(target, np.int64)] = True
        return np.flatnonzero(is_selected)

    def of_sentences(
        self, sources: Sequence[Sequence[int]]
    ) -> tuple[Types, npt.NDArray[np.bool_]]:
        """Select types for each of B sentences separately.

        A sentence may only use the types that are selected for it, so that its translation does not
        depend on the other sentences of the batch.

        Returns:
            The types (S,) that are selected for any of the sentences, and a mask (B, S) that is
            True where a sentence may not use a type.
        """
        types_of_sentences = [self.types(source) for source in sources]
        union = np.unique(np.concatenate(types_of_sentences))  # (S,)
        mask = np.ones((len(types_of_sentences), len(union)), bool)  # (B, S)
        for row, types in zip(mask, types_of_sentences, strict=True):
            row[np.searchsorted(union, types)] = False
        return union, mask


def places_of(types: Types, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the index in ``types`` of each token, or of ``<unk>`` for a token that is not there.

    ``tokens`` are vocabulary indices of any shape, and the result has the same shape.
    """
    places = np.searchsorted(types, tokens)
    # searchsorted returns len(types) for a token greater than all types, which is no valid index.
    last = len(types) - 1
    is_selected = types[np.minimum(places, last)] == tokens
    return np.where(is_selected, places, UNKNOWN)
