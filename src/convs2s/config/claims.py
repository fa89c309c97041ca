"""config/claims.yaml: claims that the papers make in words, and the cells that decide them."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from convs2s.config.messages import check_known
from convs2s.config.paper import Row, Table, printed_number
from convs2s.config.section import (
    Items,
    NonNegativeFloat,
    PositiveFloat,
    Section,
    SomeItems,
    Text,
)
from convs2s.errors import UserError


class CellName(Section):
    """The name of a cell of config/paper.yaml."""

    table: str
    """Table or figure, by its name in config/paper.yaml."""
    group: str | None = None
    """Group of the row; null if only one row of the table has this name."""
    row: str
    """Name of the row (its key system)."""
    column: str = "bleu"
    """Key of the column."""


class CellsCompared(Section):
    """Cells that the claim calls better than the same number of other cells."""

    better: SomeItems[CellName]
    """The cells that the claim calls better. If there are several, their sum is compared. For the
    claim A - B > C - D, list A and D here, and B and C in worse. To count a cell twice, list it
    twice."""
    worse: SomeItems[CellName]
    """The cells that the claim calls worse. The number of cells must be the same as in better."""
    margin: NonNegativeFloat = 0.0
    """How far the cells in better may fall behind those in worse while the claim still holds, in
    units of the column. It is for claims that something does not help."""
    within: PositiveFloat | None = None
    """How far the two sides may differ in either direction while the claim still holds, in units of
    the column. It is for claims that something makes no difference; null for claims that the cells
    in better are better."""
    models: Annotated[int, Field(ge=2)] | None = None
    """Number of models of the ensembles on the better side, if the claim states it."""


class LengthsCompared(Section):
    """Cells whose translations are as long as the references, as the claim says."""

    cells: SomeItems[CellName]
    """Cells with a score in tokenized BLEU; the lengths are recorded with that score."""
    within: PositiveFloat
    """How much longer or shorter than the references the translations may be, as a share of the
    references' words."""


class Trend(Section):
    """Rows whose values rise with x, as the claim says.

    The claim holds if the slope of the fitted line is significantly positive and no pair of rows
    falls significantly.
    """

    table: str
    """Table or figure, by its name in config/paper.yaml."""
    group: str | None = None
    """Group of the rows; null if only one row of the table has each name."""
    column: str = "bleu"
    """Key of the column. Perplexities and times must fall instead of rising."""
    x: Annotated[dict[str, float], Field(min_length=1)]
    """Name of a row -> its value of x."""
    per: Text
    """The unit of x, such as layer."""
    nested: bool = False
    """Whether the name of each row is a list, such as 1, 2, 3 for the blocks that attend. If it is,
    two rows can refute the claim only if one list contains all items of the other list and more."""

    def cell(self, row: str) -> CellName:
        """Return the cell of one of the rows."""
        return CellName(table=self.table, group=self.group, row=row, column=self.column)


class Claim(Section):
    """Claims that a paper makes in words, and the cells that decide each: name -> the fields below.

    The verdict is computed from the runs that the tables show; docs/claims.md says how.
    """

    says: Text
    """The claim, in one sentence, in our own words."""
    source: Text
    """Paper and section that make the claim."""
    comparisons: Items[CellsCompared] = ()
    """Comparisons that must all hold."""
    trends: Items[Trend] = ()
    """Trends that must all hold."""
    lengths: Items[LengthsCompared] = ()
    """Cells whose translations must all be as long as the references."""
    phrases: Items[CellName] = ()
    """Cells of the measure phrases_apart; the states of different meanings must be apart in all of
    them."""
    exploratory: str | None = None
    """What was chosen after results had been seen; null if all comparisons were planned before
    that."""
    untested: str | None = None
    """Why the claim has no comparisons, trends, lengths or phrases; null if it has some."""

    def cells(self) -> Iterator[CellName]:
        """Yield every cell that the claim names. A cell that is named twice is yielded twice."""
        for compared in self.comparisons:
            yield from (*compared.better, *compared.worse)
        for trend in self.trends:
            yield from map(trend.cell, trend.x)
        for lengths in self.lengths:
            yield from lengths.cells
        yield from self.phrases


def row_index(
    cell: CellName,
    tables: Mapping[str, Table],
    where: str,
) -> int:
    """Return the index of a cell's row in its table, from 0.

    Raises:
        UserError: No row or several rows have the name. The message begins with ``where``.
    """
    check_known(where, "table", cell.table, tables)
    rows = tables[cell.table].rows
    groups = {row.group for row in rows if row.group}
    check_known(where, f"group of {cell.table}", cell.group, groups)
    # Index -> name of each row of the group, or of each row if the cell names no group.
    systems = {}
    for index, row in enumerate(rows):
        if cell.group is None or cell.group == row.group:
            systems[index] = row.system
    check_known(where, f"row of {cell.table}", cell.row, systems.values())
    found = [index for index, system in systems.items() if system == cell.row]
    if len(found) > 1:
        raise UserError(
            f"{where}: {cell.table} has {len(found)} rows '{cell.row}'; name the group as well"
        )
    return found[0]


def check_claim(
    claim: Claim,
    tables: Mapping[str, Table],
    where: str,
) -> None:
    """Check that a claim names cells that have values, or says why it names none.

    Raises:
        UserError: The claim does neither or both, names an unknown cell or a cell without a value,
            or has a malformed comparison. The message begins with ``where``.
    """
    cells = list(claim.cells())
    has_cells = bool(cells)
    is_untested = claim.untested is not None
    if has_cells == is_untested:
        raise UserError(
            f"{where}: expected comparisons, trends, lengths or phrases, or only untested with a "
            "reason"
        )
    rows = {cell: _row_with_value(cell, tables, where) for cell in cells}
    for compared in claim.comparisons:
        if compared.margin and compared.within is not None:
            raise UserError(
                f"{where}: comparisons: expected margin or within, not both"
            )
        if len(compared.better) != len(compared.worse):
            raise UserError(
                f"{where}: comparisons: better has {len(compared.better)} cells and worse has "
                f"{len(compared.worse)}; expected the same number"
            )
        both = (*compared.better, *compared.worse)
        if all(rows[cell].kind == "cited" for cell in both):
            raise UserError(
                f"{where}: comparisons: '{both[0].row}' and '{both[-1].row}' have only printed "
                "values, which no run can change; name a row of kind ours"
            )


def _row_with_value(
    cell: CellName,
    tables: Mapping[str, Table],
    where: str,
) -> Row:
    """Return a cell's row after checking that the cell has a value.

    A row of kind cited needs a printed number; a row of kind ours needs a measure.
    """
    # This also checks that the table exists.
    index = row_index(cell, tables, where)
    table = tables[cell.table]
    row = table.rows[index]
    columns = {column.key: column for column in table.columns}
    check_known(where, f"column of {cell.table}", cell.column, columns)
    value: object
    if row.kind == "cited":
        value = printed_number(row, cell.column)
    else:
        value = row.measures.get(cell.column, columns[cell.column].measure)
    if value is None:
        raise UserError(
            f"{where}: row '{cell.row}' of {cell.table} has no number in column "
            f"'{cell.column}'; name another column"
        )
    return row
