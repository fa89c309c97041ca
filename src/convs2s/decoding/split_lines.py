"""Lines of several sentences: each sentence is translated by itself, and a line stays a line."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from convs2s.decoding.parallel import Chunk
from convs2s.decoding.translate import Translation
from convs2s.decoding.words import Replacement
from convs2s.text.splitting import split_sentences

if TYPE_CHECKING:
    from convs2s.decoding.inspection import AttentionMap


class SplitLines:
    """Numbered lines, and the ``sentences`` in them, each with the number of its line."""

    def __init__(
        self,
        lines: Chunk,
        language: str | None,
    ) -> None:
        """Split lines of raw text in a language; without one, each line counts as a sentence."""
        self.sentences = list[tuple[int, str]]()
        self._lines = list[tuple[str, int]]()  # and how many sentences each has
        for number, line in lines:
            found = split_sentences(line, language) if language else [line]
            self._lines.append((line, len(found)))
            for sentence in found:
                self.sentences.append((number, sentence))

    def joined(self, translations: Iterable[Translation]) -> list[Translation]:
        """Return a translation for each line, of those of its sentences in their order."""
        rest = iter(translations)
        whole = list[Translation]()
        for line, count in self._lines:
            best = join(list(islice(rest, count)), " ")
            n_best = [replace(hypothesis, source=line) for hypothesis in best.n_best]
            whole.append(replace(best, source=line, n_best=n_best))
        return whole


def join(parts: Sequence[Translation], separator: str) -> Translation:
    """Return the translation of a text from those of its parts, between which is a separator.

    Words and tokens follow each other, and places among them count on. The score is the sum of the
    parts' scores. The n-th best hypothesis joins the n-th best of the parts, the last one of a part
    that has fewer. Attention lies in blocks: a part looks at its own source alone.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    fields: dict[str, Any] = {}
    for name in ("source", "text", "text_before"):
        fields[name] = separator.join(getattr(part, name) for part in parts)
    lists = ("source_words", "source_tokens", "words", "words_before", "tokens")
    for name in lists:
        fields[name] = []
    alignment = list[int]()
    replacements = list[Replacement]()
    for part in parts:
        for replacement in part.replacements:
            moved: Replacement = {
                **replacement,
                "position": len(fields["words_before"]) + replacement["position"],
                "source_position": len(fields["source_words"]) + replacement["source_position"],
            }
            replacements.append(moved)
        for place in part.alignment or ():
            alignment.append(len(fields["source_tokens"]) + place)
        for name in lists:
            fields[name] += getattr(part, name)
    n_best = list[Translation]()
    for rank in range(max(len(part.n_best) for part in parts)):
        of_rank = [part.n_best[min(rank, len(part.n_best) - 1)] for part in parts]
        n_best.append(join(of_rank, separator))
    return replace(
        first,
        **fields,
        score=sum(part.score for part in parts),
        replacements=replacements,
        alignment=None if first.alignment is None else alignment,
        n_best=n_best,
        attention=_join_attention([part.attention for part in parts if part.attention is not None]),
    )


def _join_attention(maps: "Sequence[AttentionMap]") -> "AttentionMap | None":
    """Return maps of attention as blocks of one, with weights of 0 around them; None of none."""
    if not maps:
        return None
    from convs2s.decoding.inspection import AttentionMap  # which imports torch

    target = list(chain.from_iterable(one.target for one in maps))
    source = list(chain.from_iterable(one.source for one in maps))
    layers = len(maps[0].weights)
    weights = np.zeros((layers, len(target), len(source)), np.float32)
    row = 0
    column = 0
    for one in maps:
        _, rows, columns = one.weights.shape
        weights[:, row : row + rows, column : column + columns] = one.weights
        row += rows
        column += columns
    return AttentionMap(weights, source, target)
