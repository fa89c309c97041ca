"""Split lines into sentences before translation, and join the translations into lines again."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from convs2s.decoding.inspection import AttentionMap
from convs2s.decoding.parallel import Chunk
from convs2s.decoding.translate import Translation
from convs2s.text.splitting import split_sentences

_LISTS = {
    "source_words",
    "source_tokens",
    "words",
    "words_before",
    "tokens",
    "replacements",
    "unknown_words",
}
"""Fields of a translation that are lists, except the alignment."""


class SplitLines:
    """Numbered lines and their ``sentences``, each with the number of its line."""

    def __init__(self, lines: Chunk, language: str | None) -> None:
        """Split lines of raw text in ``language``. If it is None, each line is one sentence."""
        self.sentences = list[tuple[int, str]]()
        # Each line and the number of its sentences.
        self._lines = list[tuple[str, int]]()
        for number, line in lines:
            sentences = split_sentences(line, language) if language else [line]
            self._lines.append((line, len(sentences)))
            for sentence in sentences:
                self.sentences.append((number, sentence))

    def joined(self, translations: Iterable[Translation]) -> list[Translation]:
        """Return the translation of each line.

        ``translations`` are those of all ``sentences``, in the same order.
        """
        rest = iter(translations)
        translated_lines = list[Translation]()
        for line, sentence_count in self._lines:
            whole = join(list(islice(rest, sentence_count)), " ")
            # The source is the line as it was given, with the blanks between its sentences.
            n_best = [replace(hypothesis, source=line) for hypothesis in whole.n_best]
            translated_lines.append(replace(whole, source=line, n_best=n_best))
        return translated_lines


def join(parts: Sequence[Translation], separator: str) -> Translation:
    """Return the translation of a text from the translations of its parts.

    - Texts are joined with ``separator``; lists of words and tokens are concatenated.
    - Positions in alignments and replacements are shifted, so that they count from the beginning of
      the whole text.
    - The score is the sum of the parts' scores.
    - The n-th best hypothesis joins the n-th best hypotheses of the parts. A part with fewer
      hypotheses contributes its last one.
    - The attention of a target token to the source of another part is 0.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    fields: dict[str, Any] = {}
    for name in ("source", "text", "text_before"):
        fields[name] = separator.join(getattr(part, name) for part in parts)
    for name in _LISTS:
        fields[name] = []
    alignment = list[int]()
    for part in parts:
        for replacement in part.replacements:
            moved = replacement.copy()
            moved["position"] += len(fields["words"])
            moved["source_position"] += len(fields["source_words"])
            fields["replacements"].append(moved)
        for position in part.alignment or ():
            alignment.append(len(fields["source_tokens"]) + position)
        # These come last, because the shifts above are the lengths without this part.
        for name in _LISTS - {"replacements"}:
            fields[name] += getattr(part, name)
    n_best = list[Translation]()
    for rank in range(max(len(part.n_best) for part in parts)):
        hypotheses = [part.n_best[min(rank, len(part.n_best) - 1)] for part in parts]
        n_best.append(join(hypotheses, separator))
    fields["unknown_words"] = list(dict.fromkeys(fields["unknown_words"]))  # each once
    maps = [part.attention for part in parts if part.attention is not None]
    return replace(
        first,
        **fields,
        score=sum(part.score for part in parts),
        alignment=None if first.alignment is None else alignment,
        n_best=n_best,
        attention=_join_attention(maps),
    )


def _join_attention(maps: Sequence[AttentionMap]) -> AttentionMap | None:
    """Return one map with the given maps as blocks on its diagonal, and weights of 0 elsewhere.

    If there are no maps, return None.
    """
    if not maps:
        return None
    target = list(chain.from_iterable(block.target for block in maps))
    source = list(chain.from_iterable(block.source for block in maps))
    layers = len(maps[0].weights)
    weights = np.zeros((layers, len(target), len(source)), np.float32)
    row = 0
    column = 0
    for block in maps:
        _, rows, columns = block.weights.shape
        weights[:, row : row + rows, column : column + columns] = block.weights
        row += rows
        column += columns
    return AttentionMap(weights, source, target)
