"""config/paper.yaml and config/phrases.yaml: the papers' tables and figures as data."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from convs2s.config.measures import MEASURES, MeasureName
from convs2s.config.runs import RunName
from convs2s.config.section import DistinctItems, Items, NonNegativeInt, Section, Text
from convs2s.errors import UserError


def _check_lengths(meanings: tuple[Sequence[str], ...]) -> tuple[Sequence[str], ...]:
    if len(set(map(len, meanings))) > 1:
        raise PydanticCustomError("lengths", "expected as many phrases of each meaning")
    return meanings


class Phrases(Section):
    """Phrases of two meanings or more, each meaning in several words: name -> the fields below."""

    title: str
    """What the phrases differ in; a figure's panel bears it."""
    source: str
    """Where they come from."""
    language: str
    """Code of their language, the source language of the models that read them."""
    meanings: Annotated[
        Items[Annotated[Items[Text], Field(min_length=2)]],
        Field(min_length=2),
        AfterValidator(_check_lengths),
    ]
    """Two phrases or more of one meaning in a list, as people write them; of others in the next.
    The n-th phrases of all lists should differ in the meaning alone: claims swap them."""


_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")

PrintedValues = dict[str, float | str | None]  # column key -> a value as the paper prints it


class Column(Section):
    """A column of values."""

    key: str
    """What the rows call the column."""
    name: str
    """Heading."""
    measure: MeasureName | None = None
    """Which of a run's scores is compared with the printed value, by its name here or that of an
    extension's metric, which the task has to list in metrics; null: only rows name one."""
    digits: NonNegativeInt = 2
    """Decimal places."""


class PrintedRow(Section):
    """What the paper prints in a row."""

    group: str | None = None
    """Group of rows, or series of a figure; null for none."""
    system: str
    """Name of the row."""
    x: float | None = None
    """Place on a figure's x-axis; null in tables."""
    kind: Literal["cited", "ours"]
    """cited: printed for comparison only; ours: trained and scored here."""
    paper: PrintedValues = {}
    """Printed values, column key -> value; text is printed as it stands."""
    v1: PrintedValues = {}
    """Values that arXiv v1 printed differently."""
    best_run: PrintedValues = {}
    """Values of the best single run, where the paper states them."""
    note: str | None = None
    """Footnote of the row; null for none."""
    measures: dict[str, MeasureName | None] = {}
    """Column key -> the measure of this row, where it is not the column's."""


def printed_number(row: PrintedRow, column: str) -> float | None:
    """Return what the paper prints in a column; None for nothing, and for text such as ~45."""
    text = str(row.paper.get(column))
    return float(text) if _NUMBER.fullmatch(text) else None


class ComparedRuns(Section):
    """The runs of this project that a row is compared with."""

    task: str | None = None
    """Task; null where the project does not build the system yet."""
    model: str | None = None
    """Model of config/models.yaml."""
    runs: DistinctItems[RunName] = ()
    """Runs whose scores are averaged: seed1, ..., or ensemble8 (seeds 1 to 8 together)."""
    testset: str | None = None
    """Test set of the task."""
    decoding: str | None = None
    """Decoding of config/decodings.yaml."""
    phrases: str | None = None
    """Phrases of config/phrases.yaml that the models read, for phrases_apart."""


class Row(ComparedRuns, PrintedRow):
    """A row of a table, or a point of a figure."""

    def comparison(self, where: str, columns: Sequence[Column]) -> tuple[str, str] | None:
        """Return task and model that the row is compared with; None where there are none yet.

        A row that names a task names all that its runs are found by, for the columns to be filled.
        """
        if self.task is None:
            return None
        needed = ["model", "runs"]
        for column in columns:
            if measure := self.measures.get(column.key, column.measure):
                needed += MEASURES[measure].file.named_by
        for key in needed:
            if not getattr(self, key):
                raise UserError(f"{where}: key '{key}' is missing, as the row names a task")
        assert self.model is not None
        return self.task, self.model


class Table(Section):
    """The papers' tables and figures as data: name -> the fields below.

    The name is that of the files in the folder paper of the results.
    """

    title: str
    """Heading."""
    source: str = "Gehring et al. (2017), Convolutional Sequence to Sequence Learning, arXiv v3"
    """Where the printed values come from."""
    note: str | None = None
    """What a reader has to know about the whole table; null for nothing."""
    example_source: str | None = None
    """Source sentence that a figure shows; null for none."""
    group_label: str | None = None
    """Heading of the column that names a row's group; null where no row has one."""
    system_label: str = "System"
    """Heading of the column that names a row."""
    columns: Items[Column] = ()
    """Columns of values."""
    ours: ComparedRuns = ComparedRuns()
    """Fields that rows of kind ours have in common; a row may state its own."""
    rows: Items[Row] = ()
    """Rows in the paper's order."""

    @property
    def is_by_layers(self) -> bool:
        """Whether each row has a place on an axis of layers."""
        if not self.rows:
            return False
        return all(row.x is not None and row.group for row in self.rows)

    @field_validator("rows")
    @classmethod
    def _fill(cls, rows: tuple[Row, ...], stated: ValidationInfo) -> tuple[Row, ...]:
        """Have each row of kind ours say what ``ours`` says, where it does not say otherwise."""
        common = stated.data.get("ours", ComparedRuns())
        filled = []
        for row in rows:
            if row.kind == "ours":
                missing = common.model_fields_set - row.model_fields_set
                row = row.model_copy(update={key: getattr(common, key) for key in missing})
            filled.append(row)
        return tuple(filled)
