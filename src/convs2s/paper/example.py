"""One sentence's attention in each decoder layer, as a figure of a paper (the paper's figure 3)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from convs2s.paper.example_record import read_example
from convs2s.paper.figures import draw_map, shorten
from convs2s.paper.plotting import COLUMN_FONT, COLUMN_WIDTH, note_stand_in, save, style

_COLUMNS = 2
_LABELS, _TITLE, _AROUND = 0.5, 0.2, 0.9
"""Inches: of the words beside the maps, of a map's title, and of what stands below and above."""


def plot_example(*, example: Path, outputs: Sequence[Path]) -> None:
    """Draw a heat map for each decoder layer, the source on the y-axis, at a column's width.

    Args:
        example: JSON file of :func:`convs2s.paper.example_attention.attend_to_example`.
        outputs: where to write the figure; the suffix says the format (.svg, .pdf).
    """
    shown = read_example(example)
    sources, targets = (
        list(map(shorten, one)) for one in (shown.source_tokens, shown.target_tokens)
    )
    cell = (COLUMN_WIDTH - _LABELS) / _COLUMNS / len(targets)  # inches
    rows = -(-len(shown.weights) // _COLUMNS)
    height = rows * (cell * len(sources) + _TITLE) + _AROUND
    size = min(COLUMN_FONT, 72 * cell * 0.8)
    with style([*sources, *targets], COLUMN_FONT):
        figure = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
        grid = figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False)
        for axes in grid.flat[len(shown.weights) :]:
            axes.set_axis_off()
        for number, (axes, weights) in enumerate(zip(grid.flat, shown.weights, strict=False), 1):
            image = draw_map(axes, np.array(weights).T, f"decoder layer {number}", gap=0.5)
            axes.set_xticks(range(len(targets)), targets, rotation=90, fontsize=size)
            axes.set_yticks(range(len(sources)), sources, fontsize=size)
            axes.tick_params(labelbottom=number > len(shown.weights) - _COLUMNS)
        figure.supylabel("source tokens", fontsize=COLUMN_FONT)
        figure.supxlabel("tokens of the translation", fontsize=COLUMN_FONT)
        bar = figure.colorbar(
            image, ax=grid, location="top", shrink=0.5, aspect=30, label="attention (share)"
        )
        bar.outline.set_visible(False)
        note_stand_in(figure, shown.stand_in)
        save(figure, outputs)
