"""From words to numbers, small enough for doing it by hand: codes, vocabularies, stores."""

from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from convs2s.config.corpus import VocabularySettings
from convs2s.config.settings import Settings
from convs2s.data import store as stores
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
    SPECIAL_TOKENS,
    most_frequent,
    read_counts,
    read_vocabulary,
    write_counts,
)
from convs2s.data.word_counts import added_counts, count_words
from convs2s.files.checksums import sha256
from convs2s.files.text import write_json
from convs2s.interop.taken_vocabulary import take_codes, take_vocabulary
from convs2s.model_file import load_model, save_model
from convs2s.scoring.data_counts import TrainingOverlap
from convs2s.text.bpe import read_codes
from tests.support.archives import flipped
from tests.support.golden import import_trained
from tests.support.refusals import refusal, refuses, says


def test_the_most_frequent_words_by_count_and_code_point(tmp_path: Path) -> None:
    counts = {"ba": 2, "ab": 2, "éa": 2, "zA": 2, "#": 2, '"\u2028': 5, "rare": 1}
    counts |= dict.fromkeys(SPECIAL_TOKENS, 9) | {"<s>": 8}
    kept = most_frequent(counts.items(), None, minimum_count=2)
    words = ('"\u2028', "#", "ab", "ba", "zA", "éa")
    assert tuple(word for word, _ in kept) == words
    assert most_frequent(counts.items(), 3) == kept[:3]
    write_counts(tmp_path / "table", kept)
    vocabulary = read_vocabulary(tmp_path / "table")
    assert vocabulary.tokens == (*SPECIAL_TOKENS, *words)
    assert vocabulary.encode(["ab", "<pad>", "</s>", "x"]) == [5, 2, 2, 2, END]
    assert "ab" in vocabulary
    assert "<pad>" not in vocabulary


def test_the_counts_of_parts_add_up_to_those_of_the_whole(tmp_path: Path) -> None:
    tables = []
    for part, text in enumerate(("b a b\nb\n", "\n", "c b\n")):
        (tmp_path / "text").write_text(text)
        tables.append(tmp_path / f"counts{part}")
        count_words(text=tmp_path / "text", output=tables[part])
    assert list(added_counts(tables)) == [("a", 1), ("b", 4), ("c", 1)]


SOURCE = """\
the dog sees the cat
the cat
a <unk> dog </s>
"""
TARGET = """\
le chien voit
le chat dort
un <pad> chien <s>
"""
STORED = """\
the dog <unk> the cat </s>
le chien <unk> </s>
the cat </s>
le chat <unk> </s>
a <unk> dog <unk> </s>
<unk> <unk> chien <unk> </s>
"""


