"""Every number that the papers' tables print is in the configuration, and no other, with its kind.

``data/printed_values.tsv`` has the facts: table, group, row, column, value, kind (ours or
cited), and what arXiv v1 and the paper's best run have where that differs.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import pytest

from convs2s.config.load import load

VALUES = Path(__file__).parent / "data/printed_values.tsv"


class Value(NamedTuple):
    """What a cell prints: numbers as numbers, so that 20.80 is 20.8."""

    kind: str
    paper: float | str | None
    v1: float | str | None
    best_run: float | str | None


Place = tuple[str, str, str, str]
"""Table, group, row and column."""


def number(text: object) -> float | str | None:
    if text in ("", None):
        return None
    return float(str(text)) if str(text).replace(".", "", 1).isdigit() else str(text)


@pytest.fixture(scope="module")
def stated() -> dict[Place, Value]:
    with VALUES.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = {
        (row["table"], row["group"], row["row"], row["column"]): Value(
            row["kind"], *(number(row[key]) for key in ("value", "v1", "best_run"))
        )
        for row in rows
    }
    assert len(found) == len(rows) > 130
    return found


def test_the_configuration_has_the_papers_numbers_and_no_others(
    root: Path, stated: dict[Place, Value]
) -> None:
    tables = {place[0] for place in stated}
    found = {
        (name, row.group or "", row.system, key): Value(
            row.kind, *(number(values.get(key)) for values in (row.paper, row.v1, row.best_run))
        )
        for name, table in load(root, {"scale": "paper"}).paper.items()
        for row in table.rows
        for key in {*row.paper, *row.v1, *row.best_run}
        if name in tables
    }
    assert found == stated


def test_german_names_its_set_and_its_lines(root: Path) -> None:
    paper = load(root, {"scale": "paper"}).paper
    rows = [
        row
        for name in ("table1", "table2")
        for row in paper[name].rows
        if row.kind == "ours" and row.group == "WMT'14 English-German"
    ]
    assert len(rows) == 5
    lines = {"newstest2014_filtered": "the 2737 lines", "newstest2014": "the 3003 lines"}
    assert all(lines[row.testset or ""] in row.system for row in rows)
    assert [row.system for row in rows if row.task == "wmt14_en_de_stanford"] == [
        "ConvS2S (BPE 40K), the 2737 lines, the Stanford corpus"
    ]
