"""The preparation of a corpus in shards: whatever their number, every file is the same."""

import json
import random
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from convs2s.config.corpus import CleanLimits, Languages, VocabularySettings
from convs2s.config.task import CorpusMetadata, DatasetMetadata
from convs2s.data import store, word_counts
from convs2s.data.corpus import Sides, gather_shards, shard_corpus
from convs2s.data.counts import count_pairs
from convs2s.data.dataset import (
    binarize,
    build_vocabulary,
    join_blocks,
    learn_bpe,
    read_description,
)
from convs2s.data.store import ROWS_PER_BATCH, TokenStore, block_rows
from convs2s.data.vocabulary import read_counts
from convs2s.data.word_counts import add_word_counts, count_words
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import NO_MARK, read_line_pairs, read_lines, write_lines
from convs2s.text.corpus_filter import read_report, tokenize_and_filter
from convs2s.text.preparation import Preparation
from tests.support.damage import flipped

LANGUAGES = ("en", "fr")
CLEAN = CleanLimits(minimum=1, maximum=20, ratio=1.5)
CORPUS = CorpusMetadata(task="tiny", clean=CLEAN, paper_pairs=1000, stand_in=None)
VOCABULARY = VocabularySettings(merges=60)
DATASET = DatasetMetadata(
    task="tiny",
    languages=Languages(source="en", target="fr"),
    preparation="moses_test",
    vocabulary=VOCABULARY,
)
PAIRS = 200
MOST_TOKENS = 40


def write_raw(folder: Path) -> Sides:
    """Write a corpus with pairs that are dropped here and there."""
    generator = random.Random(1)
    letters = "abcdeé"
    sides = folder / "raw.en.zst", folder / "raw.fr.zst"
    for path in sides:
        words = ["".join(generator.choices(letters, k=generator.randint(1, 6))) for _ in range(40)]
        lines = (generator.choices(words, k=generator.randint(0, 22)) for _ in range(PAIRS))
        write_lines(path, (" ".join([*line, "."]) if line else "" for line in lines))
    return sides


@dataclass(frozen=True)
class Preparations:
    """A corpus that goes from raw text to the token store as by the rules, in some shards.

    Attributes:
        folder: where all files go.
        shards: how many; as many blocks.
        recipe: of the training text.
    """

    folder: Path
    shards: int
    recipe: str = "moses_train"

    @property
    def names(self) -> list[str]:
        return [f"{number}-of-{self.shards}" for number in range(1, self.shards + 1)]

    def parts(self, stage: str, end: str) -> list[Path]:
        return [self.folder / stage / f"train.{name}.{end}" for name in self.names]

    def pairs_of_parts(self, stage: str) -> list[Sides]:
        ends = ("en.zst", "fr.zst")
        return list(zip(*(self.parts(stage, end) for end in ends), strict=True))

    def sides(self, end: str) -> Sides:
        return self.folder / f"en.{end}", self.folder / f"fr.{end}"

    @property
    def report(self) -> Path:
        return self.folder / "train.json"

    @property
    def codes(self) -> Path:
        return self.folder / "codes"

    def clean(self, raw: Sides) -> None:
        """Cut the raw text into shards; filter each, count what was kept, join them again."""
        cut, cleaned = self.pairs_of_parts("raw"), self.pairs_of_parts("clean")
        shard_corpus(source=raw[0], target=raw[1], outputs=cut)
        english, french = (Preparation(self.recipe, language).prepare for language in LANGUAGES)
        reports = self.parts("clean", "json")
        limits = CLEAN.model_dump(exclude={"tokens"})
        for one, sides, report in zip(cut, cleaned, reports, strict=True):
            tokenize_and_filter(
                raw=one, sides=sides, report=report, prepare=(english, french), **limits
            )
        table = self.folder / "counts.txt"
        count_pairs(
            shards=reports, valid=reports[0], total=self.report, table=table, metadata=CORPUS
        )
        for language, text in zip(LANGUAGES, self.sides("zst"), strict=True):
            gather_shards(shards=self.parts("clean", f"{language}.zst"), output=text)

    def learn(self) -> None:
        """Count the words by blocks; learn codes and vocabularies from all of them."""
        words = self.sides("words.tsv.zst")
        for language, text, counts in zip(LANGUAGES, self.sides("zst"), words, strict=True):
            tables = self.parts("words", f"{language}.tsv.zst")
            for name, table in zip(self.names, tables, strict=True):
                count_words(
                    text=text, rows=block_rows(name, read_report(self.report)["kept"]), output=table
                )
            add_word_counts(tables=tables, output=counts)
        learn_bpe(words=words, output=self.codes, merges=VOCABULARY.merges)
        kept = VOCABULARY.model_dump(include={"threshold", "glossaries", "minimum_count"})
        for counts, table in zip(words, self.sides("tsv"), strict=True):
            build_vocabulary(words=counts, bpe_codes=self.codes, output=table, size=None, **kept)

    def number(self) -> Sides:
        """Number the tokens by blocks and join these; return the store and its description."""
        stores, descriptions = self.parts("dataset", "arrow"), self.parts("dataset", "json")
        for name, part, description in zip(self.names, stores, descriptions, strict=True):
            binarize(
                text=self.sides("zst"),
                bpe_codes=[self.codes],
                vocabularies=self.sides("tsv"),
                store=part,
                description=description,
                metadata=DATASET,
                most_tokens=MOST_TOKENS,
                rows=block_rows(name, read_report(self.report)["kept"]),
            )
        store, description = self.folder / "train.arrow", self.folder / "dataset.json"
        join_blocks(
            stores=stores,
            descriptions=descriptions,
            store=store,
            description=description,
            metadata=DATASET,
        )
        return store, description


