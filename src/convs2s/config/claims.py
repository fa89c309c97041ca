"""config/claims.yaml: what the papers say in words, and the cells that decide whether it holds."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from convs2s.config.messages import check_known
from convs2s.config.paper import Row, Table, printed_number
from convs2s.config.section import Items, NonNegativeFloat, PositiveFloat, Section, SomeItems, Text
from convs2s.errors import UserError


class CellName(Section):
    """A cell of config/paper.yaml."""

    table: str
    """Table or figure."""
    group: str | None = None
    """Group of the row; null where one row of the table alone has this name."""
    row: str
    """Name of the row (its system)."""
    column: str = "bleu"
    """Key of the column."""


class CellsCompared(Section):
    """Cells of which some are said to be better than as many others."""

    better: SomeItems[CellName]
    """The better cells. Of several the sum counts, and a cell may stand here twice: A and D
    against B and C ask whether A gains more over B than C over D."""
    worse: SomeItems[CellName]
    """As many cells that are said to be worse."""
    margin: NonNegativeFloat = 0.0
    """In units of the column: how far the better may be behind where something does not help."""
    within: PositiveFloat | None = None
    """In units of the column: by how much the sides may differ either way, for claims that there
    is no more to gain; null where the better ones are to be better."""
    models: Annotated[int, Field(ge=2)] | None = None
    """Of how many models the ensembles on the better side are, where the claim says so."""


class LengthsCompared(Section):
    """Cells whose translations are said to be as long as the references."""

    cells: SomeItems[CellName]
    """Cells that rest on tokenized BLEU."""
    within: PositiveFloat
    """By which share of the references' words they may be longer or shorter."""


class Trend(Section):
    """Rows whose values are said to rise with x: on a line, and no two rows the other way."""

    table: str
    """Table or figure."""
    group: str | None = None
    """Group of the rows; null where one row of the table alone has each name."""
    column: str = "bleu"
    """Key of the column; of perplexities and times it is their fall that counts."""
    x: Annotated[dict[str, float], Field(min_length=1)]
    """Name of a row -> its place on the axis."""
    per: Text
    """What x counts, such as layer."""

    def cell(self, row: str) -> CellName:
        """Return the cell of one of the rows."""
        return CellName(table=self.table, group=self.group, row=row, column=self.column)


class Claim(Section):
    """What a paper says in words, and what decides whether it holds here: name -> the fields below.

    The verdict comes from the runs that the tables show; docs/claims.md says how.
    """

    says: Text
    """The claim, in one sentence of our own."""
    source: Text
    """Paper and section."""
    comparisons: Items[CellsCompared] = ()
    """Comparisons that must all hold."""
    trends: Items[Trend] = ()
    """Trends that must all hold, too."""
    lengths: Items[LengthsCompared] = ()
    """Lengths that must all match, too."""
    phrases: Items[CellName] = ()
    """Cells of phrases_apart whose meanings must all be apart, too."""
    untested: str | None = None
    """Why there is none of these; null where there is one."""

    def cells(self) -> Iterator[CellName]:
        """Yield every cell that the claim names, as often as it does."""
        for compared in self.comparisons:
            yield from (*compared.better, *compared.worse)
        for trend in self.trends:
            yield from map(trend.cell, trend.x)
        for lengths in self.lengths:
            yield from lengths.cells
        yield from self.phrases


def row_index(cell: CellName, tables: Mapping[str, Table], where: str) -> int:
    """Return the index of a cell's row in its table, from 0.

    Raises:
        UserError: There is none, or several have the name; begins with ``where``.
    """
    check_known(where, "table", cell.table, tables)
    rows = tables[cell.table].rows
    groups = {row.group for row in rows if row.group}
    check_known(where, f"group of {cell.table}", cell.group, groups)
    systems = {}  # of the group, by index
    for index, row in enumerate(rows):
        if cell.group in (None, row.group):
            systems[index] = row.system
    check_known(where, f"row of {cell.table}", cell.row, systems.values())
    index, *others = [index for index, system in systems.items() if system == cell.row]
    if others:
        raise UserError(
            f"{where}: {cell.table} has {len(others) + 1} rows '{cell.row}'; name the group as well"
        )
    return index


def check_claim(claim: Claim, tables: Mapping[str, Table], where: str) -> None:
    """Check that a claim names cells that have values, or says why it names none."""
    cells = list(claim.cells())
    if bool(cells) == (claim.untested is not None):
        raise UserError(
            f"{where}: expected comparisons, trends, lengths or phrases, or else untested: a reason"
        )
    for cell in cells:
        _row_with_value(cell, tables, where)
    for compared in claim.comparisons:
        if compared.margin and compared.within is not None:
            raise UserError(f"{where}: comparisons: expected margin or within, not both")
        if len(compared.better) != len(compared.worse):
            raise UserError(
                f"{where}: comparisons: {len(compared.better)} cells are held against "
                f"{len(compared.worse)}; expected as many"
            )
        both = (*compared.better, *compared.worse)
        rows = [_row_with_value(cell, tables, where) for cell in both]
        if all(row.kind == "cited" for row in rows):
            raise UserError(
                f"{where}: comparisons: '{rows[0].system}' and '{rows[-1].system}' are printed "
                "values of others alone, which no run decides; name a row of ours"
            )


def _row_with_value(cell: CellName, tables: Mapping[str, Table], where: str) -> Row:
    """Return a cell's row; the cell has a printed value, or one that this project measures."""
    index = row_index(cell, tables, where)  # which says first whether there is such a table
    row = tables[cell.table].rows[index]
    columns = {column.key: column for column in tables[cell.table].columns}
    check_known(where, f"column of {cell.table}", cell.column, columns)
    value: object = row.measures.get(cell.column, columns[cell.column].measure)
    if row.kind == "cited":
        value = printed_number(row, cell.column)
    if value is None:
        raise UserError(
            f"{where}: row '{cell.row}' of {cell.table} has no number in column "
            f"'{cell.column}'; name another column"
        )
    return row
