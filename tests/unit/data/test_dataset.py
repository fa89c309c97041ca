"""From words to numbers, small enough for doing it by hand: codes, vocabularies, stores."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import (
    binarize,
    build_vocabulary,
    count_dataset,
    frequent_tokens,
    learn_bpe,
    line_encoder,
    read_description,
)
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import (
    END,
    UNKNOWN,
    read_counts,
    read_vocabulary,
    write_counts,
)
from convs2s.data.word_counts import count_words
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import read_lines, write_lines

SOURCE = ["the dog sees the cat", "the cat", "a dog"]
TARGET = ["le chien voit le chat", "le chat dort", "un chien"]
OF_ALL_WORDS: dict[str, Any] = {"threshold": 0, "glossaries": (), "minimum_count": 1}


def vocabulary(
    folder: Path, name: str, counts: list[tuple[str, int]], size: int | None
) -> Path:
    words, table = folder / f"{name}.words.tsv", folder / f"{name}.tsv"
    write_counts(words, sorted(counts))
    build_vocabulary(
        words=words, bpe_codes=None, output=table, size=size, **OF_ALL_WORDS
    )
    return table


def metadata(preparation: str, settings: VocabularySettings) -> DatasetMetadata:
    return DatasetMetadata(
        task="tiny",
        languages=Languages(source="en", target="fr"),
        preparation=preparation,
        vocabulary=settings,
    )


def store_of(tmp_path: Path, most_tokens: int | None) -> tuple[Path, Path]:
    """The store of three pairs, of which the rarest words are unknown, and its description."""
    english = [("the", 3), ("dog", 2), ("cat", 2), ("a", 1), ("sees", 1)]
    french = [("le", 3), ("chien", 2), ("chat", 2), ("un", 1), ("voit", 1), ("dort", 1)]
    tables = [
        vocabulary(tmp_path, "en", english, 3),
        vocabulary(tmp_path, "fr", french, 4),
    ]
    sides = tmp_path / "train.en", tmp_path / "train.fr"
    for path, lines in zip(sides, (SOURCE, TARGET), strict=True):
        write_lines(path, lines)
    store, description = tmp_path / "train.arrow", tmp_path / "train.json"
    binarize(
        text=sides,
        bpe_codes=(),
        vocabularies=tables,
        store=store,
        description=description,
        metadata=metadata("moses_test", VocabularySettings(kind="word")),
        most_tokens=most_tokens,
    )
    return store, description


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    return store_of(tmp_path, None)


def test_a_store_holds_the_words_numbers_each_with_its_end(
    made: tuple[Path, Path],
) -> None:
    # the 3, cat 4, dog 5; le 3, chat 4, chien 5, dort 6.
    expected = [
        ([3, 5, UNKNOWN, 3, 4, END], [3, 5, UNKNOWN, 3, 4, END]),
        ([3, 4, END], [3, 4, 6, END]),
        ([UNKNOWN, 5, END], [UNKNOWN, 5, END]),
    ]
    assert [
        tuple(side.tolist() for side in pair) for pair in TokenStore(made[0])
    ] == expected
    assert TokenStore(made[0]).lengths("target").tolist() == [6, 4, 3]


def test_a_description_counts_what_the_store_holds(made: tuple[Path, Path]) -> None:
    said = read_description(made[1])
    assert said.pairs == 3
    assert (said.source_tokens, said.target_tokens) == (12, 13)
    assert (said.source_unknown, said.target_unknown) == (2, 2)
    assert said.sha256 == sha256(made[0])


def test_pairs_of_too_many_tokens_are_dropped_counted_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (store, train), (_, valid), (whole, _) = (
        store_of(tmp_path / str(most), most) for most in (3, 2, 5)
    )
    assert "dropped 1 pairs of more than 3 tokens" in capsys.readouterr().out
    assert TokenStore(store).lengths("source").tolist() == [3, 3]
    assert read_description(train).dropped == 1
    assert len(TokenStore(whole)) == 3, "the end token does not count"
    table = tmp_path / "counts.txt"
    count_dataset(train=train, valid=valid, table=table, most_tokens=3)
    rows = [line.split() for line in read_lines(table)]
    assert rows[-3:] == [
        ["kept", "by", "words", "3", "3"],
        ["dropped:", "over", "3", "tokens", "1", "2"],
        ["kept", "2", "1"],
    ]


SPELT = ["<unk> the <unk> ## </s>", "<pad> the <s> dog"]
"""Text that comes tokenized, and has words that are spelt like special tokens."""


@pytest.mark.parametrize("merges", [None, 20], ids=["words", "BPE"])
def test_words_spelt_like_special_tokens_are_unknown(
    tmp_path: Path, merges: int | None
) -> None:
    text, words, table, codes = (
        tmp_path / name for name in ("en", "words", "en.tsv", "codes")
    )
    write_lines(text, SPELT * 3)
    count_words(text=text, output=words)
    assert dict(read_counts(words)) == {
        **{"<pad>": 3, "</s>": 3, "<s>": 3, "<unk>": 6},
        **{"##": 3, "the": 6, "dog": 3},
    }
    if merges is not None:
        learn_bpe(words=[words], output=codes, merges=merges)
    bpe_codes = None if merges is None else codes
    build_vocabulary(
        words=words, bpe_codes=bpe_codes, output=table, size=None, **OF_ALL_WORDS
    )
    assert [word for word, _ in read_counts(table)] == ["the", "##", "dog"]
    description = tmp_path / "train.json"
    kind = {"kind": "word"} if merges is None else {"kind": "bpe", "merges": merges}
    binarize(
        text=(text, text),
        bpe_codes=() if merges is None else (codes,),
        vocabularies=(table, table),
        store=tmp_path / "train.arrow",
        description=description,
        metadata=metadata("none", VocabularySettings.model_validate(kind)),
    )
    first, second = (
        TokenStore(tmp_path / "train.arrow")[0],
        TokenStore(tmp_path / "train.arrow")[1],
    )
    assert first[0].tolist() == [UNKNOWN, 3, UNKNOWN, 4, UNKNOWN, END]
    assert second[1].tolist() == [UNKNOWN, 3, UNKNOWN, 5, END]
    assert read_description(description).source_unknown == 3 * (3 + 2)


def test_joint_codes_are_of_both_sides_words(tmp_path: Path) -> None:
    """x y is the most frequent pair of letters of both sides together, and of neither alone."""
    tables = tmp_path / "en.tsv", tmp_path / "fr.tsv"
    write_counts(tables[0], [("ab", 5), ("xy", 4)])
    write_counts(tables[1], [("cd", 5), ("xy", 4)])
    codes = tmp_path / "codes"
    learn_bpe(words=tables, output=codes, merges=1)
    assert codes.read_text("utf-8").splitlines()[1:] == ["x y</w>"]


def test_what_the_least_count_leaves_out_is_split_as_it_was_counted(
    tmp_path: Path,
) -> None:
    """ab and ac reach the threshold, not the least count; their parts together reach it."""
    words, codes, table = (tmp_path / name for name in ("words", "codes", "en.tsv"))
    counts = {"ab": 3, "ac": 3, "b": 5, "c": 5, "de": 6}
    write_counts(words, counts.items())
    learn_bpe(words=[words], output=codes, merges=10)
    settings = VocabularySettings(merges=10, threshold=2, minimum_count=5)
    kept = settings.model_dump(include={"threshold", "glossaries", "minimum_count"})
    build_vocabulary(words=words, bpe_codes=codes, output=table, size=None, **kept)
    encode = line_encoder(codes, table, settings)
    types = read_vocabulary(table)
    found = Counter(
        token
        for word in counts
        for token in types.decode(encode(word)[:-1]) * counts[word]
    )
    assert found == dict(read_counts(table)) == {"b": 8, "c": 8, "a@@": 6, "de": 6}


def test_a_threshold_that_no_token_reaches_is_refused(tmp_path: Path) -> None:
    words, codes = tmp_path / "words", tmp_path / "codes"
    write_counts(words, {"ab": 3}.items())
    learn_bpe(words=[words], output=codes, merges=10)
    kept = OF_ALL_WORDS | {"threshold": 9}
    with pytest.raises(
        UserError, match=rf"^{words}: no BPE token occurs 9 times: lower threshold"
    ):
        build_vocabulary(
            words=words, bpe_codes=codes, output=tmp_path / "table", size=None, **kept
        )


def test_a_token_that_reaches_the_threshold_is_frequent() -> None:
    assert frequent_tokens([("a", 3), ("b", 2), ("c", 4)], 3) == {"a", "c"}
