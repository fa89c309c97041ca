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
        raise PydanticCustomError(
            "lengths", "expected the same number of phrases for each meaning"
        )
    return meanings


class Phrases(Section):
    """Phrases of two or more meanings, each in several wordings: name -> the fields below."""

    title: str
    """What differs between the meanings. It is the title of the figure's panel."""
    source: str
    """Where the phrases come from."""
    language: str
    """Code of the phrases' language, which is the source language of the models that read them."""
    meanings: Annotated[
        Items[Annotated[Items[Text], Field(min_length=2)]],
        Field(min_length=2),
        AfterValidator(_check_lengths),
    ]
    """A list for each meaning, with two or more phrases of this meaning as people write them. The
    n-th phrases of all lists should differ only in meaning, because tests of claims swap them."""


_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")

# Key of a column -> a value that the paper prints.
PrintedValues = dict[str, float | str | None]


class Column(Section):
    """A column of values of a table."""

    key: str
    """Key by which the rows name the column."""
    name: str
    """Heading of the column."""
    measure: MeasureName | None = None
    """The score of a run that is compared with the printed value: the name of a measure, or of an
    extension's metric that the task lists in metrics. null: only the rows name a measure."""
    digits: NonNegativeInt = 2
    """Number of decimal places."""


class PrintedRow(Section):
    """A row as the paper prints it."""

    group: str | None = None
    """Group of rows to which the row belongs, or series of a figure; null: the row has no group."""
    system: str
    """Name of the row."""
    x: float | None = None
    """Position on a figure's x-axis; null in tables."""
    kind: Literal["cited", "ours"]
    """cited: the row is shown only for comparison. ours: its system is trained and scored here."""
    paper: PrintedValues = {}
    """Key of a column -> the value that the paper prints. Text is shown unchanged."""
    v1: PrintedValues = {}
    """Key of a column -> the value in arXiv v1, if it is different."""
    best_run: PrintedValues = {}
    """Key of a column -> the value of the best single run, if the paper states it."""
    note: str | None = None
    """Footnote of the row; null: there is none."""
    measures: dict[str, MeasureName | None] = {}
    """Key of a column -> the measure of this row, if it is not the measure of the column."""


def printed_number(row: PrintedRow, column: str) -> float | None:
    """Return the number that the paper prints in a column.

    Return None if the paper prints nothing there, or text that is not a plain number, such as ~45.
    """
    # If nothing is printed there, the text is "None", which is not a plain number either.
    text = str(row.paper.get(column))
    return float(text) if _NUMBER.fullmatch(text) else None


class ComparedRuns(Section):
    """The runs of this project that are compared with a row."""

    task: str | None = None
    """Task of the runs; null: this project does not build the row's system yet."""
    model: str | None = None
    """Model of config/models.yaml."""
    runs: DistinctItems[RunName] = ()
    """Runs whose scores are averaged, such as seed1, or ensemble8 for seeds 1 to 8 together."""
    testset: str | None = None
    """Test set of the task."""
    decoding: str | None = None
    """Decoding of config/decodings.yaml."""
    phrases: str | None = None
    """Phrases of config/phrases.yaml that the models read, for the measure phrases_apart."""


class Row(ComparedRuns, PrintedRow):
    """A row of a table, or a point of a figure."""

    def comparison(
        self, where: str, columns: Sequence[Column]
    ) -> tuple[str, str] | None:
        """Return the task and the model whose runs are compared with the row; None without a task.

        Raises:
            UserError: The row names a task, but lacks a key that is needed to find the scores of
                its columns. The message begins with ``where``.
        """
        if self.task is None:
            return None
        needed = ["model", "runs"]
        for column in columns:
            if measure := self.measure_in(column):
                needed += MEASURES[measure].file.named_by
        for key in needed:
            if not getattr(self, key):
                raise UserError(
                    f"{where}: key '{key}' is missing; a row with a task needs it"
                )
        assert self.model is not None
        return self.task, self.model

    def measure_in(self, column: Column) -> str | None:
        """Return the measure of the row's value in a column; None if it has none."""
        return self.measures.get(column.key, column.measure)


class Table(Section):
    """The papers' tables and figures as data: name -> the fields below.

    The name is also the stem of the table's files in the results' folder paper.
    """

    title: str
    """Heading of the table."""
    source: str = (
        "Gehring et al. (2017), Convolutional Sequence to Sequence Learning, arXiv v3"
    )
    """The publication from which the printed values are taken."""
    note: str | None = None
    """A note about the whole table, which is printed above it; null: there is none."""
    example_source: str | None = None
    """Source sentence that a figure shows; null: the figure shows no sentence."""
    group_label: str | None = None
    """Heading of the column with the groups; null if the rows have no groups."""
    system_label: str = "System"
    """Heading of the column with the names of the rows."""
    columns: Items[Column] = ()
    """Columns of values."""
    ours: ComparedRuns = ComparedRuns()
    """Defaults for the rows of kind ours: a row has these values for keys that it does not
    state."""
    rows: Items[Row] = ()
    """Rows in the order of the paper."""

    @property
    def is_by_layers(self) -> bool:
        """Whether the table is a curve over numbers of layers: all its rows have x and a group."""
        return bool(self.rows) and all(
            row.x is not None and row.group for row in self.rows
        )

    @field_validator("rows")
    @classmethod
    def _fill(cls, rows: tuple[Row, ...], stated: ValidationInfo) -> tuple[Row, ...]:
        """Copy the values of ``ours`` into each row of kind ours that does not state them."""
        common = stated.data.get("ours", ComparedRuns())
        filled = []
        for row in rows:
            if row.kind == "ours":
                missing = common.model_fields_set - row.model_fields_set
                row = row.model_copy(
                    update={key: getattr(common, key) for key in missing}
                )
            filled.append(row)
        return tuple(filled)
