"""What all figures share: colors, one look, and the files that they are written to.

A panel is an Altair chart. The report shows the panels of a figure one by one, and they answer to
the pointer there; a file holds all of them.
"""

import math
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from convs2s.files.atomic import atomic_path

Panel = alt.Chart | alt.LayerChart

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The version of Vega-Lite that Altair writes for."""

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
"""Okabe and Ito's, which all eyes tell apart."""

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
"""Of points: they tell apart without color too."""

PANEL_WIDTH = 300  # pixels: a figure of one column of panels fits a column of a paper of two

_ROOM = 0.06  # of the values' span, at each end of an axis: half a ring at the usual heights
_GREY = "#7f8790"  # seen on both a light and a dark ground
_LINE = 68  # characters of a heading
_PNG_SCALE = 1.5
# vl-convert brings the first, so that every machine lays text out alike; browsers have its likes.
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# A PDF lists what a page uses in the order of a hash table, which is another each time.
_PDF_RESOURCES = re.compile(rb"((?: */(?:cs|fo|gs|xo)\d+ \d+ 0 R\n){2,})")


def as_spec(panel: Panel, description: str) -> dict[str, object]:
    """Return a panel's Vega-Lite: as wide as its place, described for those who do not see it."""
    if panel.width is alt.Undefined:
        panel = panel.properties(width="container")
    look = _look("system-ui", "transparent")
    spec: dict[str, object] = panel.properties(description=description, config=look).to_dict()
    return spec


def save_figure(
    panels: Sequence[Panel],
    outputs: Iterable[Path],
    *,
    heading: Sequence[str] = (),
    stand_in: str | None = None,
    columns: int = 1,
    shares_colors: bool = True,
) -> None:
    """Write a figure to each path, in the format of its suffix; equal figures have equal bytes.

    Panels stand row by row below the lines of the heading, the first of which says what stands in
    for the paper's data. Formats are .svg, .png and .pdf.
    """
    sized = []
    for panel in panels:
        if panel.width is alt.Undefined:
            panel = panel.properties(width=PANEL_WIDTH)
        sized.append(panel)
    figure = alt.concat(*sized, columns=columns, spacing=12)
    if not shares_colors:
        figure = figure.resolve_scale(color="independent", shape="independent")
    lines = list(heading)
    if stand_in:
        lines.insert(0, f"STAND-IN DATA: {stand_in}")
    if lines:
        wrapped: list[str] = []
        for line in lines:
            wrapped += textwrap.wrap(line, _LINE) or [""]
        figure = figure.properties(title=wrapped)
    figure = figure.properties(config=_look(_FONT, "white"))
    drawn = vl_convert.vegalite_to_svg(figure.to_dict(), vl_version=VEGA_LITE)
    for output in outputs:
        with atomic_path(output) as temporary:
            if output.suffix == ".svg":
                temporary.write_text(drawn, "utf-8")
            elif output.suffix == ".png":
                temporary.write_bytes(vl_convert.svg_to_png(drawn, scale=_PNG_SCALE))
            else:
                parts = _PDF_RESOURCES.split(vl_convert.svg_to_pdf(drawn))
                for place in range(1, len(parts), 2):  # every second one is a list of resources
                    resources = parts[place].splitlines(keepends=True)
                    parts[place] = b"".join(sorted(resources))
                temporary.write_bytes(b"".join(parts))


def chart_of(rows: Sequence[Mapping[Any, Any]]) -> alt.Chart:
    """Return a chart without marks that holds the rows of its data."""
    return alt.Chart(alt.InlineData(values=rows))


def colors_of(field: str, names: Sequence[str], **look: Any) -> alt.Color:
    """Return the colors of a field's values, in the order of their names."""
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=names, range=COLORS), **look)


def shapes_of(field: str, names: Sequence[str], **look: Any) -> alt.Shape:
    """Return the shapes of the points of a field's values, in the order of their names."""
    return alt.Shape(f"{field}:N", scale=alt.Scale(domain=names, range=SHAPES), **look)


def padded(values: Iterable[float], *, is_log: bool = False) -> list[float]:
    """Return the ends of an axis with room around its values; of none, 0 to 1, or 1 to 10."""
    known = [value for value in values if value > 0 or not is_log]
    if not known:
        return [1.0, 10.0] if is_log else [0.0, 1.0]
    low = min(known)
    high = max(known)
    if is_log:
        factor = max(1.1, math.exp(_ROOM * (math.log(high) - math.log(low))))
        return [low / factor, min(high * factor, sys.float_info.max)]
    room = _ROOM * (high - low) or 1.0
    return [low - room, high + room]


def _look(font: str, background: str) -> alt.Config:
    # One weight: a PDF of one font has the same bytes each time, several come in any order.
    return alt.Config(
        axis=alt.AxisConfig(labelLimit=0, titleLimit=0, titleFontWeight="normal"),
        background=background,
        font=font,
        legend=alt.LegendConfig(
            orient="bottom",
            labelLimit=0,
            titleFontWeight="normal",
            symbolFillColor=_GREY,
            symbolStrokeColor=_GREY,
        ),
        title=alt.TitleConfig(
            anchor="start", fontSize=11, fontWeight="normal", limit=0, subtitleFontSize=9
        ),
        view=alt.ViewConfig(stroke="transparent"),
    )
