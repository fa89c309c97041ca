"""Pairs of sentence and title: which papers count, where each goes, and how many were dropped."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from convs2s.data.titles import arxiv_identifier, write_title_corpus
from convs2s.errors import UserError
from convs2s.files.text import read_lines
from tests.support.local_files import FilesBelow

PARTS = ("train", "valid", "test")


def table(*papers: tuple[str, str, str]) -> str:
    """Write a table of papers: id, title, abstract."""
    rows = ["\t".join((abstract, number, title)) for number, title, abstract in papers]
    return "\n".join(["abstract\tarxiv_id\ttitle", *rows, ""])


MANY = [
    (f"1501.{n:05d}", f"Title {n}", f"This is sentence {n}. More.") for n in range(300)
]


def write(folder: Path, *tables: str, one_in: int = 5) -> SimpleNamespace:
    """Write the pairs of tables."""
    records = []
    for number, text in enumerate(tables):
        records.append(str(folder / f"{number}.tsv"))
        Path(records[-1]).write_text(text, "utf-8")
    counts = folder / "counts.json"
    made = write_title_corpus(
        records=records,
        files=FilesBelow(folder),
        one_in=one_in,
        outputs=folder,
        counts=counts,
    )
    return SimpleNamespace(**made)


def pairs(folder: Path, part: str) -> list[tuple[str, str]]:
    sides = [
        list(read_lines(folder / f"{part}.{side}")) for side in ("sentence", "title")
    ]
    return list(zip(*sides, strict=True))


def test_each_paper_is_in_one_part_and_stays_there(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("all", "fewer")]
    for folder, papers in zip(folders, (MANY, MANY[150:]), strict=True):
        folder.mkdir()
        found = write(folder, table(*papers))
        assert found.parts == {part: len(pairs(folder, part)) for part in PARTS}
        assert sum(found.parts.values()) == found.papers == found.records == len(papers)
        assert (
            json.loads((folder / "counts.json").read_text("utf-8"))["parts"]
            == found.parts
        )
    for part in PARTS:
        everything, fewer = (pairs(folder, part) for folder in folders)
        assert fewer == [pair for pair in everything if pair in fewer]
    assert ("This is sentence 7.", "Title 7") in [
        pair for part in PARTS for pair in pairs(folders[0], part)
    ]
    held_out = [len(pairs(folders[0], part)) for part in ("valid", "test")]
    assert all(40 < size < 80 for size in held_out)  # a fifth of 300 each, by chance


def test_what_is_dropped_and_why(tmp_path: Path) -> None:
    odd = [
        ("1", "A title", ""),
        ("2", "", "A sentence without a title."),
        ("3", "Gone", "This paper has been withdrawn by its authors. Sorry."),
        ("4", "Short", "Too short. A longer one follows."),
        ("5", "Title 7", "This is sentence 7. Other words."),
        ("6", "On $k$", "Let there be $k$ of them. More."),
        ("1501.00003", "A later title", "A later version of paper 3. More."),
        ("1501.0000900000001", "Title 9", "An id that was taken for a number."),
    ]
    found = write(tmp_path, table(*MANY), table(*odd))
    assert found.dropped == {"empty": 2, "short": 1, "withdrawn": 1, "repeated": 1}
    assert (found.records, found.papers, found.formulas) == (308, 306, 1)
    titles = {title for part in PARTS for _, title in pairs(tmp_path, part)}
    assert "On $k$" in titles
    assert "A later title" not in titles


@pytest.mark.parametrize(
    ("written", "identifier"),
    [
        ("0704.0001", "0704.0001"),
        ("704.0001", "0704.0001"),
        ("704.009", "0704.0090"),
        ("1412.5", "1412.5000"),
        ("1501.0009", "1501.00090"),
        ("1604.0403800000001", "1604.04038"),
        ("1604.0403799999999", "1604.04038"),
        ("cs/0607081", "cs/0607081"),
        ("cmp-lg/9407001", "cmp-lg/9407001"),
    ],
)
def test_ids_that_a_table_took_for_numbers(written: str, identifier: str) -> None:
    assert arxiv_identifier(written) == identifier


def test_too_few_papers_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        write(tmp_path, table(*MANY[:1]))
    assert "1 papers leave " in str(error.value)
    assert "titles.one_in (5)" in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["0.tsv"]


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"0\.tsv:1: no column arxiv_id: "):
        write(tmp_path, "abstract\ttitle\na\tb\n")
