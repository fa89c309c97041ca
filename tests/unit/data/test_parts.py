"""Training text that is prepared at once or in parts, whatever their number: the same bytes."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.corpus import CleanLimits, HoldOutPart
from convs2s.config.task import CorpusMetadata
from convs2s.data.corpus import (
    RawText,
    Sides,
    join_training_text,
    prepare_training_text,
    split_training_text,
)
from convs2s.data.counts import count_pairs
from convs2s.data.vocabulary import read_counts
from convs2s.data.word_counts import count_words
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import NO_MARK, read_line_pairs, read_lines, write_lines
from convs2s.text.corpus_filter import read_report, tokenize_and_filter
from convs2s.text.preparation import Preparation
from tests.support.local_files import FilesBelow

CLEAN = CleanLimits(minimum=1, maximum=20, ratio=1.5)
PAIRS = 200


def write_raw(folder: Path) -> Sides:
    """Write a corpus with pairs that are dropped here and there."""
    generator = random.Random(1)
    letters = "abcdeé"
    sides = folder / "raw.en.zst", folder / "raw.fr.zst"
    for path in sides:
        words = [
            "".join(generator.choices(letters, k=generator.randint(1, 6)))
            for _ in range(40)
        ]
        lines = (
            generator.choices(words, k=generator.randint(0, 22)) for _ in range(PAIRS)
        )
        write_lines(path, (" ".join([*line, "."]) if line else "" for line in lines))
    return sides


def prepare(
    raw: Sides, folder: Path, parts: int | None, recipe: str = "moses_train"
) -> Path:
    """Go from the files of a task to the words as the rules do; return their folder."""
    english, french = (
        Preparation(recipe, language).prepare for language in ("en", "fr")
    )
    filtering: dict[str, Any] = {
        "preparation": recipe,
        "prepare": (english, french),
        **CLEAN.model_dump(exclude={"tokens"}),
    }
    corpus = RawText(
        [(str(raw[0]), str(raw[1]))],
        FilesBelow(folder),
        HoldOutPart(10, held=False),
    )
    sides, report = (
        (folder / "train.en.zst", folder / "train.fr.zst"),
        folder / "train.json",
    )
    if parts is None:
        prepare_training_text(corpus, sides=sides, report=report, **filtering)
        return folder
    cut, clean = (
        [
            (folder / f"{stage}.{i}.en.zst", folder / f"{stage}.{i}.fr.zst")
            for i in range(parts)
        ]
        for stage in ("cut", "clean")
    )
    reports = [folder / f"clean.{i}.json" for i in range(parts)]
    split_training_text(corpus, parts=cut)
    for one, other, of_part in zip(cut, clean, reports, strict=True):
        text = read_line_pairs(*one, mark=NO_MARK)
        tokenize_and_filter(text, sides=other, report=of_part, **filtering)
    join_training_text(parts=clean, reports=reports, sides=sides, report=report)
    return folder


def checksums(folder: Path) -> dict[str, str]:
    """Return the checksums of what the rules keep."""
    return {path.name: sha256(path) for path in folder.glob("train.*")}


def test_results_do_not_depend_on_the_number_of_parts(tmp_path: Path) -> None:
    raw = write_raw(tmp_path)
    at_once = prepare(raw, tmp_path / "at once", None)
    made = checksums(at_once)
    assert set(made) == {"train.en.zst", "train.fr.zst", "train.json"}
    for parts in (1, 3, 16):
        assert checksums(prepare(raw, tmp_path / str(parts), parts)) == made, parts
    report = read_report(at_once / "train.json")
    assert report["read"] == PAIRS * 9 // 10
    assert report["kept"] == len(list(read_lines(at_once / "train.en.zst"))) > 0
    assert (
        min(report["dropped"][reason] for reason in ("empty", "too_long", "ratio")) > 0
    )
    assert (
        report["settings"]
        == "preparation moses_train, minimum 1, maximum 20, ratio 1.5"
    )


def test_lines_that_open_with_a_byte_order_mark_keep_it_in_any_part(
    tmp_path: Path,
) -> None:
    raw = tmp_path / "raw.en", tmp_path / "raw.fr"
    lines = [f"\ufeffab \ufeffab {number % 3} ." for number in range(8)]
    for path in raw:
        write_lines(path, ["", *lines])
    at_once, many = (
        prepare(raw, tmp_path / str(parts), parts, "none") for parts in (None, 8)
    )
    assert checksums(at_once) == checksums(many)
    assert list(read_lines(many / "train.en.zst", mark=NO_MARK)) == lines
    count_words(text=many / "train.en.zst", output=tmp_path / "words.tsv")
    assert ("\ufeffab", 16) in read_counts(tmp_path / "words.tsv")


def test_more_parts_than_lines_are_refused_with_the_option_that_sets_them(
    tmp_path: Path,
) -> None:
    raw = tmp_path / "raw.en", tmp_path / "raw.fr"
    for path in raw:
        write_lines(path, ["a", "b"])
    message = "2 lines for 3 parts: set fewer, by --set-scatter parts=2"
    with pytest.raises(UserError, match=message):
        prepare(raw, tmp_path / "made", 3)
    assert not list((tmp_path / "made").iterdir())


def write_report(path: Path, kept: int, settings: str = "maximum 250") -> Path:
    """Write a filter's report of which each reason has dropped two pairs."""
    dropped = dict.fromkeys(("empty", "too_long", "too_short", "ratio", "long_word"), 2)
    report = {"read": kept + 10, "kept": kept, "dropped": dropped}
    path.write_text(json.dumps({**report, "settings": settings}))
    return path


def test_texts_of_different_settings_are_not_counted_together(tmp_path: Path) -> None:
    metadata = CorpusMetadata(task="mine", clean=CLEAN, paper_pairs=None, stand_in=None)
    table = tmp_path / "counts.txt"
    train = write_report(tmp_path / "train", 1200)
    valid = write_report(tmp_path / "valid", 3)
    count_pairs(train=train, valid=valid, table=table, metadata=metadata)
    valid = write_report(tmp_path / "valid", 3, "maximum 12")
    message = (
        "train: was made with maximum 250, .*valid with maximum 12: restore the task's"
    )
    with pytest.raises(UserError, match=message):
        count_pairs(train=train, valid=valid, table=table, metadata=metadata)


def test_the_table_of_pairs_states_the_papers_number(tmp_path: Path) -> None:
    train, valid = (
        write_report(tmp_path / "train", 1200),
        write_report(tmp_path / "valid", 3),
    )
    metadata = CorpusMetadata(
        task="mine", clean=CLEAN, paper_pairs=35_500_000, stand_in="captions"
    )
    table = tmp_path / "counts.txt"
    count_pairs(train=train, valid=valid, table=table, metadata=metadata)
    lines = list(read_lines(table))
    assert lines[0] == "STAND-IN DATA: captions"
    assert lines[5].split() == ["training", "validation"]
    assert lines[6].split() == ["read", "1,210", "13"]
    assert lines[-3].split() == ["kept", "1,200", "3"]
    assert lines[-1] == "The paper trains on 35,500,000 pairs."
    assert "one side over 1.5 times as long" in "".join(lines)
    unlimited = CLEAN.model_copy(update={"maximum": None, "ratio": None})
    metadata = metadata.model_copy(update={"clean": unlimited})
    count_pairs(train=train, valid=valid, table=table, metadata=metadata)
    assert "None" not in table.read_text("utf-8")
