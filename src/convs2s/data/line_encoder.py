"""From the words of a line to the numbers of a model's tokens."""

from functools import lru_cache

from convs2s.data.vocabulary import END, Vocabulary
from convs2s.text.bpe import Bpe

# Words whose indices are remembered, about 400 bytes each: text is mostly made of words that came a
# short while ago, and a corpus may have any number of others.
_CACHED_WORDS = 1 << 15


class LineEncoder:
    """Turns tokenized lines of one side into vocabulary indices."""

    def __init__(self, bpe: Bpe | None, vocabulary: Vocabulary) -> None:
        """Prepare for a side.

        Args:
            bpe: what splits its words; None keeps them whole.
            vocabulary: its types; a token or word that is none of them is ``<unk>``.
        """
        self._bpe = bpe
        self._vocabulary = vocabulary
        self._indices = lru_cache(_CACHED_WORDS)(self._encode)

    def __call__(self, line: str) -> list[int]:
        """Return the indices of a line's words, or of their tokens, with ``</s>`` at the end."""
        indices: list[int] = []
        for word_indices in map(self._indices, line.split()):
            indices += word_indices
        indices.append(END)
        return indices

    def _encode(self, word: str) -> tuple[int, ...]:
        tokens = [word] if self._bpe is None else self._bpe.tokens(word)
        return tuple(self._vocabulary.encode(tokens)[:-1])
