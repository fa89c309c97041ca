"""The papers' trends beside ours: each exhibit's values, row by row."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import altair as alt

from convs2s.config.paper import Column, printed_number
from convs2s.config.settings import Settings
from convs2s.paper.charts import Panel, chart_of, colors_of, padded
from convs2s.paper.results import Result

_LEAST_ROWS = 2  # with a value: fewer have no trend
_WIDE = 10  # an axis is logarithmic whose largest value is more than so many times its least
_SMALL = 64  # pixels: the height of a small panel
_OF_ROW = 17  # pixels: the height of a row in a large panel
_HEAD = 13  # characters of a long name that are kept at its begin
_TAIL = 10  # and at its end


@dataclass(frozen=True)
class _Point:
    row: str  # its name
    group: str
    place: float  # on the axis of rows
    value: float
    low: float  # with high one standard deviation over seeds around the value
    high: float


_Side = Sequence[_Point]
_Sides = tuple[_Side, _Side]  # the paper's, and ours


def trend_panels(
    settings: Settings, name: str, shown: Sequence[Result], *, is_small: bool = False
) -> list[list[Panel]]:
    """Return the panels of an exhibit with the trend of its rows: the paper's values, and ours.

    There are two for each column, named rows from the top; or ours alone where the paper has no
    value, and none where ours has no trend. Small ones are of the first column alone that has a
    trend on both sides, from left to right the rows with a value on both.
    """
    columns = list[list[Panel]]()
    for column in settings.paper[name].columns:
        sides = _sides(settings, name, column, shown, only_both=is_small)
        papers, ours = sides
        has_trend = len(ours) >= _LEAST_ROWS
        if is_small:
            has_trend = has_trend and len(papers) >= _LEAST_ROWS and not columns
        if has_trend:
            panels = _panels(settings, name, column, sides, is_small=is_small, first=not columns)
            columns.append(panels)
    return columns


def _sides(
    settings: Settings, name: str, column: Column, shown: Sequence[Result], *, only_both: bool
) -> _Sides:
    """Return the values of a column in the rows that we measure: the paper's, and ours."""
    papers: list[_Point] = []
    ours: list[_Point] = []
    for result in shown:
        address = result.cell.address
        if address.column != column.key:
            continue
        row = settings.paper[name].rows[address.row]
        printed = printed_number(row, column.key)
        mean = result.mean
        if only_both and (printed is None or mean is None):
            continue
        group = row.group or ""
        place = address.row if row.x is None else row.x
        if printed is not None:
            papers.append(_Point(row.system, group, place, printed, printed, printed))
        if mean is not None:
            spread = result.deviation or 0.0
            ours.append(_Point(row.system, group, place, mean, mean - spread, mean + spread))
    return papers, ours


def _panels(
    settings: Settings, name: str, column: Column, sides: _Sides, *, is_small: bool, first: bool
) -> list[Panel]:
    """Return a panel for each side with values, of the same rows and colors.

    On stand-in data each has an axis of its own, as only the shapes compare. Several groups have
    their legend in the ``first`` large panel.
    """
    papers, ours = sides
    both = [*papers, *ours]
    panels: list[Panel] = []
    groups = list(dict.fromkeys(point.group for point in both))
    legend = alt.Legend(title=settings.paper[name].group_label, columns=1)
    for side, whose in ((papers, "paper"), (ours, "ours")):
        on_axis = side if settings.scale.stand_in else both
        least = min((point.low for point in on_axis), default=0.0)
        most = max((point.high for point in on_axis), default=0.0)
        is_log = 0 < _WIDE * least < most
        domain = padded([least, most] if on_axis else [], is_log=is_log)
        scale = alt.Scale(type="log" if is_log else "linear", domain=domain, nice=False)
        has_legend = first and len(groups) > 1 and not (is_small or panels)
        rows = [asdict(point) | {"whose": whose} for point in side]
        number = f".{column.digits}f"
        base = chart_of(rows).encode(
            color=colors_of("group", groups, legend=legend if has_legend else None),
            tooltip=[
                alt.Tooltip("row:N"),
                alt.Tooltip("group:N"),
                alt.Tooltip("whose:N", title="value of"),
                alt.Tooltip("value:Q", title=column.name, format=number),
                alt.Tooltip("high:Q", title="plus its deviation", format=number),
            ],
        )
        if side and is_small:
            title = f"{whose}: {column.name.removeprefix('Validation ')}"
            panels.append(_small(base, scale).properties(title=title))
        elif side:
            names = {} if panels else {point.place: point.row for point in both}
            panel = _of_rows(base, scale, sorted({point.place for point in both}), names)
            panels.append(panel.properties(title=f"{column.name.partition(' (')[0]}, {whose}"))
    return panels


def _small(base: alt.Chart, scale: alt.Scale) -> alt.LayerChart:
    """Return the values with rows from left to right."""
    across = alt.X("place:Q", axis=None, scale=alt.Scale(padding=6, zero=False))
    ticks = alt.Axis(tickCount=3, grid=False)
    up = alt.Y("value:Q", title=None, scale=scale, axis=ticks)
    lines = base.mark_line(strokeWidth=1.5).encode(across, up)
    points = base.mark_point(filled=True, opacity=1, size=16).encode(across, up)
    return alt.LayerChart(layer=[lines, points]).properties(height=_SMALL)


def _of_rows(
    base: alt.Chart, scale: alt.Scale, places: Sequence[float], names: Mapping[float, str]
) -> alt.LayerChart:
    """Return the values with rows from the top, named at the left where there are names."""
    shortened = {}
    for place, name in names.items():
        is_long = len(name) > _HEAD + _TAIL
        shortened[f"{place:g}"] = f"{name[:_HEAD]}…{name[-_TAIL:]}" if is_long else name
    expression = f"{json.dumps(shortened)}[datum.value]"
    axis = alt.Axis(
        title=None, labels=bool(names), labelExpr=expression, labelPadding=4, grid=True, ticks=False
    )
    down = alt.Y("place:O", axis=axis, scale=alt.Scale(domain=list(places)))
    ticks = alt.Axis(tickCount=4, labelSeparation=6)
    right = alt.X("value:Q", title=None, scale=scale, axis=ticks)
    low = alt.X("low:Q", title=None, scale=scale)
    bars = base.mark_rule().encode(down, low, x2="high:Q")
    points = base.mark_point(filled=True, opacity=1, size=40).encode(down, right)
    panel = alt.LayerChart(layer=[bars, points])
    return panel.properties(height=_OF_ROW * len(places))
