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
from convs2s.files.text import NO_MARK, read_line_pairs, read_lines, write_lines
from convs2s.text.corpus_filter import read_report, tokenize_and_filter
from convs2s.text.preparation import Preparation
from tests.support.archives import FilesBelow
from tests.support.refusals import refusal, says

LIMITS: dict[str, Any] = {"minimum": 1, "maximum": 20, "ratio": 1.5}
PREPARE = Preparation("none", "en").prepare, Preparation("none", "fr").prepare
FILTERING = {"preparation": "none", "prepare": PREPARE, **LIMITS}
PAIRS = 200
WORDS = ["\ufeffab", "cde", "é", "Dogs"]


def raw_text(folder: Path, pairs: int = PAIRS) -> RawText:
    """Write a corpus with pairs that are dropped, and lines that open with a byte order mark."""
    draw = random.Random(1)
    names = folder / "raw.en.zst", folder / "raw.fr.zst"
    for path in names:
        lines = (draw.choices(WORDS, k=draw.randint(0, 22)) for _ in range(pairs - 2))
        write_lines(path, ["", WORDS[0], *map(" ".join, lines)])
    files = [(str(names[0]), str(names[1]))]
    return RawText(files, FilesBelow(folder), HoldOutPart(10, held=False))


def sides(folder: Path, name: str) -> Sides:
    return folder / f"{name}.en", folder / f"{name}.fr"


def prepare_in_parts(corpus: RawText, folder: Path, count: int) -> None:
    """Go from the files of a task to the words as the rules do."""
    cut = [sides(folder, f"cut{number}") for number in range(count)]
    clean = [sides(folder, f"clean{number}") for number in range(count)]
    reports = [folder / f"{number}.json" for number in range(count)]
    split_training_text(corpus, parts=cut)
    for one, other, report in zip(cut, clean, reports, strict=True):
        text = read_line_pairs(*one, mark=NO_MARK)
        tokenize_and_filter(text, sides=other, report=report, **FILTERING)
    report = folder / "train.json"
    join_training_text(
        parts=clean, reports=reports, sides=sides(folder, "train"), report=report
    )


def test_results_do_not_depend_on_the_number_of_parts(tmp_path: Path) -> None:
    corpus = raw_text(tmp_path)
    english, french = sides(tmp_path, "train")
    made = english, french, tmp_path / "train.json"
    prepare_training_text(corpus, sides=made[:2], report=made[2], **FILTERING)
    for count in (1, 3, 16):
        folder = tmp_path / f"{count} parts"
        prepare_in_parts(corpus, folder, count)
        for path in made:
            assert (folder / path.name).read_bytes() == path.read_bytes(), count
    report = read_report(made[2])
    lines = list(read_lines(english, mark=NO_MARK))
    assert (report["read"], report["kept"]) == (PAIRS * 9 // 10, len(lines))
    assert all(report["dropped"][reason] for reason in ("empty", "too_long", "ratio"))
    count_words(text=english, output=tmp_path / "words.tsv")
    marked = " ".join(lines).split().count("\ufeffab")
    assert dict(read_counts(tmp_path / "words.tsv"))["\ufeffab"] == marked


def test_more_parts_than_lines_are_refused_with_the_option_that_sets_them(
    tmp_path: Path,
) -> None:
    message = refusal(prepare_in_parts, raw_text(tmp_path, 2), tmp_path / "made", 3)
    says(message, "2 lines for 3 parts: set fewer, by --set-scatter parts=2")
    assert not list((tmp_path / "made").iterdir())


REPORT = {
    "read": 1210,
    "kept": 1200,
    "dropped": {"empty": 1, "too_long": 2, "too_short": 3, "ratio": 4, "long_word": 0},
    "settings": "maximum 20",
}


def test_the_table_of_pairs_states_the_papers_number(tmp_path: Path) -> None:
    train, valid, table = tmp_path / "train", tmp_path / "valid", tmp_path / "table"
    train.write_text(json.dumps(REPORT))
    valid.write_text(json.dumps(REPORT | {"read": 13, "kept": 3}))
    told: dict[str, Any] = {"paper_pairs": 35_500_000, "stand_in": "captions"}

    def counted(**clean: Any) -> str:
        metadata = CorpusMetadata(task="mine", clean=CleanLimits(**clean), **told)
        count_pairs(train=train, valid=valid, table=table, metadata=metadata)
        return "\n".join(" ".join(line.split()) for line in read_lines(table))

    text = counted(**LIMITS)
    assert text.startswith("STAND-IN DATA: captions\n")
    says(text, "read 1,210 13", "over 20 words 2 2", "over 1.5 times as long 4 4")
    says(text, "kept 1,200 3", "The paper trains on 35,500,000 pairs.")
    unlimited = counted(minimum=1, maximum=None, ratio=None, remove_overlap=True)
    says(unlimited, "dropped: a line of validation or test text 0 0")
    assert "None" not in unlimited
    valid.write_text(json.dumps(REPORT | {"settings": "maximum 12"}))
    message = refusal(counted, **LIMITS)
    says(message, "train: was made with maximum 20, ", "with maximum 12: restore")
