"""Trends: the values of a table or figure from row to row, the papers' beside ours."""

import json
from collections.abc import Mapping, Sequence

from convs2s.config.paper import Column, Table, printed_number
from convs2s.config.settings import Settings
from convs2s.paper.cells import Cell
from convs2s.paper.charts import Panel, Point, described, padded

_LEAST_ROWS = 2  # minimum number of rows with a value: a single value has no trend
# An axis is logarithmic if its highest value is more than this many times its lowest.
_WIDE = 10
_OF_ROW = 17  # pixels: the height of a row in a large panel
_HEAD = 13  # characters that are kept at the start of a long name
_TAIL = 10  # characters that are kept at the end of a long name

# "paper" and "ours" -> a point for each row with a value.
_Sides = Mapping[str, Sequence[Point]]


def trend_panels(
    settings: Settings,
    name: str,
    shown: Sequence[Cell],
    *,
    is_small: bool = False,
) -> list[list[Panel]]:
    """Return panels with the values of a table or figure, the paper's and ours, for each column.

    A column has no panels if fewer than `_LEAST_ROWS` rows have a value of ours. Otherwise it has a
    panel of the paper's values, if there are any, and a panel of ours. In a panel, the rows go from
    top to bottom.

    Small panels are made of one column only: the first in which at least two rows have both values.
    They show these rows from left to right, without names.
    """
    table = settings.paper[name]
    columns = list[list[Panel]]()
    for column in table.columns:
        if is_small and columns:
            break
        sides = _sides(table, column, shown, only_both=is_small)
        if len(sides["ours"]) < _LEAST_ROWS:
            continue
        is_first = not columns
        panels = _panels(
            settings, table, column, sides, is_small=is_small, is_first=is_first
        )
        columns.append(panels)
    return columns


def _sides(
    table: Table,
    column: Column,
    shown: Sequence[Cell],
    *,
    only_both: bool,
) -> _Sides:
    """Return the values of a column in the rows that we measure: the paper's, and ours.

    With ``only_both``, rows that lack one of the two values are omitted. The place of a row on the
    axis is its x in config/paper.yaml, or its index if it has no x. "low" and "high" are one
    standard deviation over seeds below and above the value.
    """
    sides: dict[str, list[Point]] = {"paper": [], "ours": []}
    for cell in shown:
        if cell.address.column != column.key:
            continue
        row = table.rows[cell.address.row]
        place = cell.address.row if row.x is None else row.x
        row_fields = {"row": row.system, "group": row.group or "", "place": place}
        papers = printed_number(row, column.key)
        ours = cell.mean
        if only_both and (papers is None or ours is None):
            continue
        for side, value, deviation in (
            ("paper", papers, 0.0),
            ("ours", ours, cell.deviation or 0.0),
        ):
            if value is not None:
                sides[side].append(
                    {
                        **row_fields,
                        "low": value - deviation,
                        "high": value + deviation,
                        "value": value,
                        "whose": side,
                    }
                )
    return sides


def _panels(
    settings: Settings,
    table: Table,
    column: Column,
    sides: _Sides,
    *,
    is_small: bool,
    is_first: bool,
) -> list[Panel]:
    """Return a panel for each side with values; both have the same rows and colors.

    Both panels have the same axis of values. On stand-in data, each panel has its own axis, because
    only the shapes of the trends can be compared. ``is_first`` says that no earlier column of the
    table has panels. If the table has several groups, its first large panel has their legend.
    """
    both = [*sides["paper"], *sides["ours"]]  # the points of both sides
    groups = list(dict.fromkeys(point["group"] for point in both))
    places = sorted({point["place"] for point in both})
    names = {f"{point['place']:g}": _shortened(point["row"]) for point in both}
    panels = list[Panel]()
    for side, points in sides.items():
        if not points:
            continue
        on_axis = points if settings.scale.stand_in else both
        lowest = min(point["low"] for point in on_axis)
        highest = max(point["high"] for point in on_axis)
        is_log = lowest > 0 and highest > _WIDE * lowest
        if is_small:
            title = f"{side}: {column.name.removeprefix('Validation ')}"
        else:
            title = f"{column.name.partition(' (')[0]}, {side}"  # without the unit
        is_first_panel = not panels
        legend = None
        if is_first and is_first_panel and not is_small and len(groups) > 1:
            legend = {"title": table.group_label, "columns": 1}
        panel_of_size = described(
            "trends",
            title=title,
            points=points,
            column=column.name,
            number=f".{column.digits}f",
            scale_type="log" if is_log else "linear",
            domain=padded([lowest, highest], is_log=is_log),
            groups=groups,
            legend=legend,
            places=places,
            height=_OF_ROW * len(places),
            has_names=is_first_panel,
            # A Vega expression: the name of the row at a place of the axis.
            name=f"{json.dumps(names)}[datum.value]",
        )
        panels.append(panel_of_size["small" if is_small else "rows"])
    return panels


def _shortened(name: str) -> str:
    """Return a name; if it is long, an ellipsis replaces its middle."""
    is_long = len(name) > _HEAD + _TAIL
    return f"{name[:_HEAD]}…{name[-_TAIL:]}" if is_long else name
