"""The papers' trends beside ours: each exhibit's values, row by row."""

import json
from collections.abc import Mapping, Sequence

from convs2s.config.paper import Column, Table, printed_number
from convs2s.config.settings import Settings
from convs2s.paper.cells import Cell
from convs2s.paper.charts import Panel, Point, described, padded

_LEAST_ROWS = 2  # with a value: fewer have no trend
_WIDE = 10  # an axis is logarithmic whose largest value is more than so many times its least
_OF_ROW = 17  # pixels: the height of a row in a large panel
_HEAD = 13  # characters of a long name that are kept at its begin
_TAIL = 10  # and at its end

_Sides = Mapping[str, Sequence[Point]]  # paper and ours -> the values of rows


def trend_panels(
    settings: Settings, name: str, shown: Sequence[Cell], *, is_small: bool = False
) -> list[list[Panel]]:
    """Return the panels of an exhibit with the trend of its rows: the paper's values, and ours.

    There are two for each column, named rows from the top; or ours alone where the paper has no
    value, and none where ours has no trend. Small ones are of the first column alone that has a
    trend on both sides, from left to right the rows with a value on both.
    """
    table = settings.paper[name]
    columns = list[list[Panel]]()
    for column in table.columns:
        sides = _sides(table, column, shown, only_both=is_small)
        has_trend = len(sides["ours"]) >= _LEAST_ROWS
        if is_small:
            has_trend = has_trend and len(sides["paper"]) >= _LEAST_ROWS and not columns
        if not has_trend:
            continue
        panels = _panels(settings, table, column, sides, is_small=is_small, first=not columns)
        columns.append(panels)
    return columns


def _sides(table: Table, column: Column, shown: Sequence[Cell], *, only_both: bool) -> _Sides:
    """Return the values of a column in the rows that we measure: the paper's, and ours.

    From low to high is one standard deviation over seeds around the value.
    """
    sides: dict[str, list[Point]] = {"paper": [], "ours": []}
    for cell in shown:
        if cell.address.column != column.key:
            continue
        row = table.rows[cell.address.row]
        place = cell.address.row if row.x is None else row.x
        about = {"row": row.system, "group": row.group or "", "place": place}
        papers = printed_number(row, column.key)
        ours = cell.mean
        if only_both and (papers is None or ours is None):
            continue
        spread = cell.deviation or 0.0
        for whose, value, deviation in (("paper", papers, 0.0), ("ours", ours, spread)):
            if value is not None:
                ends = {"low": value - deviation, "high": value + deviation}
                sides[whose].append({**about, **ends, "value": value, "whose": whose})
    return sides


def _panels(
    settings: Settings,
    table: Table,
    column: Column,
    sides: _Sides,
    *,
    is_small: bool,
    first: bool,
) -> list[Panel]:
    """Return a panel for each side with values, of the same rows and colors.

    On stand-in data each has an axis of its own, as only the shapes compare. Several groups have
    their legend in the ``first`` large panel.
    """
    both = [*sides["paper"], *sides["ours"]]
    groups = list(dict.fromkeys(point["group"] for point in both))
    places = sorted({point["place"] for point in both})
    names = {f"{point['place']:g}": _shortened(point["row"]) for point in both}
    panels = list[Panel]()
    for whose, side in sides.items():
        if not side:
            continue
        on_axis = side if settings.scale.stand_in else both
        least = min(point["low"] for point in on_axis)
        most = max(point["high"] for point in on_axis)
        is_log = 0 < _WIDE * least < most
        domain = padded([least, most], is_log=is_log)
        title = f"{column.name.partition(' (')[0]}, {whose}"
        if is_small:
            title = f"{whose}: {column.name.removeprefix('Validation ')}"
        legend = None
        if first and len(groups) > 1 and not (is_small or panels):
            legend = {"title": table.group_label, "columns": 1}
        panel = described(
            "trends",
            title=title,
            points=side,
            column=column.name,
            number=f".{column.digits}f",
            scale={"type": "log" if is_log else "linear", "domain": domain, "nice": False},
            groups=groups,
            legend=legend,
            places=places,
            height=_OF_ROW * len(places),
            has_names=not panels,
            name=f"{json.dumps(names)}[datum.value]",
        )
        panels.append(panel["small" if is_small else "rows"])
    return panels


def _shortened(name: str) -> str:
    is_long = len(name) > _HEAD + _TAIL
    return f"{name[:_HEAD]}…{name[-_TAIL:]}" if is_long else name
