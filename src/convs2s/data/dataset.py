"""From a cleaned corpus to numbers: BPE codes, vocabularies, token stores."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from convs2s.data.store import write_store
from convs2s.data.vocabulary import (
    UNKNOWN,
    Vocabulary,
    most_frequent,
    read_counts,
    read_vocabulary,
    write_vocabulary,
)
from convs2s.files import atomic_text, read_line_pairs, sha256
from convs2s.text.bpe import Bpe, count_pieces, count_words, learn_codes


def write_codes(corpora: Sequence[Path], output: Path, merges: int) -> None:
    """Learn BPE codes from the words of tokenized files: both sides' for joint codes."""
    with atomic_text(output) as stream:
        stream.write(learn_codes(count_words(corpora), merges))


def build_vocabulary(
    corpus: Path, codes: Path | None, output: Path, settings: Mapping[str, Any], size: int | None
) -> None:
    """Write one side's vocabulary, the most frequent types first.

    Args:
        corpus: the side's training text, tokenized.
        codes: BPE codes, or None for words.
        output: the table to write.
        settings: the task's ``vocabulary`` section.
        size: the most types, or None for all.
    """
    counts = count_words([corpus])
    if codes is not None:
        text, glossaries = codes.read_text("utf-8"), settings["glossaries"]
        words = counts
        counts = count_pieces(words, Bpe(text, None, glossaries))
        if settings["threshold"]:
            # Pieces that are too rare on this side are split again (Sennrich et al. 2016).
            frequent = frequent_pieces(counts.items(), settings["threshold"])
            counts = count_pieces(words, Bpe(text, frequent, glossaries))
    write_vocabulary(output, most_frequent(counts, size, settings["minimum_count"]))


def frequent_pieces(counts: Iterable[tuple[str, int]], threshold: int) -> set[str]:
    """Return the pieces of (piece, count) pairs that reach the vocabulary threshold."""
    return {piece for piece, count in counts if count >= threshold}


def splitter(codes: Path | None, vocabulary: Path, settings: Mapping[str, Any]) -> Bpe | None:
    """Return what splits a side's words into pieces, or None where the task keeps words whole."""
    if codes is None:
        return None
    threshold = settings["threshold"]
    frequent = frequent_pieces(read_counts(vocabulary), threshold) if threshold else None
    return Bpe(codes.read_text("utf-8"), frequent, settings["glossaries"])


def binarise(
    corpus: tuple[Path, Path],
    codes: tuple[Path | None, Path | None],
    vocabularies: tuple[Path, Path],
    outputs: tuple[Path, Path],
    facts: Mapping[str, Any],
) -> None:
    """Write a split's token store, and beside it what the store holds.

    Args:
        corpus: source and target, tokenized and cleaned.
        codes: BPE codes of each side; None keeps words whole.
        vocabularies: source and target.
        outputs: the store, and a JSON file with ``facts``, the counts of pairs, symbols and
            unknown symbols, and the store's SHA-256.
        facts: what a reader must know of the text: task, languages, preparation, vocabulary.
    """
    bpes = [
        splitter(side_codes, vocabulary, facts["vocabulary"])
        for side_codes, vocabulary in zip(codes, vocabularies, strict=True)
    ]
    types = [read_vocabulary(path) for path in vocabularies]
    counts: Counter[str] = Counter()

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        """Yield the pairs as indices, and count their symbols."""
        for pair in read_line_pairs(*corpus):
            source, target = (
                _encode(line, bpe, vocabulary)
                for line, bpe, vocabulary in zip(pair, bpes, types, strict=True)
            )
            for side, symbols in (("source", source), ("target", target)):
                counts[f"{side}_symbols"] += len(symbols)
                counts[f"{side}_unknown"] += symbols.count(UNKNOWN)
            yield source, target

    store, description = outputs
    pairs = write_store(store, encoded())
    with atomic_text(description) as stream:
        # Taken here once: a training must not read gigabytes before it starts.
        written = {"pairs": pairs, **counts, "sha256": sha256(store)}
        json.dump({**facts, **written}, stream, indent=2)


def _encode(line: str, bpe: Bpe | None, vocabulary: Vocabulary) -> list[int]:
    return vocabulary.encode((line if bpe is None else bpe.split(line)).split())
