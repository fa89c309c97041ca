"""Pairs of sentence and title: which papers count, where each goes, and how many were dropped."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.data.titles import write_title_corpus
from convs2s.files.text import read_line_pairs
from tests.support.local_files import FilesBelow
from tests.support.refusals import refusal, says

PARTS = ("train", "valid", "test")
HEADER = "abstract\tarxiv_id\ttitle"
MANY = [f"This is sentence {n}. More.\t1501.{n:05d}\tTitle {n}" for n in range(300)]
ODD = [
    "\t1\tA title",
    "A sentence without a title.\t2\t",
    "This paper has been withdrawn by its authors. Sorry.\t3\tGone",
    "Too short though. A longer one follows.\t4\tShort",
    "Four words will do. More.\tcs/0607081\tFour",
    "This is sentence 7. Other words.\t5\tTitle 7",
    '"Let there\tbe $k$ ""of""\nthem. More."\t6\tOn $k$',
    "A later version of paper 3. More.\t1501.00003\tLater",
    "An id taken for a number.\t1501.0000900000001\tLater",
    "An id taken for a number.\t1501.0000799999999\tLater",
    "An old id in full. More.\t0704.0090\tOld",
    "An old id taken for one.\t704.009\tLater",
    "A new id of few digits. More.\t1412.5000\tNew",
    "A new id of fewer digits.\t1412.5\tLater",
]


def write(folder: Path, rows: list[str]) -> dict[str, Any]:
    """Write the pairs of a table of papers."""
    folder.mkdir()
    table = folder / "a.tsv"
    table.write_text("\n".join([*rows, ""]), "utf-8")
    counts = folder / "counts.json"
    files = FilesBelow(folder)
    given: dict[str, Any] = {"files": files, "outputs": folder, "counts": counts}
    found = write_title_corpus(records=[str(table)], one_in=5, **given)
    assert json.loads(counts.read_text("utf-8")) == found
    return found


def pairs(folder: Path, part: str) -> list[tuple[str, str]]:
    return list(read_line_pairs(folder / f"{part}.sentence", folder / f"{part}.title"))


def test_each_paper_is_in_one_part_and_stays_there(tmp_path: Path) -> None:
    found = write(tmp_path / "all", [HEADER, *MANY])
    write(tmp_path / "fewer", [HEADER, *MANY[150:]])
    sizes = {part: len(pairs(tmp_path / "all", part)) for part in PARTS}
    assert found["parts"] == sizes
    assert sum(sizes.values()) == found["papers"] == found["records"] == 300
    # A fifth of 300 each, by chance.
    assert all(40 < sizes[part] < 80 for part in ("valid", "test"))
    for part in PARTS:
        fewer = pairs(tmp_path / "fewer", part)
        assert fewer == [one for one in pairs(tmp_path / "all", part) if one in fewer]


def test_what_is_dropped_and_why(tmp_path: Path) -> None:
    found = write(tmp_path / "a", [HEADER, *MANY, *ODD])
    dropped = {"empty": 2, "short": 1, "withdrawn": 1, "repeated": 1}
    assert found["dropped"] == dropped
    assert (found["records"], found["papers"], found["formulas"]) == (314, 309, 1)
    kept = {pair for part in PARTS for pair in pairs(tmp_path / "a", part)}
    assert ('Let there be $k$ "of" them.', "On $k$") in kept
    assert ("Four words will do.", "Four") in kept
    assert "Later" not in {title for _, title in kept}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([HEADER, MANY[0]], ["a.tsv: 1 papers leave ", "titles.one_in (5)"]),
        ([], ["a.tsv:1: no column arxiv_id, title, abstract: "]),
        (["title\tabstract"], ["a.tsv:1: no column arxiv_id: expected a tab-"]),
        ([HEADER, MANY[0], "a\tb"], ["a.tsv:3: expected 3 fields, as many as the"]),
        ([HEADER, '1\t2\t"never closed', "4"], ["a.tsv:3: not a tab-separated"]),
    ],
)
def test_tables_that_make_no_corpus_are_refused(
    tmp_path: Path, rows: list[str], words: list[str]
) -> None:
    says(refusal(write, tmp_path / "a", rows), *words)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["a.tsv"]
