"""Every printed value of the papers in its own cell, and what it is compared with."""

import csv
from collections.abc import Mapping

import pytest

from convs2s.config.paper import Row, Table
from convs2s.config.settings import Settings
from convs2s.paper.tables import TableRow, table_rows
from tests.support.golden import DATA

with (DATA / "paper/tables.tsv").open(encoding="utf-8", newline="") as stream:
    ROWS = list(csv.DictReader(stream, delimiter="\t"))
OF_THIS_PROJECT = {"further_rows", "opponents", "trainings"}


def listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value)


def described(name: str, table: Table, row: Row, shown: TableRow) -> dict[str, str]:
    """A row as the file has it; ``shown`` are its texts in our table."""
    texts = {
        column.key: shown[f"{column.name} (paper)"].text for column in table.columns
    }
    measures = {
        column.key: row.measures.get(column.key, column.measure)
        for column in table.columns
        if row.kind == "ours"
    }
    return {
        "table": name,
        "group": row.group or "",
        "row": row.system,
        "kind": row.kind,
        "printed": listed(texts),
        "v1": listed(row.v1),
        "best_run": listed(row.best_run),
        "x": f"{row.x:g}" if row.x else "",
        "task": row.task or "",
        "model": row.model or "",
        "runs": " ".join(row.runs),
        "testset": row.testset or "",
        "decoding": row.decoding or "",
        "phrases": row.phrases or "",
        "measures": listed(measures),
    }


@pytest.mark.parametrize("name", dict.fromkeys(row["table"] for row in ROWS))
def test_each_value_is_in_its_cell_and_compared_with_its_runs(
    paper: Settings, name: str
) -> None:
    table = paper.paper[name]
    shown = table_rows(paper, name, [])
    found = [
        described(name, table, *pair) for pair in zip(table.rows, shown, strict=True)
    ]
    assert found == [row for row in ROWS if row["table"] == name]


def test_every_table_is_here(paper: Settings) -> None:
    assert set(paper.paper) == {row["table"] for row in ROWS} | OF_THIS_PROJECT
    sentence = "We built this festival as a way of continuing to work with them."
    assert paper.paper["figure3"].example_source == sentence
