"""Turn a filtered corpus into BPE codes, vocabularies and token stores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from convs2s.config.corpus import VocabularySettings
from convs2s.config.messages import validated
from convs2s.config.task import DatasetMetadata
from convs2s.data.store import require_prepared, write_store
from convs2s.data.vocabulary import (
    END,
    UNKNOWN,
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
)
from convs2s.scoring.data_counts import (
    SideCounts,
    TokenCount,
    unknown_notes,
    unknown_shares,
)
from convs2s.text.bpe import Bpe, count_tokens, learn_codes, read_codes


class StoreDescription(DatasetMetadata):
    """The description of a token store, a JSON file beside it.

    Numbers of tokens include ``</s>``.
    """

    # Number of rows of the store.
    pairs: int
    # Pairs left out because a side has more tokens than the task's clean.tokens.
    dropped: int
    source_tokens: int
    source_unknown: int
    target_tokens: int
    target_unknown: int
    # SHA-256 of the store's bytes.
    sha256: str

    @property
    def token_counts(self) -> SideCounts:
        """The tokens of each side, and how many of them are unknown."""
        return {
            "source": TokenCount(self.source_tokens, self.source_unknown),
            "target": TokenCount(self.target_tokens, self.target_unknown),
        }


# Number of words whose indices are cached, about 400 bytes each. Most words of a text have occurred
# shortly before, and the cache is bounded because a corpus may have any number of distinct words.
_CACHED_WORDS = 1 << 15


def read_description(path: Path) -> StoreDescription:
    """Read the description of a token store.

    Raises:
        UserError: the file is missing, or this version of the package did not write it.
    """
    require_prepared(path)
    return validated(StoreDescription, read_json(path), str(path))


def learn_bpe(
    *,
    words: Sequence[Path],
    output: Path,
    merges: int,
) -> None:
    """Learn BPE codes from tables of word counts, and write them.

    ``words`` are the tables of both sides for joint codes, or else the table of one side.
    """
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
    """Write the vocabulary of one side, the most frequent types first.

    Args:
        words: The table of the word counts in the side's training text.
        bpe_codes: The BPE codes that split the words into tokens; None keeps words whole.
        output: The vocabulary to write.
        size: Maximum number of types; None sets no limit.
        threshold: Tokens that occur less often than this are split again (Sennrich et al. 2016); 0
            keeps all tokens.
        glossaries: Patterns of words that BPE keeps whole.
        minimum_count: Types that occur less often than this are left out.
    """
    counts: Iterable[tuple[str, int]] = read_counts(words)
    if bpe_codes is not None:
        codes = read_codes(bpe_codes)
        token_counts = count_tokens(counts, Bpe(codes, None, glossaries))
        if threshold:
            # `line_encoder` takes the frequent tokens from the vocabulary's table, in which no
            # token occurs less often than minimum_count. It splits all others again, so they are
            # split again here, too.
            least = max(threshold, minimum_count)
            frequent = frequent_tokens(token_counts.items(), least)
            if not frequent:
                raise UserError(
                    f"{words}: no BPE token occurs {least} times: lower threshold, and "
                    "minimum_count if it is as large"
                )
            bpe = Bpe(codes, frequent, glossaries)
            token_counts = count_tokens(read_counts(words), bpe)
        counts = token_counts.items()
    write_counts(output, most_frequent(counts, size, minimum_count))


def frequent_tokens(counts: Iterable[tuple[str, int]], threshold: int) -> set[str]:
    """Return the tokens of (token, count) pairs whose count is at least ``threshold``."""
    return {token for token, count in counts if count >= threshold}


def line_encoder(
    codes: Path | None,
    table: Path,
    settings: VocabularySettings,
) -> Callable[[str], list[int]]:
    """Return a function that turns a line of words into the indices of its tokens and ``</s>``.

    ``codes`` are the BPE codes of the side; None keeps words whole. ``table`` is its vocabulary. A
    token outside of the vocabulary gets the index of ``<unk>``.
    """
    vocabulary = read_vocabulary(table)
    bpe = None
    if codes is not None:
        frequent = None
        if settings.threshold:
            frequent = frequent_tokens(read_counts(table), settings.threshold)
        bpe = Bpe(read_codes(codes), frequent, settings.glossaries)

    @lru_cache(_CACHED_WORDS)
    def indices_of(word: str) -> list[int]:
        tokens = [word] if bpe is None else bpe.tokens(word)
        # `Vocabulary.encode` ends in </s>, which belongs at the end of the line only.
        return vocabulary.encode(tokens)[:-1]

    def encode(line: str) -> list[int]:
        indices: list[int] = []
        for word in line.split():
            indices += indices_of(word)
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
    """Write the token store of a split, and its description.

    Args:
        text: The source and the target file, tokenized and filtered.
        bpe_codes: The codes of the source and the target, or one file of joint codes, or nothing if
            words are kept whole.
        vocabularies: The vocabularies of the source and the target.
        store: The token store to write.
        description: The JSON file to write, with the fields of `StoreDescription`.
        metadata: The fields of the description that the configuration gives.
        most_tokens: Pairs with a side of more tokens than this, without ``</s>``, are dropped,
            because a model has no positions for them. Their number is printed, and is part of the
            description. None keeps all pairs.
    """
    # Of joint codes, the only file is both the first and the last.
    source_codes = bpe_codes[0] if bpe_codes else None
    target_codes = bpe_codes[-1] if bpe_codes else None
    source_vocabulary, target_vocabulary = vocabularies
    settings = metadata.vocabulary
    encode_source = line_encoder(source_codes, source_vocabulary, settings)
    encode_target = line_encoder(target_codes, target_vocabulary, settings)
    # The fields of the description, in the order in which they are written.
    counts = {
        "pairs": 0,
        "dropped": 0,
        "source_tokens": 0,
        "source_unknown": 0,
        "target_tokens": 0,
        "target_unknown": 0,
    }

    def encoded_pairs() -> Iterator[tuple[list[int], list[int]]]:
        """Yield the pairs to keep, and update ``counts``."""
        for source_line, target_line in read_line_pairs(*text, mark=NO_MARK):
            source = encode_source(source_line)
            target = encode_target(target_line)
            longer_side = max(len(source), len(target)) - 1  # without </s>
            if most_tokens is not None and longer_side > most_tokens:
                counts["dropped"] += 1
                continue
            counts["source_tokens"] += len(source)
            counts["source_unknown"] += source.count(UNKNOWN)
            counts["target_tokens"] += len(target)
            counts["target_unknown"] += target.count(UNKNOWN)
            yield source, target

    counts["pairs"] = write_store(store, encoded_pairs())
    if counts["dropped"]:
        print(
            f"{store}: dropped {counts['dropped']} pairs of more than {most_tokens} tokens"
        )
    # The checksum is computed once, here. Otherwise every training would have to read gigabytes
    # before it starts.
    fields = {**metadata.model_dump(mode="json"), **counts, "sha256": sha256(store)}
    write_json(description, fields)
    token_counts = read_description(description).token_counts
    print(f"{store}: {unknown_shares(token_counts)}")
    for note in unknown_notes(token_counts):
        print(f"warning: {store}: {note}")
