"""Vocabularies, token stores and batches."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.data.batches import collate, cut
from convs2s.data.dataset import build_vocabulary
from convs2s.data.store import ROWS_PER_BATCH, TokenStore, write_store
from convs2s.data.vocabulary import (
    END,
    PADDING,
    SPECIAL_TOKENS,
    UNKNOWN,
    Vocabulary,
    most_frequent,
    read_vocabulary,
    write_counts,
)
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.text.reserved_words import RESERVED_WORDS

# ---- vocabularies ----


def test_encode_and_decode() -> None:
    vocabulary = Vocabulary(["the", "dog"])
    assert vocabulary.encode(["dog", "the", "cat"]) == [4, 3, UNKNOWN, END]
    assert vocabulary.decode([4, UNKNOWN, END]) == ["dog", "<unk>", "</s>"]


def test_text_spelt_like_a_special_token_is_unknown() -> None:
    assert RESERVED_WORDS.issuperset(SPECIAL_TOKENS)
    kept = most_frequent([("<pad>", 9), ("</s>", 8), ("<s>", 7), ("a", 1)], None)
    assert Vocabulary([token for token, _ in kept]).encode(["<pad>", "</s>", "a"]) == [
        2,
        2,
        3,
        1,
    ]


def test_most_frequent_breaks_ties_by_code_point() -> None:
    counts = [
        ("ba", 2),
        ("ab", 2),
        ("éa", 2),
        ("zA", 2),
        ("Az", 2),
        ("z", 5),
        ("rare", 1),
    ]
    kept = most_frequent(counts, None, minimum_count=2)
    assert [word for word, _ in kept] == ["z", "Az", "ab", "ba", "zA", "éa"]
    assert most_frequent(counts, 3) == kept[:3]


def test_a_vocabulary_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "en.tsv"
    write_counts(path, [("#", 3), ("a\u2028b", 2), ('"', 1)])
    assert read_vocabulary(path).tokens[3:] == ("#", "a\u2028b", '"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 5\n", r"en\.tsv:1: expected the columns"),
        (
            "type\tcount\nthe\t5\ndog\n",
            r"en\.tsv:3: expected the columns ..type', 'count",
        ),
    ],
)
def test_a_broken_vocabulary_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "en.tsv"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_vocabulary(path)


def test_a_vocabulary_threshold_splits_rare_tokens_again(tmp_path: Path) -> None:
    words, codes = tmp_path / "en.words.tsv", tmp_path / "codes"
    write_counts(words, [("ab", 1), ("abab", 5)])
    write_lines(codes, ["#version: 0.2", "a b</w>", "a b", "ab ab</w>"])
    table = tmp_path / "en.tsv"
    build_vocabulary(
        words=words,
        bpe_codes=codes,
        output=table,
        size=None,
        threshold=3,
        glossaries=(),
        minimum_count=1,
    )
    assert set(read_vocabulary(table).tokens[3:]) == {"abab", "a@@", "b"}


# ---- token stores ----


def test_a_store_gives_back_what_was_written(tmp_path: Path) -> None:
    pairs = [([index % 50 + 3, END], [END]) for index in range(ROWS_PER_BATCH + 10)]
    path = tmp_path / "train.arrow"
    assert write_store(path, iter(pairs)) == len(pairs)
    store = TokenStore(path)
    assert len(store) == len(pairs)
    for index in (0, ROWS_PER_BATCH - 1, ROWS_PER_BATCH, ROWS_PER_BATCH + 9):
        source, target = store[index]
        assert (source.tolist(), target.tolist()) == pairs[index]
    assert store.lengths("source").sum() == 2 * len(pairs)


def test_a_store_of_other_batches_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.arrow"
    with monkeypatch.context() as patch:
        patch.setattr("convs2s.data.store.ROWS_PER_BATCH", 4)
        write_store(path, [([END], [END])] * 6)
    with pytest.raises(
        UserError, match=r"train\.arrow: .* another version .* `snakemake prepare`"
    ):
        TokenStore(path)


@pytest.mark.parametrize("content", [b"", b"something else"])
def test_a_file_that_is_no_store(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "train.arrow"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"train\.arrow: not a token store"):
        TokenStore(path)


def test_a_missing_store_says_what_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "dataset/train.arrow"
    with pytest.raises(
        UserError, match=f"no such file: run `snakemake {path}` to make it$"
    ):
        TokenStore(path)
    with pytest.raises(
        UserError, match="and no folder demo_enfr: name the folder of a prepared"
    ):
        TokenStore(tmp_path / "demo_enfr/dataset/train.arrow")


# ---- batches ----


def test_a_row_over_the_limit_makes_a_run_of_its_own() -> None:
    runs = cut(np.arange(4), np.array([2, 90, 2, 2], np.int32), None, 10)
    assert [run.tolist() for run in runs] == [[0], [1], [2, 3]]


def test_collate_pads_on_the_right_and_shifts_the_target(tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    write_store(path, [([3, 4, END], [5, END]), ([6, END], [7, 8, 9, END])])
    batch = collate(TokenStore(path), [0, 1])
    assert batch.source.tolist() == [[3, 4, END], [6, END, PADDING]]
    assert batch.target.tolist() == [[5, END, PADDING, PADDING], [7, 8, 9, END]]
    assert batch.previous.tolist() == [[END, 5, PADDING, PADDING], [END, 7, 8, 9]]
