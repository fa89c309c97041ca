"""Lines of several sentences: each sentence is translated by itself, and a line stays a line."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from convs2s.decoding.parallel import Chunk
from convs2s.decoding.translate import Translation
from convs2s.text.splitting import split_sentences


class SplitLines:
    """Numbered lines, and the ``sentences`` in them, each with the number of its line."""

    def __init__(self, lines: Chunk, language: str | None) -> None:
        """Split lines of raw text in a language; without one, each line counts as a sentence."""
        self._lines, self.sentences = list[tuple[str, int]](), list[tuple[int, str]]()
        for number, line in lines:
            found = split_sentences(line, language) if language else [line]
            self._lines.append((line, len(found)))
            self.sentences += [(number, one) for one in found]

    def joined(self, translations: Iterable[Translation]) -> list[Translation]:
        """Return a translation for each line, of those of its sentences in their order."""
        rest, whole = iter(translations), list[Translation]()
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
    lists = ("source_words", "source_tokens", "words", "words_before", "tokens")
    fields: dict[str, Any] = {name: [] for name in (*lists, "alignment", "replacements")}
    for part in parts:
        names = {"position": "words_before", "source_position": "source_words"}
        before = {place: len(fields[name]) for place, name in names.items()}
        fields["replacements"] += [
            row | {name: count + row[name] for name, count in before.items()}
            for row in part.replacements
        ]
        tokens_before = len(fields["source_tokens"])
        fields["alignment"] += [tokens_before + place for place in part.alignment or ()]
        for name in lists:
            fields[name] += getattr(part, name)
    if first.alignment is None:
        fields["alignment"] = None
    for name in ("source", "text", "text_before"):
        fields[name] = separator.join(getattr(part, name) for part in parts)
    fields["n_best"] = [
        join([part.n_best[min(rank, len(part.n_best) - 1)] for part in parts], separator)
        for rank in range(max(len(part.n_best) for part in parts))
    ]
    maps = [part.attention for part in parts if part.attention is not None]
    if maps:
        from convs2s.decoding.inspection import AttentionMap  # which imports torch

        sizes = np.array([one.weights.shape for one in maps])  # layers, target, source
        whole = np.zeros((sizes[0, 0], *sizes[:, 1:].sum(axis=0)), maps[0].weights.dtype)
        for one, (_, target, source) in zip(maps, sizes.cumsum(axis=0), strict=True):
            _, rows, columns = one.weights.shape
            whole[:, target - rows : target, source - columns : source] = one.weights
        fields["attention"] = AttentionMap(
            whole,
            [token for one in maps for token in one.source],
            [token for one in maps for token in one.target],
        )
    return replace(first, score=sum(part.score for part in parts), **fields)
