"""From a filtered corpus to numbers: BPE codes, vocabularies, token stores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from convs2s.config.corpus import VocabularySettings
from convs2s.config.messages import validated
from convs2s.config.task import DatasetMetadata
from convs2s.data.counts import counts_table
from convs2s.data.store import require_prepared, write_store
from convs2s.data.vocabulary import (
    END,
    UNKNOWN,
    Vocabulary,
    most_frequent,
    read_counts,
    read_vocabulary,
    write_counts,
)
from convs2s.data.word_counts import added_counts
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import (
    NO_MARK,
    atomic_text,
    read_json,
    read_line_pairs,
    write_json,
    write_lines,
)
from convs2s.text.bpe import Bpe, count_tokens, learn_codes, read_codes


class StoreDescription(DatasetMetadata):
    """What stands beside a token store, in JSON; tokens are counted with ``</s>``."""

    pairs: int  # rows of the store
    dropped: int  # pairs that it leaves out, as a side has more tokens than the task's clean.tokens
    source_tokens: int
    source_unknown: int
    target_tokens: int
    target_unknown: int
    sha256: str  # checksum of the store


_COUNTS = ("pairs", "dropped", "source_tokens", "source_unknown", "target_tokens", "target_unknown")

# Words whose indices are remembered, about 400 bytes each: text is mostly made of words that came a
# short while ago, and a corpus may have any number of others.
_CACHED_WORDS = 1 << 15


def read_description(path: Path) -> StoreDescription:
    """Read what stands beside a token store; a UserError says that this version has not made it."""
    require_prepared(path)
    return validated(StoreDescription, read_json(path), str(path))


def learn_bpe(*, words: Sequence[Path], output: Path, merges: int) -> None:
    """Learn BPE codes from tables of word counts: both sides' for joint codes."""
    with atomic_text(output) as stream:
        stream.write(learn_codes(added_counts(words), merges))


def build_vocabulary(
    *,
    words: Path,
    bpe_codes: Path | None,
    output: Path,
    size: int | None,
    threshold: int,
    glossaries: Sequence[str],
    minimum_count: int,
) -> None:
    """Write one side's vocabulary, the most frequent types first, at most ``size``.

    Types that occur less often than ``minimum_count`` are left out. Where there is a ``threshold``,
    tokens that occur less often are split again (Sennrich et al. 2016). ``words`` says how often
    each word of the side's training text occurs; ``glossaries``: patterns of words left whole.
    """
    counts: Iterable[tuple[str, int]] = read_counts(words)
    if bpe_codes is not None:
        codes = read_codes(bpe_codes)
        tokens = count_tokens(counts, Bpe(codes, None, glossaries))
        if threshold:
            # What the table leaves out is split again as well, as `splitter` knows the table alone.
            frequent = frequent_tokens(tokens.items(), max(threshold, minimum_count))
            if not frequent:
                raise UserError(f"{words}: no BPE token occurs {threshold} times: lower threshold")
            tokens = count_tokens(read_counts(words), Bpe(codes, frequent, glossaries))
        counts = tokens.items()
    write_counts(output, most_frequent(counts, size, minimum_count))


def frequent_tokens(counts: Iterable[tuple[str, int]], threshold: int) -> set[str]:
    """Return the tokens of (token, count) pairs that reach the vocabulary threshold."""
    return {token for token, count in counts if count >= threshold}


def splitter(codes: Path | None, vocabulary: Path, settings: VocabularySettings) -> Bpe | None:
    """Return what splits a side's words into tokens, or None where the task keeps words whole."""
    if codes is None:
        return None
    threshold = settings.threshold
    frequent = frequent_tokens(read_counts(vocabulary), threshold) if threshold else None
    return Bpe(read_codes(codes), frequent, settings.glossaries)


def line_encoder(bpe: Bpe | None, vocabulary: Vocabulary) -> Callable[[str], list[int]]:
    """Return what turns a line of a side into the indices of its tokens, ``</s>`` at the end.

    Without BPE, words are whole. A token or word outside of the vocabulary is ``<unk>``.
    """

    @lru_cache(_CACHED_WORDS)
    def indices_of(word: str) -> tuple[int, ...]:
        tokens = [word] if bpe is None else bpe.tokens(word)
        return tuple(vocabulary.encode(tokens)[:-1])

    def encode(line: str) -> list[int]:
        indices: list[int] = []
        for word_indices in map(indices_of, line.split()):
            indices += word_indices
        indices.append(END)
        return indices

    return encode


def binarize(
    *,
    text: tuple[Path, Path],
    bpe_codes: Sequence[Path],
    vocabularies: Sequence[Path],
    store: Path,
    description: Path,
    metadata: DatasetMetadata,
    most_tokens: int | None = None,
) -> None:
    """Write a split's token store, and beside it what the store holds.

    ``text`` is tokenized and filtered, and has as ``vocabularies`` a source and a target;
    ``bpe_codes`` are one for both where they are joint, none where words are kept whole. Pairs of
    more than ``most_tokens`` on a side, ``</s>`` not counted, are dropped, which is counted and
    said: a training could not number their positions. ``description`` has the fields of
    `StoreDescription` as JSON.
    """

    def encoder(codes: Path | None, table: Path) -> Callable[[str], list[int]]:
        bpe = splitter(codes, table, metadata.vocabulary)
        return line_encoder(bpe, read_vocabulary(table))

    source_codes = bpe_codes[0] if bpe_codes else None
    target_codes = bpe_codes[-1] if bpe_codes else None
    source_vocabulary, target_vocabulary = vocabularies
    encode_source = encoder(source_codes, source_vocabulary)
    encode_target = encoder(target_codes, target_vocabulary)
    counts = Counter(dict.fromkeys(_COUNTS, 0))

    def encoded_pairs() -> Iterator[tuple[list[int], list[int]]]:
        """Yield the pairs that are kept, and count them."""
        for source_line, target_line in read_line_pairs(*text, mark=NO_MARK):
            source = encode_source(source_line)
            target = encode_target(target_line)
            if most_tokens is not None and max(len(source), len(target)) > most_tokens + 1:
                counts["dropped"] += 1
                continue
            counts["source_tokens"] += len(source)
            counts["source_unknown"] += source.count(UNKNOWN)
            counts["target_tokens"] += len(target)
            counts["target_unknown"] += target.count(UNKNOWN)
            yield source, target

    counts["pairs"] = write_store(store, encoded_pairs())
    if counts["dropped"]:
        print(f"{store}: dropped {counts['dropped']} pairs of more than {most_tokens} tokens")
    # The checksum is taken here once: a training must not read gigabytes before it starts.
    made = {**metadata.model_dump(mode="json"), **counts, "sha256": sha256(store)}
    write_json(description, made)


def count_dataset(*, train: Path, valid: Path, table: Path, most_tokens: int | None) -> None:
    """Write a table of the pairs of token stores, and of those that were too long for them.

    ``train`` and ``valid`` are what stands beside the stores; a side of a pair has ``most_tokens``
    at most, or any number where that is None.
    """
    training = read_description(train)
    validation = read_description(valid)
    by_words = (training.pairs + training.dropped, validation.pairs + validation.dropped)
    rows = [("kept by words", *by_words)]
    if most_tokens is not None:
        rows.append((f"dropped: over {most_tokens} tokens", training.dropped, validation.dropped))
    rows.append(("kept", training.pairs, validation.pairs))
    title = f"Token pairs of {training.task}"
    write_lines(table, counts_table(title, training.stand_in, rows))
