"""Where phrases lie by their states, a panel for each set of them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convs2s.files.text import atomic_text
from convs2s.paper.phrase_map import PhraseMap, PhraseState, read_phrase_map
from convs2s.paper.plotting import COLUMN_FONT, COLUMN_WIDTH, LOOKS, note_stand_in, save, style

_PANEL = 2.35
"""Inches: the height of a panel."""


def plot_phrase_states(
    *, projections: Sequence[Path], outputs: Sequence[Path], points: Path
) -> None:
    """Draw the projections of phrases, and write what is drawn as CSV.

    Args:
        projections: JSON files of :func:`convs2s.paper.phrase_states.project_phrases`.
        outputs: where to write the figure; the suffix says the format (.svg, .pdf).
        points: the CSV file.
    """
    found = [read_phrase_map(path) for path in projections]
    with style(size=COLUMN_FONT), atomic_text(points) as stream:
        height = _PANEL * len(found) + 0.3
        figure = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
        grid = figure.subplots(len(found), 1, squeeze=False)
        for axes, projection in zip(grid.flat, found, strict=True):
            _draw(axes, projection)
        note_stand_in(figure, found[0].stand_in)
        save(figure, outputs)
        _table(found).to_csv(stream, index=False, lineterminator="\n")


def _table(found: Sequence[PhraseMap]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"task": one.task, "model": one.model, "run": one.run, "phrases": one.name}
            | asdict(state)
            | {"tokens": " ".join(state.tokens)}
            for one in found
            for state in one.states
        ]
    )


def _draw(axes: Axes, found: PhraseMap) -> None:
    """Draw one set: a color and a marker for each meaning, numbers of the phrases listed below."""
    for number, state in enumerate(found.states, start=1):
        look = LOOKS[state.meaning % len(LOOKS)]
        axes.plot(
            state.x,
            state.y,
            color=look.color,
            marker=look.marker,
            markersize=4,
            linestyle="",
            label=f"{number}  {_label(state)}",
        )
        is_above = state.meaning % 2 == 0  # points of two meanings may lie close together
        axes.annotate(
            str(number),
            (state.x, state.y),
            textcoords="offset points",
            xytext=(0, 4 if is_above else -4),
            ha="center",
            va="bottom" if is_above else "top",
            color=look.color,
        )
    first, second = (f"{100 * share:.0f}%" for share in found.explained)
    axes.set_title(f"{found.title}\n{found.source}")
    axes.set_xlabel(f"component 1 ({first} of the variance)")
    axes.set_ylabel(f"component 2 ({second})")
    axes.margins(0.1, 0.2)
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.3), fontsize=6.5, labelspacing=0.2)


def _label(state: PhraseState) -> str:
    """Return a phrase with the number of its words that were not known."""
    return state.phrase + (f" ({state.unknown} unknown)" if state.unknown else "")
