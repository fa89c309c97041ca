"""From a cleaned corpus to numbers: BPE codes, vocabularies, token stores."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from convs2s.data.line_encoder import Encoder
from convs2s.data.store import join_stores, write_store
from convs2s.data.vocabulary import (
    UNKNOWN,
    most_frequent,
    read_counts,
    read_vocabulary,
    write_counts,
)
from convs2s.data.word_counts import added_counts
from convs2s.files import atomic_text, read_line_pairs, sha256
from convs2s.text.bpe import Bpe, count_tokens, learn_codes

# What a token store's description counts.
_COUNTS = ("pairs", "source_tokens", "source_unknown", "target_tokens", "target_unknown")


def write_codes(words: Sequence[Path], output: Path, merges: int) -> None:
    """Learn BPE codes from tables of word counts: both sides' for joint codes."""
    with atomic_text(output) as stream:
        stream.write(learn_codes(added_counts(words), merges))


def build_vocabulary(
    words: Path, codes: Path | None, output: Path, settings: Mapping[str, Any], size: int | None
) -> None:
    """Write one side's vocabulary, the most frequent types first.

    Args:
        words: how often each word of the side's training text occurs.
        codes: BPE codes, or None for words.
        output: the table to write.
        settings: the task's ``vocabulary`` section.
        size: the most types, or None for all.
    """
    counts: Iterable[tuple[str, int]] = read_counts(words)
    if codes is not None:
        text, glossaries = codes.read_text("utf-8"), settings["glossaries"]
        tokens = count_tokens(counts, Bpe(text, None, glossaries))
        if settings["threshold"]:
            # Tokens that are too rare on this side are split again (Sennrich et al. 2016).
            frequent = frequent_tokens(tokens.items(), settings["threshold"])
            tokens = count_tokens(read_counts(words), Bpe(text, frequent, glossaries))
        counts = tokens.items()
    write_counts(output, most_frequent(counts, size, settings["minimum_count"]))


def frequent_tokens(counts: Iterable[tuple[str, int]], threshold: int) -> set[str]:
    """Return the tokens of (token, count) pairs that reach the vocabulary threshold."""
    return {token for token, count in counts if count >= threshold}


def splitter(codes: Path | None, vocabulary: Path, settings: Mapping[str, Any]) -> Bpe | None:
    """Return what splits a side's words into tokens, or None where the task keeps words whole."""
    if codes is None:
        return None
    threshold = settings["threshold"]
    frequent = frequent_tokens(read_counts(vocabulary), threshold) if threshold else None
    return Bpe(codes.read_text("utf-8"), frequent, settings["glossaries"])


def binarize(
    corpus: tuple[Path, Path],
    codes: tuple[Path | None, Path | None],
    vocabularies: tuple[Path, Path],
    outputs: tuple[Path, Path],
    facts: Mapping[str, Any],
    rows: range | None = None,
) -> None:
    """Write a split's token store, or that of a shard of it, and beside it what the store holds.

    Args:
        corpus: source and target, tokenized and cleaned.
        codes: BPE codes of each side; None keeps words whole.
        vocabularies: source and target.
        outputs: the store, and a JSON file with ``facts``, the counts of pairs, tokens and
            unknown tokens, and the store's SHA-256.
        facts: what a reader must know of the text: task, languages, preparation, vocabulary.
        rows: the pairs to take, counted from 0; None for all.
    """
    encoders = [
        Encoder(splitter(side_codes, vocabulary, facts["vocabulary"]), read_vocabulary(vocabulary))
        for side_codes, vocabulary in zip(codes, vocabularies, strict=True)
    ]
    counts = Counter(dict.fromkeys(_COUNTS, 0))
    pairs = read_line_pairs(*corpus, start=0 if rows is None else rows.start)

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        """Yield the pairs as indices, and count their tokens."""
        for source, target in pairs if rows is None else islice(pairs, len(rows)):
            indices = encoders[0](source), encoders[1](target)
            for side, tokens in zip(("source", "target"), indices, strict=True):
                counts[f"{side}_symbols"] += len(tokens)
                counts[f"{side}_unknown"] += tokens.count(UNKNOWN)
            yield indices

    counts["pairs"] = write_store(outputs[0], encoded())
    _describe(outputs, facts, counts)


def join_shards(
    stores: Sequence[Path],
    descriptions: Sequence[Path],
    outputs: tuple[Path, Path],
    facts: Mapping[str, Any],
) -> None:
    """Join the shards of a split: their stores, and what :func:`binarize` wrote beside them."""
    counts: Counter[str] = Counter()
    for path in descriptions:
        description = json.loads(path.read_text("utf-8"))
        counts.update({name: description[name] for name in _COUNTS})
    join_stores(stores, outputs[0])
    _describe(outputs, facts, counts)


def _describe(
    outputs: tuple[Path, Path], facts: Mapping[str, Any], counts: Mapping[str, int]
) -> None:
    store, description = outputs
    with atomic_text(description) as stream:
        # Taken here once: a training must not read gigabytes before it starts.
        json.dump({**facts, **counts, "sha256": sha256(store)}, stream, indent=2)
