"""From words to numbers, small enough for doing it by hand: codes, vocabularies, stores."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.task import DatasetMetadata
from convs2s.data import store as stores
from convs2s.data.batches import collate
from convs2s.data.dataset import (
    binarize,
    build_vocabulary,
    learn_bpe,
    line_encoder,
    read_description,
)
from convs2s.data.dataset_counts import Encoding, count_dataset
from convs2s.data.store import ROWS_PER_BATCH, TokenStore, write_store
from convs2s.data.vocabulary import (
    END,
    PADDING,
    SPECIAL_TOKENS,
    UNKNOWN,
    most_frequent,
    read_counts,
    read_vocabulary,
    write_counts,
)
from convs2s.data.word_counts import added_counts, count_words
from convs2s.files.checksums import sha256
from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.data_counts import TrainingOverlap
from convs2s.text.reserved_words import RESERVED_WORDS
from tests.support.refusals import refusal, says

SOURCE = ["the dog sees the cat", "the cat", "a <unk> dog </s>"]
TARGET = ["le chien voit le chat", "le chat dort", "un <pad> chien <s>"]
OF_ALL: dict[str, Any] = {"threshold": 0, "glossaries": (), "minimum_count": 1}


def test_the_most_frequent_words_by_count_and_code_point(tmp_path: Path) -> None:
    counts = {"ba": 2, "ab": 2, "éa": 2, "zA": 2, "#": 2, '"\u2028': 5, "rare": 1}
    counts |= dict.fromkeys(SPECIAL_TOKENS, 9) | {"<s>": 8}
    kept = most_frequent(counts.items(), None, minimum_count=2)
    words = ('"\u2028', "#", "ab", "ba", "zA", "éa")
    assert tuple(word for word, _ in kept) == words
    assert most_frequent(counts.items(), 3) == kept[:3]
    assert RESERVED_WORDS.issuperset(SPECIAL_TOKENS)
    write_counts(tmp_path / "table", kept)
    vocabulary = read_vocabulary(tmp_path / "table")
    assert vocabulary.tokens == (*SPECIAL_TOKENS, *words)
    assert vocabulary.encode(["ab", "<pad>", "</s>", "x"]) == [5, 2, 2, 2, END]
    assert vocabulary.decode([5, UNKNOWN, END]) == ["ab", "<unk>", "</s>"]
    assert "ab" in vocabulary
    assert "<pad>" not in vocabulary


def test_the_counts_of_parts_add_up_to_those_of_the_whole(tmp_path: Path) -> None:
    words = [f"w{number * 7 % 101}" for number in range(601)]
    tables = []
    for part, length in enumerate((0, 1, 100, 601)):
        write_lines(tmp_path / "text", [" ".join(words[:length]), ""])
        tables.append(tmp_path / f"counts{part}")
        count_words(text=tmp_path / "text", output=tables[part])
    assert list(read_counts(tables[-1])) == sorted(Counter(words).items())
    total = Counter(words[:1]) + Counter(words[:100]) + Counter(words)
    assert list(added_counts(tables)) == sorted(total.items())


def store_of(
    folder: Path, most_tokens: int | None, merges: int | None
) -> tuple[Path, Path]:
    """Go from text to the store of three pairs and its description, as the rules do."""
    sides = folder / "train.en", folder / "train.fr"
    tables = folder / "en.tsv", folder / "fr.tsv"
    codes: list[Path] = []
    for text, table, lines in zip(sides, tables, (SOURCE, TARGET), strict=True):
        write_lines(text, lines)
        words = folder / f"words.{table.name}"
        write_lines(folder / "thrice", lines * 3)  # codes are of pairs that occur twice
        count_words(text=folder / "thrice", output=words)
        if merges is not None:
            codes.append(folder / f"codes.{table.name}")
            learn_bpe(words=[words], output=codes[-1], merges=merges)
        code = codes[-1] if codes else None
        build_vocabulary(words=words, bpe_codes=code, output=table, size=4, **OF_ALL)
    kind = {"kind": "word"} if merges is None else {"kind": "bpe", "merges": merges}
    metadata = DatasetMetadata(
        task="tiny",
        languages=Languages(source="en", target="fr"),
        preparation="none",
        vocabulary=VocabularySettings.model_validate(kind),
    )
    store, description = folder / "train.arrow", folder / "train.json"
    binarize(
        text=sides,
        bpe_codes=codes,
        vocabularies=tables,
        store=store,
        description=description,
        metadata=metadata,
        most_tokens=most_tokens,
    )
    return store, description


@pytest.mark.parametrize("merges", [None, 40], ids=["words", "BPE"])
def test_a_store_holds_the_words_numbers_and_its_description_counts_them(
    tmp_path: Path, merges: int | None
) -> None:
    # the 3, cat 4, dog 5, a 6; le 3, chat 4, chien 5, dort 6.
    expected = [
        ([3, 5, UNKNOWN, 3, 4, END], [3, 5, UNKNOWN, 3, 4, END]),
        ([3, 4, END], [3, 4, 6, END]),
        ([6, UNKNOWN, 5, UNKNOWN, END], [UNKNOWN, UNKNOWN, 5, UNKNOWN, END]),
    ]
    path, description = store_of(tmp_path, None, merges)
    store = TokenStore(path)
    assert [tuple(side.tolist() for side in pair) for pair in store] == expected
    assert store.lengths("target").tolist() == [6, 4, 5]
    said = read_description(description)
    assert (said.pairs, said.dropped) == (3, 0)
    assert (said.source_tokens, said.target_tokens) == (14, 15)
    assert (said.source_unknown, said.target_unknown) == (3, 4)
    assert said.sha256 == sha256(path)


def test_pairs_of_too_many_tokens_are_dropped_counted_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {most: store_of(tmp_path / str(most), most, None) for most in (2, 4, 5)}
    says(capsys.readouterr().out, "dropped 1 pairs of more than 4 tokens")
    assert TokenStore(made[4][0]).lengths("source").tolist() == [3, 5]
    assert len(TokenStore(made[5][0])) == 3, "the end token does not count"
    table = tmp_path / "counts"
    write_json(tmp_path / "overlap", TrainingOverlap(0, {}))
    count_dataset(
        train=made[4][1],
        valid=made[2][1],
        tests={},
        encoding=Encoding([], [], []),
        overlap=tmp_path / "overlap",
        table=table,
        counts=tmp_path / "counts.json",
        most_tokens=4,
    )
    rows = [line.split() for line in read_lines(table)]
    assert rows[4:7] == [
        ["kept", "by", "words", "3", "3"],
        ["dropped:", "over", "4", "tokens", "1", "3"],
        ["kept", "2", "0"],
    ]


def test_joint_codes_are_of_both_sides_words(tmp_path: Path) -> None:
    """x y is the most frequent pair of letters of both sides together, and of neither alone."""
    tables = tmp_path / "en.tsv", tmp_path / "fr.tsv"
    write_counts(tables[0], [("ab", 5), ("xy", 4)])
    write_counts(tables[1], [("cd", 5), ("xy", 4)])
    learn_bpe(words=tables, output=tmp_path / "codes", merges=1)
    assert (tmp_path / "codes").read_text("utf-8").splitlines()[1:] == ["x y</w>"]


def test_what_the_least_count_leaves_out_is_split_as_it_was_counted(
    tmp_path: Path,
) -> None:
    """ab and ac reach the threshold, not the least count; their parts together reach it."""
    words, codes, table = tmp_path / "words", tmp_path / "codes", tmp_path / "en.tsv"
    counts = {"ab": 3, "ac": 3, "b": 5, "c": 5, "de": 6}
    write_counts(words, counts.items())
    learn_bpe(words=[words], output=codes, merges=10)
    settings = VocabularySettings(merges=10, threshold=2, minimum_count=5)
    kept = settings.model_dump(include={"threshold", "glossaries", "minimum_count"})
    given: dict[str, Any] = {"words": words, "bpe_codes": codes, "size": None}
    build_vocabulary(output=table, **given, **kept)
    encode = line_encoder(codes, table, settings)
    types = read_vocabulary(table)
    found: Counter[str] = Counter()
    for word, count in counts.items():
        found.update(types.decode(encode(word)[:-1]) * count)
    assert found == dict(read_counts(table)) == {"b": 8, "c": 8, "a@@": 6, "de": 6}
    for threshold in (5, 6):  # b and c stay whole, as they occur five times; then not
        build_vocabulary(output=table, **given, **OF_ALL | {"threshold": threshold})
        assert read_vocabulary(table).tokens[3:] == ("b", "c", "a@@", "de")
    message = refusal(
        build_vocabulary, output=table, **given, **OF_ALL | {"threshold": 9}
    )
    says(message, f"{words}: no BPE token occurs 9 times: lower threshold")


def test_a_store_gives_back_what_was_written(tmp_path: Path) -> None:
    pairs = [([index % 50 + 3, END], [END]) for index in range(ROWS_PER_BATCH)]
    pairs += [([3] * 299 + [END], [3] * 254 + [END]), ([7, END], [8, END])]
    path = tmp_path / "train.arrow"
    assert write_store(path, iter(pairs)) == len(pairs)
    store = TokenStore(path)
    assert len(store) == len(pairs)
    for index in (0, ROWS_PER_BATCH - 1, ROWS_PER_BATCH, ROWS_PER_BATCH + 1):
        assert tuple(side.tolist() for side in store[index]) == pairs[index]
    for number, side, kind in ((0, "source", np.uint16), (1, "target", np.uint8)):
        lengths = store.lengths(side)
        assert lengths.dtype == kind
        assert lengths.tolist() == [len(pair[number]) for pair in pairs]


def test_a_store_that_is_absent_or_of_other_batches_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dataset/train.arrow"
    says(refusal(TokenStore, path), f"no such file: run `snakemake {path}` to make it")
    message = refusal(TokenStore, tmp_path / "demo_enfr/dataset/train.arrow")
    says(message, "and no folder demo_enfr: name the folder of a prepared")
    with monkeypatch.context() as patch:
        patch.setattr(stores, "ROWS_PER_BATCH", 4)
        write_store(path, [([END], [END])] * 6)
    says(refusal(TokenStore, path), f"{path}: ", "`snakemake prepare`")


def test_collate_pads_on_the_right_and_shifts_the_target(tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    write_store(path, [([3, 4, END], [5, END]), ([6, END], [7, 8, 9, END])])
    batch = collate(TokenStore(path), [0, 1])
    assert batch.source.tolist() == [[3, 4, END], [6, END, PADDING]]
    assert batch.target.tolist() == [[5, END, PADDING, PADDING], [7, 8, 9, END]]
    assert batch.previous.tolist() == [[END, 5, PADDING, PADDING], [END, 7, 8, 9]]
