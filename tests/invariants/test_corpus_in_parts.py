"""Training text that is prepared at once or in parts, whatever their number: the same bytes."""

import json
import random
from pathlib import Path
from typing import Any

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
from convs2s.files.checksums import sha256
from convs2s.files.text import NO_MARK, read_line_pairs, read_lines, write_lines
from convs2s.text.corpus_filter import read_report, tokenize_and_filter
from convs2s.text.preparation import Preparation
from tests.support.local_files import FilesBelow
from tests.support.refusals import refusal, says

CLEAN = CleanLimits(minimum=1, maximum=20, ratio=1.5)
PAIRS = 200
WORDS = ["\ufeffab", "cde", "é", "Dogs"]


def write_raw(folder: Path, pairs: int = PAIRS) -> Sides:
    """Write a corpus with pairs that are dropped, and lines that open with a byte order mark."""
    draw = random.Random(1)
    sides = folder / "raw.en.zst", folder / "raw.fr.zst"
    for path in sides:
        lines = (draw.choices(WORDS, k=draw.randint(0, 22)) for _ in range(pairs - 2))
        write_lines(path, ["", WORDS[0], *map(" ".join, lines)])
    return sides


def prepare(raw: Sides, folder: Path, parts: int | None) -> Path:
    """Go from the files of a task to the words as the rules do; return their folder."""
    english, french = (
        Preparation("none", language).prepare for language in ("en", "fr")
    )
    filtering: dict[str, Any] = {"preparation": "none", "prepare": (english, french)}
    filtering |= CLEAN.model_dump(exclude={"tokens", "remove_overlap"})
    names = [(str(raw[0]), str(raw[1]))]
    corpus = RawText(names, FilesBelow(folder), HoldOutPart(10, held=False))
    sides, report = (folder / "train.en", folder / "train.fr"), folder / "train.json"
    if parts is None:
        prepare_training_text(corpus, sides=sides, report=report, **filtering)
        return folder
    numbers = range(parts)
    cut = [(folder / f"cut.{i}.en", folder / f"cut.{i}.fr") for i in numbers]
    clean = [(folder / f"clean.{i}.en", folder / f"clean.{i}.fr") for i in numbers]
    reports = [folder / f"clean.{i}.json" for i in numbers]
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
    assert set(made) == {"train.en", "train.fr", "train.json"}
    for parts in (1, 3, 16):
        assert checksums(prepare(raw, tmp_path / str(parts), parts)) == made, parts
    report = read_report(at_once / "train.json")
    lines = list(read_lines(at_once / "train.en", mark=NO_MARK))
    assert (report["read"], report["kept"]) == (PAIRS * 9 // 10, len(lines))
    assert all(report["dropped"][reason] for reason in ("empty", "too_long", "ratio"))
    assert report["settings"] == "preparation none, minimum 1, maximum 20, ratio 1.5"
    count_words(text=at_once / "train.en", output=tmp_path / "words.tsv")
    marked = " ".join(lines).split().count("\ufeffab")
    assert dict(read_counts(tmp_path / "words.tsv"))["\ufeffab"] == marked


def test_more_parts_than_lines_are_refused_with_the_option_that_sets_them(
    tmp_path: Path,
) -> None:
    raw = write_raw(tmp_path, 2)
    message = refusal(prepare, raw, tmp_path / "made", 3)
    says(message, "2 lines for 3 parts: set fewer, by --set-scatter parts=2")
    assert not list((tmp_path / "made").iterdir())


def write_report(path: Path, kept: int, settings: str = "maximum 250") -> Path:
    """Write a filter's report of which each reason has dropped two pairs."""
    dropped = dict.fromkeys(("empty", "too_long", "too_short", "ratio", "long_word"), 2)
    report = {"read": kept + 10, "kept": kept, "dropped": dropped, "settings": settings}
    path.write_text(json.dumps(report))
    return path


def test_the_table_of_pairs_states_the_papers_number(tmp_path: Path) -> None:
    train = write_report(tmp_path / "train", 1200)
    valid = write_report(tmp_path / "valid", 3)
    told: dict[str, Any] = {"paper_pairs": 35_500_000, "stand_in": "captions"}
    metadata = CorpusMetadata(task="mine", clean=CLEAN, **told)
    table = tmp_path / "counts.txt"
    count_pairs(train=train, valid=valid, table=table, metadata=metadata)
    lines = list(read_lines(table))
    assert lines[0] == "STAND-IN DATA: captions"
    assert lines[6].split() == ["read", "1,210", "13"]
    assert lines[-3].split() == ["kept", "1,200", "3"]
    assert lines[-1] == "The paper trains on 35,500,000 pairs."
    says("".join(lines), "one side over 1.5 times as long", "over 20 words")
    unlimited = CLEAN.model_copy(
        update={"maximum": None, "ratio": None, "remove_overlap": True}
    )
    metadata = metadata.model_copy(update={"clean": unlimited})
    count_pairs(train=train, valid=valid, table=table, metadata=metadata)
    assert "None" not in table.read_text("utf-8")
    rows = [" ".join(line.split()) for line in read_lines(table)]
    assert "dropped: a line of validation or test text 0 0" in rows
    write_report(valid, 3, "maximum 12")
    given = {"train": train, "valid": valid, "table": table, "metadata": metadata}
    message = refusal(count_pairs, **given)
    says(message, "train: was made with maximum 250", "valid with maximum 12: restore")
