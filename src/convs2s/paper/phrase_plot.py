"""Where phrases lie by their states, a panel for each set of them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from convs2s.files import atomic_text
from convs2s.paper.phrase_map import PhraseMap, PhraseState, read_phrase_map
from convs2s.paper.plotting import LOOKS, note_stand_in, save, style

_COLUMNS = 2
_WORDS_PER_LINE = 6


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
    rows = -(-len(found) // _COLUMNS)
    with style(), atomic_text(points) as stream:
        figure = Figure(figsize=(7, 3 * rows + 0.3), layout="constrained")
        grid = figure.subplots(rows, _COLUMNS, squeeze=False)
        for axes in grid.flat[len(found) :]:
            axes.set_axis_off()
        for axes, projection in zip(grid.flat, found, strict=False):
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
    """Draw one set: a color and a marker for each meaning, each phrase beside its point."""
    for state in found.states:
        look = LOOKS[state.meaning % len(LOOKS)]
        axes.plot(state.x, state.y, color=look.color, marker=look.marker)
        axes.annotate(
            _label(state),
            (state.x, state.y),
            textcoords="offset points",
            xytext=(0, 5),
            ha="center",
            fontsize=6,
            color=look.color,
        )
    first, second = (f"{100 * share:.0f}%" for share in found.explained)
    axes.set_title(f"{found.title}: {found.source}", fontsize=8)
    axes.set_xlabel(f"component 1 ({first} of the variance)")
    axes.set_ylabel(f"component 2 ({second})")
    axes.margins(0.35, 0.2)


def _label(state: PhraseState) -> str:
    """Return a phrase in lines of a few words, with the number of those that were not known."""
    words = state.phrase.split()
    starts = range(0, len(words), _WORDS_PER_LINE)
    lines = [" ".join(words[start : start + _WORDS_PER_LINE]) for start in starts]
    unknown = [f"({state.unknown} unknown)"] if state.unknown else []
    return "\n".join([*lines, *unknown])
