"""The values that the papers print, from config/paper.yaml.

``python tools/paper_scores.py``, typed in a clone, prints docs/paper_scores.md.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tabulate import tabulate

from convs2s.config.load import load
from convs2s.config.paper import Table

_INTRODUCTION = """\
# Scores of the papers

The values of the tables and figures of Gehring et al. (2017, arXiv v3) and Sutskever et al. (2014),
and those of their text that are compared here. `tools/paper_scores.py` makes the page. Systems in
**bold** are the papers' own; the others are systems that they cite. [Results](results.md) has the
values of this project.
"""


def page(exhibits: Mapping[str, Table]) -> str:
    """Return the page: a table for each exhibit that prints values."""
    return "\n".join(
        [_INTRODUCTION, *(line for one in exhibits.values() for line in _lines(one))]
    )


def _lines(exhibit: Table) -> Iterator[str]:
    rows = [row for row in exhibit.rows if row.paper]
    if not rows or exhibit.example_source:
        return
    are_mixed = len({row.kind for row in rows}) > 1
    groups = [exhibit.group_label] if exhibit.group_label else []
    columns = [
        column
        for column in exhibit.columns
        if any(column.key in row.paper for row in rows)
    ]
    header = [*groups, exhibit.system_label, *(column.name for column in columns)]
    texts = [
        [
            *([row.group or ""] if groups else []),
            f"**{row.system}**" if are_mixed and row.kind == "ours" else row.system,
            *(_text(row.paper.get(column.key), column.digits) for column in columns),
        ]
        for row in rows
    ]
    yield f"## {exhibit.title}\n"
    if exhibit.note:
        yield f"{exhibit.note}\n"
    yield tabulate(texts, header, tablefmt="github", disable_numparse=True) + "\n"
    for row in rows:
        for column in columns:
            if value := _text(row.best_run.get(column.key), column.digits):
                yield f"The best single run of {row.system}: {column.name} {value}.\n"


def _text(value: float | str | None, digits: int) -> str:
    """Return a value with its decimals; text as the paper prints it."""
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value or "")


if __name__ == "__main__":
    print(page(load(Path(), {}).paper), end="")
