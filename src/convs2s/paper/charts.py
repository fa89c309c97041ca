"""What all figures share: colors, one look, and the files that they are written to.

A panel is a chart as Vega-Lite describes it; what does not depend on its values stands in
data/*.yaml. The report shows the panels of a figure one by one, and they answer to the pointer
there; a file holds all of them.
"""

import math
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert
import yaml

from convs2s.files.atomic import atomic_path

Panel = dict[str, Any]
"""A chart, or a part of its description, by the keys of Vega-Lite."""

Point = dict[str, Any]
"""A value of a chart, by the names of what its axes, colors and tooltips show."""

VEGA_LITE = "6.4"
"""The version of Vega-Lite that charts are described for."""

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
"""Okabe and Ito's, which all eyes tell apart."""

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
"""Of points: they tell apart without color too."""

PANEL_WIDTH = 300  # pixels: a figure of one column of panels fits a column of a paper of two

_ROOM = 0.06  # of the values' span, at each end of an axis: half a ring at the usual heights
_LINE = 68  # characters of a heading
_PNG_SCALE = 1.5
# vl-convert brings the first, so that every machine lays text out alike; browsers have its likes.
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# A PDF lists what a page uses in the order of a hash table, which is another each time.
_PDF_RESOURCES = re.compile(rb"((?: */(?:cs|fo|gs|xo)\d+ \d+ 0 R\n){2,})")


def described(name: str, /, **values: object) -> Panel:
    """Return what data/NAME.yaml describes, with a value in the place of each ``$KEY``.

    The values of ``$colors`` and ``$shapes`` are `COLORS` and `SHAPES`, unless others are given.
    """
    stated = {"colors": COLORS, "shapes": SHAPES, **values}

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: filled(below) for key, below in part.items()}
        if isinstance(part, list):
            return [filled(item) for item in part]
        is_place = isinstance(part, str) and part.startswith("$")
        return stated[part[1:]] if is_place else part

    text = files("convs2s.paper").joinpath("data", f"{name}.yaml").read_text("utf-8")
    description: Panel = filled(yaml.safe_load(text))
    return description


def as_spec(panel: Panel, description: str) -> dict[str, object]:
    """Return a panel's Vega-Lite: as wide as its place, described for those who do not see it."""
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE}.json",
        "width": "container",
        **panel,
        "description": description,
        "config": described("look", font="system-ui", background="transparent"),
    }


def save_figure(
    panels: Iterable[Panel],
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
    above = [f"STAND-IN DATA: {stand_in}", *heading] if stand_in else heading
    title: list[str] = []
    for line in above:
        title += textwrap.wrap(line, _LINE) or [""]
    resolution = "shared" if shares_colors else "independent"
    figure = {
        "concat": [{"width": PANEL_WIDTH, **panel} for panel in panels],
        "columns": columns,
        "spacing": 12,
        "title": title,
        "resolve": {"scale": {"color": resolution, "shape": resolution}},
        "config": described("look", font=_FONT, background="white"),
    }
    drawn = vl_convert.vegalite_to_svg(figure, vl_version=VEGA_LITE)
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
