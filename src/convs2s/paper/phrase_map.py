"""Maps of phrases by the states of an encoder: the record of a map, and the figure of maps."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from convs2s.files.text import atomic_text, read_checked
from convs2s.paper.charts import (
    COLORS,
    SHAPES,
    Panel,
    Point,
    described,
    padded,
    save_figure,
)


@dataclass(frozen=True)
class PhraseState:
    """A phrase on the map."""

    phrase: str
    meaning: int  # number of its meaning, from 0
    tokens: Sequence[str]  # the tokens that the model reads
    unknown: int  # number of words that the model does not know
    x: float  # the first principal component of the phrase's state
    y: float  # the second principal component


@dataclass(frozen=True)
class PhraseMap:
    """One entry of config/phrases.yaml, with the states of one model's encoder for its phrases."""

    task: str
    model: str
    run: str
    scale: str  # the scale at which the run was made
    # The data that stands in for the paper's; None for the paper's data.
    stand_in: str | None
    name: str  # name in config/phrases.yaml
    title: str  # what the phrases differ in
    source: str  # where the phrases come from
    # Share of the states' variance on each of the two components.
    explained: tuple[float, float]
    apart: float  # share of the variance between the meanings, in all dimensions
    states: Sequence[PhraseState]
    p: float | None = None  # the p-value of ``apart``; None in older files
    # The share that is expected by chance; None in older files.
    chance: float | None = None


def read_phrase_map(path: Path) -> PhraseMap:
    """Read a map of phrases.

    Raises:
        UserError: the file is damaged.
    """
    return read_checked(
        path, PhraseMap, "not a map of phrases; delete the file and make it again"
    )


def plot_phrase_states(
    *,
    projections: Sequence[Path],
    outputs: Sequence[Path],
    points: Path,
) -> None:
    """Draw maps of phrases, a panel for each, and write the points as CSV."""
    maps = list(map(read_phrase_map, projections))
    rows = []
    for shown in maps:
        about = {
            "task": shown.task,
            "model": shown.model,
            "run": shown.run,
            "phrases": shown.name,
        }
        for state in shown.states:
            rows.append({**about, **asdict(state), "tokens": " ".join(state.tokens)})
    save_figure(
        list(map(_panel, maps)), outputs, stand_in=maps[0].stand_in, shares_colors=False
    )
    with atomic_text(points) as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _panel(shown: PhraseMap) -> Panel:
    """Return the panel of a map: a color and a shape for each meaning, a number for each phrase.

    The legend lists the phrases by number.
    """
    # Index of the color and the shape of each phrase; there are as many colors as shapes.
    looks = [state.meaning % len(COLORS) for state in shown.states]
    rows: list[Point] = []
    for number, state in enumerate(shown.states, start=1):
        label = f"{number}  {state.phrase}"
        if state.unknown:
            label += f" ({state.unknown} unknown)"
        rows.append(
            {
                "phrase": label,
                "number": number,
                "x": state.x,
                "y": state.y,
                # The number is above the point (0) or below it (1), alternating by meaning.
                "side": state.meaning % 2,
            }
        )
    first, second = (f"{100 * share:.0f}%" for share in shown.explained)
    return described(
        "phrase_map",
        title=[shown.title, shown.source],
        phrases=rows,
        x_title=f"component 1 ({first} of the variance)",
        x=padded(state.x for state in shown.states),
        y_title=f"component 2 ({second})",
        y=padded(state.y for state in shown.states),
        labels=[row["phrase"] for row in rows],
        colors=[COLORS[look] for look in looks],
        shapes=[SHAPES[look] for look in looks],
    )