def prepare(raw: Sides, folder: Path, shards: int, recipe: str = "moses_train") -> dict[str, str]:
    """Go from raw text to the token store as the rules do; return each result's checksum."""
    made = Preparations(folder, shards, recipe)
    made.clean(raw)
    made.learn()
    dataset = made.number()
    tables = [*made.sides("words.tsv.zst"), made.codes, *made.sides("tsv")]
    results = [*made.sides("zst"), *tables, *dataset, made.report]
    return {path.name: sha256(path) for path in results}


def test_results_do_not_depend_on_the_number_of_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROWS_PER_BATCH", 8)
    monkeypatch.setattr(word_counts, "_TYPES_IN_MEMORY", 16)
    raw = write_raw(tmp_path)
    one, *others = (prepare(raw, tmp_path / str(shards), shards) for shards in (1, 3, 16))
    assert len(one) == 10
    assert others == [one, one]
    counts = json.loads((tmp_path / "3/train.json").read_text("utf-8"))
    assert counts["read"] == PAIRS
    dropped = read_description(tmp_path / "3/dataset.json").dropped
    assert 0 < dropped < counts["kept"]
    assert counts["kept"] == len(TokenStore(tmp_path / "3/train.arrow")) + dropped
    assert min(counts["dropped"][reason] for reason in ("empty", "too_long", "ratio")) > 0


def test_lines_that_open_with_a_byte_order_mark_keep_it_in_any_shard(tmp_path: Path) -> None:
    raw = tmp_path / "raw.en.zst", tmp_path / "raw.fr.zst"
    for path in raw:
        write_lines(path, (f"\ufeffab \ufeffab {number % 3} ." for number in range(8)))
    one, many = (prepare(raw, tmp_path / str(n), n, "none") for n in (1, 8))
    assert many == one
    assert list(read_line_pairs(*Preparations(tmp_path / "8", 8).sides("zst"), mark=NO_MARK)) == [
        (f"\ufeffab \ufeffab {number % 3} .",) * 2 for number in range(8)
    ]
    assert ("\ufeffab", 16) in read_counts(tmp_path / "8/en.words.tsv.zst")


def test_a_damaged_block_is_not_joined(tmp_path: Path) -> None:
    raw = write_raw(tmp_path)
    made = Preparations(tmp_path / "made", 1)
    made.clean(raw)
    made.learn()
    joined, description = made.number()
    block = made.parts("dataset", "arrow")[0]
    whole = joined.read_bytes()
    content = block.read_bytes()
    block.write_bytes(flipped(content, 8 * (len(content) // 2)))
    with pytest.raises(UserError, match=rf"^{block}: damaged: .*; remove it and make it again$"):
        join_blocks(
            stores=[block],
            descriptions=made.parts("dataset", "json"),
            store=joined,
            description=description,
            metadata=DATASET,
        )
    assert joined.read_bytes() == whole


@pytest.mark.parametrize("rows", [0, 1, ROWS_PER_BATCH, 5 * ROWS_PER_BATCH + 1, 36_000_000])
@pytest.mark.parametrize("count", [1, 3, 16])
def test_blocks_hold_each_row_once_in_whole_batches(rows: int, count: int) -> None:
    parts = [block_rows(f"{number}-of-{count}", rows) for number in range(1, count + 1)]
    assert parts[0].start == 0
    assert parts[-1].stop == rows
    for part, following in pairwise(parts):
        assert part.stop == following.start
        assert part.stop % ROWS_PER_BATCH == 0 or part.stop == rows


def test_the_table_of_pairs_states_the_papers_number(tmp_path: Path) -> None:
    for name, kept in (("train", 1200), ("valid", 3)):
        dropped = dict.fromkeys(("empty", "too_long", "too_short", "ratio", "long_word"), 2)
        report = {"read": kept + 10, "kept": kept, "dropped": dropped}
        (tmp_path / name).write_text(json.dumps(report))
    metadata = CorpusMetadata(task="mine", clean=CLEAN, paper_pairs=35_500_000, stand_in="captions")
    table = tmp_path / "counts.txt"
    count = partial(
        count_pairs,
        shards=[tmp_path / "train"],
        valid=tmp_path / "valid",
        total=tmp_path / "train.json",
        table=table,
    )
    count(metadata=metadata)
    lines = list(read_lines(table))
    assert lines[0] == "STAND-IN DATA: captions"
    assert lines[5].split() == ["training", "validation"]
    assert lines[6].split() == ["read", "1,210", "13"]
    assert lines[-3].split() == ["kept", "1,200", "3"]
    assert lines[-1] == "The paper trains on 35,500,000 pairs."
    assert "one side over 1.5 times as long" in "".join(lines)
    unlimited = CLEAN.model_copy(update={"maximum": None, "ratio": None})
    count(metadata=metadata.model_copy(update={"clean": unlimited}))
    assert "None" not in table.read_text("utf-8")
    for name, maximum in (("train", 250), ("valid", 12)):
        path = tmp_path / name
        report = json.loads(path.read_text())
        path.write_text(json.dumps(report | {"settings": f"preparation moses, maximum {maximum}"}))
    message = (
        "train: was made with preparation moses, maximum 250, valid with preparation moses, "
        "maximum 12: bring back the task's files"
    )
    with pytest.raises(UserError, match=message):
        count(metadata=metadata)
