"""The common parts of all figures: colors, shapes, style, and writing to files.

A panel is the Vega-Lite description of a chart. The parts of a panel that do not depend on the
values are in data/*.yaml. The report shows the panels of a figure separately, as interactive
charts. The file of a figure contains all of its panels.
"""

import math
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from convs2s.files.atomic import atomic_path

Panel = dict[str, Any]
"""The Vega-Lite description of a chart, or a part of it."""

Point = dict[str, Any]
"""A data point of a chart: name of a field that an axis, a color or a tooltip shows -> value."""

VEGA_LITE = "6.4"
"""The version of Vega-Lite that the descriptions are written for."""

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
"""The colors of Okabe and Ito, which color-blind readers can distinguish too."""

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
"""Shapes of points, which can be distinguished in print without colors too."""

PANEL_WIDTH = 300
"""Pixels: one column of panels fits into a column of a two-column paper."""

# Margin at each end of an axis, as a share of the values' range. In panels of the usual heights,
# half of the ring around a point fits into this margin.
_ROOM = 0.06
_LINE = 68  # maximum characters in a line of a heading
_PNG_SCALE = 1.5
# vl-convert contains the first font, so text looks alike on all machines. The others are similar
# fonts for browsers.
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# A list of a PDF page's resources. It is written in the order of a hash table, which differs from
# run to run.
_PDF_RESOURCES = re.compile(rb"((?: */(?:cs|fo|gs|xo)\d+ \d+ 0 R\n){2,})")


def described(name: str, /, **values: object) -> Panel:
    """Return the description in data/NAME.yaml, with each ``$KEY`` replaced by the value of KEY.

    The values of ``$colors`` and ``$shapes`` are `COLORS` and `SHAPES` unless others are given.
    """
    value_of = {"colors": COLORS, "shapes": SHAPES, **values}

    def filled(part: Any) -> Any:
        """Return a part of the description with its placeholders replaced."""
        if isinstance(part, dict):
            return {key: filled(below) for key, below in part.items()}
        if isinstance(part, list):
            return [filled(item) for item in part]
        if isinstance(part, str) and part.startswith("$"):
            return value_of[part.removeprefix("$")]
        return part

    text = files("convs2s.paper").joinpath("data", f"{name}.yaml").read_text("utf-8")
    description: Panel = filled(yaml.safe_load(text))
    return description


def as_spec(panel: Panel, description: str) -> dict[str, object]:
    """Return a panel as a complete Vega-Lite specification for the report.

    The chart is as wide as its container. ``description`` is its text for screen readers.
    """
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
    """Write a figure to each path, in the format of the suffix: .svg, .png or .pdf.

    The panels are arranged below the heading, in rows of ``columns`` panels. On stand-in data, the
    heading starts with a line that says so. With ``shares_colors``, equal colors and shapes mean
    the same in all panels. The same figure always has the same bytes.
    """
    above = [f"STAND-IN DATA: {stand_in}", *heading] if stand_in else heading
    title: list[str] = []
    for line in above:
        title += textwrap.wrap(line, _LINE)
    resolution = "shared" if shares_colors else "independent"
    figure = {
        "concat": [{"width": PANEL_WIDTH, **panel} for panel in panels],
        "columns": columns,
        "spacing": 12,
        "title": title,
        "resolve": {"scale": {"color": resolution, "shape": resolution}},
        "config": described("look", font=_FONT, background="white"),
    }
    # Imported here, because the page of `convs2s attention` draws no chart.
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(figure, vl_version=VEGA_LITE)
    for output in outputs:
        with atomic_path(output) as temporary:
            if output.suffix == ".svg":
                temporary.write_text(drawn, "utf-8")
            elif output.suffix == ".png":
                temporary.write_bytes(vl_convert.svg_to_png(drawn, scale=_PNG_SCALE))
            else:
                # The lists of resources are sorted, so that equal figures have equal bytes. Because
                # the pattern has one group, split() returns the lists at odd indices, and the text
                # between them at even indices.
                parts = _PDF_RESOURCES.split(vl_convert.svg_to_pdf(drawn))
                for index in range(1, len(parts), 2):
                    resources = parts[index].splitlines(keepends=True)
                    parts[index] = b"".join(sorted(resources))
                temporary.write_bytes(b"".join(parts))


def padded(values: Iterable[float], *, is_log: bool = False) -> list[float]:
    """Return the two ends of an axis that has a margin around its values.

    A logarithmic axis ignores values that are not positive. Without values the ends are 0 and 1, or
    1 and 10 on a logarithmic axis.
    """
    shown = [value for value in values if value > 0] if is_log else list(values)
    if not shown:
        return [1.0, 10.0] if is_log else [0.0, 1.0]
    low = min(shown)
    high = max(shown)
    if is_log:
        # The margin is a share of the range of the logarithms. The factor is at least 1.1, so that
        # the axis of a single value has some length. The upper end must not become infinite.
        factor = max(1.1, math.exp(_ROOM * (math.log(high) - math.log(low))))
        return [low / factor, min(high * factor, sys.float_info.max)]
    room = _ROOM * (high - low) or 1.0  # 1 for a single value
    return [low - room, high + room]
