"""The preparation of a corpus in shards: whatever their number, every file is the same."""

import json
import random
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from convs2s.config_schema import schema, with_defaults
from convs2s.data import store, word_counts
from convs2s.data.corpus import shard
from convs2s.data.dataset import binarize, build_vocabulary, join_shards, write_codes
from convs2s.data.pair_counts import write_pair_counts
from convs2s.data.store import ROWS_PER_BATCH, TokenStore, shard_rows
from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.data.word_counts import added_counts, count_words
from convs2s.files import join_texts, read_lines, sha256, write_lines
from convs2s.text.corpus_filter import clean_corpus
from convs2s.text.preparation import Preparation

LANGUAGES = ("en", "fr")
CLEAN: dict[str, Any] = {"minimum": 1, "maximum": 20, "ratio": 1.5}
PAIRS = 200


def write_raw(folder: Path) -> tuple[Path, Path]:
    """Write a corpus with pairs that are dropped here and there."""
    generator = random.Random(1)
    letters = "abcdeé"
    sides = folder / "raw.en.zst", folder / "raw.fr.zst"
    for path in sides:
        words = ["".join(generator.choices(letters, k=generator.randint(1, 6))) for _ in range(40)]
        lines = (generator.choices(words, k=generator.randint(0, 22)) for _ in range(PAIRS))
        write_lines(path, (" ".join([*line, "."]) if line else "" for line in lines))
    return sides


def prepare(raw: tuple[Path, Path], folder: Path, shards: int) -> dict[str, str]:
    """Go from raw text to the token store as the rules do; return each result's checksum."""
    names = [f"{number}-of-{shards}" for number in range(1, shards + 1)]

    def parts(stage: str, end: str) -> list[Path]:
        return [folder / stage / f"train.{name}.{end}" for name in names]

    cut = list(zip(parts("raw", "en.zst"), parts("raw", "fr.zst"), strict=True))
    shard(*raw, cut)
    english, french = (Preparation("moses_train", language) for language in LANGUAGES)
    cleaned = zip(parts("clean", "en.zst"), parts("clean", "fr.zst"), strict=True)
    for sides, outputs, report in zip(cut, cleaned, parts("clean", "json"), strict=True):
        clean_corpus(*sides, *outputs, report, **CLEAN, prepare=(english.prepare, french.prepare))
    facts = {"task": "tiny", "clean": CLEAN, "paper_pairs": 1000, "stand_in": None}
    reports = parts("clean", "json")
    write_pair_counts(reports, reports[0], (folder / "train.json", folder / "counts.txt"), facts)
    kept = json.loads((folder / "train.json").read_text("utf-8"))["kept"]
    rows = [shard_rows(name, kept) for name in names]

    texts, words, vocabularies = (
        (folder / f"en.{end}", folder / f"fr.{end}") for end in ("zst", "words.tsv.zst", "tsv")
    )
    settings = with_defaults({"merges": 60}, schema("task")["properties"]["vocabulary"])
    for language, text, counts in zip(LANGUAGES, texts, words, strict=True):
        join_texts(parts("clean", f"{language}.zst"), text)
        tables = parts("words", f"{language}.tsv.zst")
        for taken, table in zip(rows, tables, strict=True):
            count_words(islice(read_lines(text, taken.start), len(taken)), table)
        write_counts(counts, added_counts(tables))
    codes = folder / "codes"
    write_codes(words, codes, settings["merges"])
    for counts, vocabulary in zip(words, vocabularies, strict=True):
        build_vocabulary(counts, codes, vocabulary, settings, None)

    facts = {"task": "tiny", "vocabulary": settings}
    stores, descriptions = parts("dataset", "arrow"), parts("dataset", "json")
    for taken, outputs in zip(rows, zip(stores, descriptions, strict=True), strict=True):
        binarize((texts[0], texts[1]), (codes, codes), vocabularies, outputs, facts, taken)
    outputs = folder / "train.arrow", folder / "dataset.json"
    join_shards(stores, descriptions, outputs, facts)
    results = [*texts, *words, codes, *vocabularies, *outputs, folder / "train.json"]
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
    assert counts["kept"] == len(TokenStore(tmp_path / "3/train.arrow"))
    assert min(counts["dropped"][reason] for reason in ("empty", "too_long", "ratio")) > 0


@pytest.mark.parametrize("rows", [0, 1, ROWS_PER_BATCH, 5 * ROWS_PER_BATCH + 1, 36_000_000])
@pytest.mark.parametrize("shards", [1, 3, 16])
def test_shards_hold_each_row_once_in_whole_batches(rows: int, shards: int) -> None:
    parts = [shard_rows(f"{number}-of-{shards}", rows) for number in range(1, shards + 1)]
    assert parts[0].start == 0
    assert parts[-1].stop == rows
    for part, following in pairwise(parts):
        assert part.stop == following.start
        assert part.stop % ROWS_PER_BATCH == 0 or part.stop == rows


def test_words_are_counted_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_counts, "_TYPES_IN_MEMORY", 3)
    count_words(["b a a", "c #", "", "d b é a"], tmp_path / "words.tsv")
    assert list(read_counts(tmp_path / "words.tsv")) == [
        ("#", 1),
        ("a", 3),
        ("b", 2),
        ("c", 1),
        ("d", 1),
        ("é", 1),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["words.tsv"]
    twice = added_counts([tmp_path / "words.tsv"] * 2)
    assert dict(twice)["a"] == 6


def test_the_table_of_pairs_states_the_papers_number(tmp_path: Path) -> None:
    for name, kept in (("train", 1200), ("valid", 3)):
        dropped = dict.fromkeys(("empty", "too_long", "too_short", "ratio", "long_word"), 2)
        report = {"read": kept + 10, "kept": kept, "dropped": dropped}
        (tmp_path / name).write_text(json.dumps(report))
    facts = {"task": "mine", "clean": CLEAN, "paper_pairs": 35_500_000, "stand_in": "captions"}
    outputs = tmp_path / "train.json", tmp_path / "counts.txt"
    write_pair_counts([tmp_path / "train"], tmp_path / "valid", outputs, facts)
    lines = list(read_lines(outputs[1]))
    assert lines[0] == "STAND-IN DATA: captions"
    assert lines[5].split() == ["training", "validation"]
    assert lines[6].split() == ["read", "1,210", "13"]
    assert lines[-3].split() == ["kept", "1,200", "3"]
    assert lines[-1] == "The paper trains on 35,500,000 pairs."
    assert "one side over 1.5 times as long" in "".join(lines)