def test_a_store_holds_the_words_numbers_and_its_description_counts_them(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "train.en", tmp_path / "train.fr"
    text[0].write_text(SOURCE)
    text[1].write_text(TARGET)
    tables = tmp_path / "en.tsv", tmp_path / "fr.tsv"
    tables[0].write_text("type\tcount\nthe\t3\ncat\t2\ndog\t2\na\t1\n")
    tables[1].write_text("type\tcount\nle\t2\nchien\t2\nchat\t1\n")
    path, description = tmp_path / "train.arrow", tmp_path / "train.json"
    make_store = partial(
        binarize,
        text=text,
        bpe_codes=(),
        vocabularies=tables,
        store=path,
        description=description,
        metadata=settings.dataset_metadata("demo_en_fr_word"),
    )
    make_store(most_tokens=None)
    sides = [read_vocabulary(table) for table in tables]
    found = [
        " ".join(vocabulary.decode(side.tolist()))
        for pair in TokenStore(path)
        for vocabulary, side in zip(sides, pair, strict=True)
    ]
    assert found == STORED.splitlines()
    said = read_description(description)
    assert (said.pairs, said.dropped) == (3, 0)
    assert (said.source_tokens, said.target_tokens) == (14, 13)
    assert (said.source_unknown, said.target_unknown) == (3, 5)
    assert said.sha256 == sha256(path)
    # Pairs of too many tokens are dropped, counted and said. The end token does not count.
    make_store(most_tokens=4)
    says(capsys.readouterr().out, "dropped 1 pairs of more than 4 tokens")
    assert TokenStore(path).lengths("source").tolist() == [3, 5]
    table = tmp_path / "counts.txt"
    write_json(tmp_path / "overlap", TrainingOverlap(0, {}))
    count_dataset(
        train=description,
        valid=description,
        tests={},
        encoding=Encoding([], [], []),
        overlap=tmp_path / "overlap",
        table=table,
        counts=tmp_path / "counts.json",
        most_tokens=4,
    )
    rows = " ".join(table.read_text().split())
    says(rows, "kept by words 3 3 dropped: over 4 tokens 1 1 kept 2 2")
    make_store(most_tokens=5)
    assert len(TokenStore(path)) == 3


def test_what_the_least_count_leaves_out_is_split_as_it_was_counted(
    tmp_path: Path,
) -> None:
    """ab and ac reach the threshold, not the least count; their parts together reach it."""
    words, codes, table = tmp_path / "words", tmp_path / "codes", tmp_path / "en.tsv"
    write_counts(words, [("ab", 3), ("ac", 3), ("b", 5), ("c", 5), ("de", 6)])
    learn_bpe(words=[words], output=codes, merges=10)
    build = partial(
        build_vocabulary,
        words=words,
        bpe_codes=codes,
        output=table,
        size=None,
        glossaries=(),
    )
    build(threshold=2, minimum_count=5)
    settings = VocabularySettings(merges=10, threshold=2, minimum_count=5)
    tokens = line_encoder(codes, table, settings)("ab ac b c de")
    assert " ".join(read_vocabulary(table).decode(tokens)) == "a@@ b a@@ c b c de </s>"
    assert dict(read_counts(table)) == {"b": 8, "c": 8, "a@@": 6, "de": 6}
    for threshold in (5, 6):  # b and c stay whole, as they occur five times; then not
        build(threshold=threshold, minimum_count=1)
        assert read_vocabulary(table).tokens[3:] == ("b", "c", "a@@", "de")
    message = refusal(build, threshold=9, minimum_count=1)
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
    sources = store.lengths("source")
    targets = store.lengths("target")
    assert [sources.dtype, targets.dtype] == [np.dtype("uint16"), np.dtype("uint8")]
    assert sources.tolist()[-3:] == [2, 300, 2]
    assert targets.tolist()[-3:] == [1, 255, 2]


def test_a_store_that_is_absent_or_of_other_batches_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dataset/train.arrow"
    refuses(f"no such file: run `snakemake {path}` to make it", TokenStore, path)
    message = refusal(TokenStore, tmp_path / "demo_enfr/dataset/train.arrow")
    says(message, "and no folder demo_enfr: name the folder of a prepared")
    with monkeypatch.context() as patch:
        patch.setattr(stores, "ROWS_PER_BATCH", 4)
        write_store(path, [([END], [END])] * 6)
    says(refusal(TokenStore, path), f"{path}: ", "`snakemake prepare`")


# ---- codes and vocabularies out of a model file ----


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_trained(tmp_path_factory.mktemp("model"))


@pytest.fixture
def words(tmp_path: Path) -> Path:
    table = tmp_path / "words.tsv"
    table.write_text("type\tcount\nthe\t3\nthethe\t2\nw3\t7\n")
    return table


def codes_of(model: Path, words: Path) -> str:
    output = words.with_name("codes")
    take_codes(model=model, output=output)
    return read_codes(output)


def counts_of(
    model: Path,
    words: Path,
    kind: str = "bpe",
    side: Literal["source", "target"] = "source",
) -> dict[str, int]:
    """Take a vocabulary; return how often each of its types occurs in the text."""
    output = words.with_name("types.tsv")
    take_vocabulary(model=model, words=words, side=side, vocabulary=kind, output=output)
    return dict(read_counts(output))


def test_codes_and_types_are_the_models_and_counts_the_texts(
    imported: Path, words: Path
) -> None:
    network, description = load_model(imported)
    assert codes_of(imported, words) == description.bpe_codes
    assert list(counts_of(imported, words, side="target")) == description.target_types
    counts = counts_of(imported, words)
    assert list(counts) == description.source_types
    # "thethe" ends with it, unless the codes split it elsewhere.
    assert counts["the"] in (3, 5)
    assert 0 in counts.values()
    # What a model file does not hold is refused.
    changed = words.with_name("changed")
    others = [f"other{number}" for number in range(len(description.target_types))]
    for key, types, taken, said in (
        ("splittable", ["the"], counts_of, "its vocabulary has a threshold"),
        ("target_types", others, codes_of, "the two sides have different codes"),
    ):
        described = description.model_copy(update={key: types})
        save_model(changed, network.state_dict(), described)
        refuses(said, taken, changed, words)
    content = imported.read_bytes()
    changed.write_bytes(flipped(content, 8 * len(content) - 4))
    damaged = "damaged: its content does not match its digest"
    for taken in (codes_of, counts_of):
        refuses(damaged, taken, changed, words)


def test_a_model_of_words_gives_a_word_task_its_words(model: Path, words: Path) -> None:
    refuses("whole words ... no BPE codes", codes_of, model, words)
    counts = counts_of(model, words, "word")
    assert counts["w3"] == 7
    assert "the" not in counts
    refuses("is of the kind word: write `kind: word`", counts_of, model, words)
