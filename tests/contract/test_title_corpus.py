"""Pairs of sentence and title: which papers count, where each goes, and how many were dropped."""

import json
from pathlib import Path
from typing import Any

from convs2s.data.titles import write_title_corpus
from convs2s.files.text import read_line_pairs
from tests.support.archives import FilesBelow
from tests.support.refusals import refusal, rows, says

PARTS = ("train", "valid", "test")
HEADER = "abstract\tarxiv_id\ttitle\n"
MANY = [f"This is sentence {n}. More.\t1501.{n:05d}\tTitle {n}\n" for n in range(300)]
ODD = """\
\t1\tA title
A sentence without a title.\t2\t
This paper has been withdrawn by its authors. Sorry.\t3\tGone
Too short though. A longer one follows.\t4\tShort
Four words will do. More.\tcs/0607081\tFour
This is sentence 7. Other words.\t5\tTitle 7
"Let there\tbe $k$ ""of""
them. More."\t6\tOn $k$
A later version of paper 3. More.\t1501.00003\tLater
An id taken for a number.\t1501.0000900000001\tLater
An id taken for a number.\t1501.0000799999999\tLater
An old id in full. More.\t0704.0090\tOld
An old id taken for one.\t704.009\tLater
The id after it. More.\t0704.0091\tNext
"""


def write(folder: Path, table: str) -> dict[str, Any]:
    """Write the pairs of a table of papers; return what is counted."""
    folder.mkdir()
    path = folder / "a.tsv"
    path.write_text(table, "utf-8")
    counts = folder / "counts.json"
    found = write_title_corpus(
        records=[str(path)],
        one_in=5,
        files=FilesBelow(folder),
        outputs=folder,
        counts=counts,
    )
    assert json.loads(counts.read_text("utf-8")) == found
    return found


def pairs(folder: Path, part: str) -> list[tuple[str, str]]:
    return list(read_line_pairs(folder / f"{part}.sentence", folder / f"{part}.title"))


def test_each_paper_is_in_one_part_and_stays_there(tmp_path: Path) -> None:
    found = write(tmp_path / "all", HEADER + "".join(MANY))
    write(tmp_path / "fewer", HEADER + "".join(MANY[150:]))
    whole = {part: pairs(tmp_path / "all", part) for part in PARTS}
    sizes = {part: len(of_part) for part, of_part in whole.items()}
    assert found["parts"] == sizes
    assert sum(sizes.values()) == found["papers"] == found["records"] == 300
    assert min(sizes["valid"], sizes["test"]) > 40  # a fifth of 300 each, by chance
    for part in PARTS:
        fewer = pairs(tmp_path / "fewer", part)
        assert fewer == [one for one in whole[part] if one in fewer]


def test_what_is_dropped_and_why(tmp_path: Path) -> None:
    found = write(tmp_path / "a", HEADER + "".join(MANY) + ODD)
    assert found["dropped"] == {"empty": 2, "short": 1, "withdrawn": 1, "repeated": 1}
    assert (found["records"], found["papers"], found["formulas"]) == (313, 309, 1)
    kept = {pair for part in PARTS for pair in pairs(tmp_path / "a", part)}
    assert ('Let there be $k$ "of" them.', "On $k$") in kept
    assert ("Four words will do.", "Four") in kept
    assert "Later" not in {title for _, title in kept}


TABLES = r"""
abstract\tarxiv_id\ttitle\nThis is sentence 0.\t1\tTitle\n => 1 papers leave => titles.one_in (5)
=> a.tsv:1: no column arxiv_id, title, abstract: =>
title\tabstract\n => a.tsv:1: no column arxiv_id => expected a tab-
abstract\tarxiv_id\ttitle\na\t1\tb\na\tb\n => a.tsv:3: expected 3 fields => as many as the
abstract\tarxiv_id\ttitle\n1\t2\t"never closed\n4\n => a.tsv:3: not a tab-separated =>
"""


def test_tables_that_make_no_corpus_are_refused(tmp_path: Path) -> None:
    for number, (table, *words) in enumerate(rows(TABLES)):
        folder = tmp_path / f"{number}"
        says(refusal(write, folder, table), *words)
        assert [path.name for path in folder.iterdir()] == ["a.tsv"]
