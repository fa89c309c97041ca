"""Room for heat maps that share their labels: laid out in inches, so that nothing overlaps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

# inches
_SMALLEST_CELL, _LARGEST_CELL, _MAP = 0.15, 0.3, 4.5
_AXIS_NAME, _HEADING, _TITLE, _GAP, _COLOUR_BAR = 0.4, 0.25, 0.35, 0.15, 0.9


@dataclass(frozen=True)
class MapGrid:
    """Where maps with a row for each source label and a column for each target label go.

    Attributes:
        maps: how many maps there are.
        fontsize: of the labels, in points; it follows from the size of a cell.
        width: of a map, in inches.
        height: of a map, in inches.
        left: from the figure's edge to the first map, with room for the longest source label.
        below: under each map, with room for the longest target label.
    """

    maps: int
    fontsize: float
    width: float
    height: float
    left: float
    below: float

    @classmethod
    def fit(
        cls, maps: int, source_labels: Sequence[str], target_labels: Sequence[str]
    ) -> "MapGrid":
        """Choose the size of a cell and make room for the labels as they will be drawn."""
        cell = _MAP / max(len(source_labels), len(target_labels))
        cell = min(_LARGEST_CELL, max(_SMALLEST_CELL, cell))
        fontsize = min(10, 72 * cell * 0.68)
        return cls(
            maps=maps,
            fontsize=fontsize,
            width=cell * len(target_labels),
            height=cell * len(source_labels),
            left=_AXIS_NAME + _widest(source_labels, fontsize),
            below=_AXIS_NAME + _widest(target_labels, fontsize),
        )

    @property
    def columns(self) -> int:
        """The number of columns that suits a screen best."""
        return min(range(1, self.maps + 1), key=self._unfitness)

    def _unfitness(self, columns: int) -> float:
        """Say how far from twice as wide as high the figure is, and what share stays empty."""
        across, down = self._size(columns)
        return abs(math.log(across / down / 2)) + (-self.maps % columns) / self.maps

    def _size(self, columns: int) -> tuple[float, float]:
        rows = math.ceil(self.maps / columns)
        across = self.left + columns * (self.width + _GAP) + _COLOUR_BAR
        return across, _HEADING + rows * (_TITLE + self.height + self.below)

    def draw(self, heading: str) -> tuple[Figure, NDArray[Any], Axes]:
        """Return a figure with its heading, its rows of maps, and axes for a colour bar."""
        across, down = self._size(self.columns)
        figure = Figure(figsize=(across, down))
        heading_at = _GAP / across, 1 - _HEADING / 2 / down
        figure.text(*heading_at, heading, fontsize=8, verticalalignment="center")
        grid = figure.subplots(
            math.ceil(self.maps / self.columns),
            self.columns,
            squeeze=False,
            gridspec_kw={
                "left": self.left / across,
                "right": 1 - (_GAP + _COLOUR_BAR) / across,
                "bottom": self.below / down,
                "top": 1 - (_HEADING + _TITLE) / down,
                "wspace": _GAP / self.width,
                "hspace": (_TITLE + self.below) / self.height,
            },
        )
        height = max(self.height, 1.2)
        bar = figure.add_axes(
            (
                1 - (_COLOUR_BAR - 0.05) / across,
                1 - (_HEADING + _TITLE + height) / down,
                0.15 / across,
                height / down,
            )
        )
        return figure, grid, bar


def _widest(labels: Sequence[str], fontsize: float) -> float:
    """Return the width of the widest label in inches."""
    figure = Figure()
    drawn = (figure.text(0, 0, label, fontsize=fontsize) for label in labels)
    return max(text.get_window_extent().width for text in drawn) / figure.dpi
