"""Lines of several sentences: each sentence is translated by itself, and a line stays a line."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from convs2s.decoding.inspection import AttentionMap
from convs2s.decoding.parallel import Chunk
from convs2s.decoding.translate import Translation
from convs2s.text.splitting import split_sentences

_LISTS = ("source_words", "source_tokens", "words", "words_before", "tokens")


class SplitLines:
    """Numbered lines, and the ``sentences`` in them, each with the number of its line."""

    def __init__(self, lines: Chunk, language: str) -> None:
        """Split lines of raw text; a UserError refuses one that is too long for that."""
        self._lines = [(number, line, split_sentences(line, language)) for number, line in lines]
        self.sentences: Chunk = [
            (number, sentence) for number, _, sentences in self._lines for sentence in sentences
        ]

    def joined(self, translations: Iterable[Translation]) -> list[Translation]:
        """Return a translation for each line, of those of its sentences in their order."""
        rest = iter(translations)
        return [
            _joined(line, list(islice(rest, len(sentences)))) for _, line, sentences in self._lines
        ]


def _joined(source: str, parts: Sequence[Translation]) -> Translation:
    """Return the translation of a line: its sentences' texts with blanks between them.

    Words and tokens follow each other, and places among them count on. The score is the sum of the
    sentences' scores. The n-th best hypothesis joins the n-th best of the sentences, the last one
    of a sentence that has fewer. Attention lies in blocks: a sentence sees its own source alone.
    """
    if len(parts) == 1:
        return parts[0]
    lists: dict[str, list[Any]] = {name: [] for name in (*_LISTS, "alignment", "replacements")}
    for part in parts:
        tokens_before = len(lists["source_tokens"])
        lists["alignment"] += [tokens_before + place for place in part.alignment or ()]
        before = {"position": len(lists["words"]), "source_position": len(lists["source_words"])}
        lists["replacements"] += [
            row | {name: count + row[name] for name, count in before.items()}
            for row in part.replacements
        ]
        for name in _LISTS:
            lists[name] += getattr(part, name)
    most = max(len(part.n_best) for part in parts)
    n_best = [
        _joined(source, [part.n_best[min(rank, len(part.n_best) - 1)] for part in parts])
        for rank in range(most)
    ]
    fields: dict[str, Any] = {**lists}
    if parts[0].alignment is None:
        fields["alignment"] = None
    for name in ("text", "text_before"):
        fields[name] = " ".join(filter(None, (getattr(part, name) for part in parts)))
    maps = [part.attention for part in parts if part.attention is not None]
    return replace(
        parts[0],
        source=source,
        score=sum(part.score for part in parts),
        n_best=n_best,
        attention=_in_blocks(maps) if maps else None,
        **fields,
    )


def _in_blocks(maps: Sequence[AttentionMap]) -> AttentionMap:
    from scipy.linalg import block_diag  # takes longer to load than a sentence to translate

    layers = zip(*(one.weights for one in maps), strict=True)
    return AttentionMap(
        np.stack([block_diag(*layer) for layer in layers]),
        [token for one in maps for token in one.source],
        [token for one in maps for token in one.target],
    )
