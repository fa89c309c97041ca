"""Where phrases lie by the states of an encoder: the record, and the figure made of it."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from convs2s.errors import failures_of_file
from convs2s.files.text import atomic_text
from convs2s.paper.charts import COLORS, SHAPES, Panel, Point, described, padded, save_figure


@dataclass(frozen=True)
class PhraseState:
    """A phrase on the map."""

    phrase: str
    meaning: int  # its number, from 0
    tokens: Sequence[str]  # what the model reads of it
    unknown: int  # how many of them the model does not know
    x: float  # with y the two main components of the phrase's state
    y: float


@dataclass(frozen=True)
class PhraseMap:
    """The phrases of one name, as the encoder of one model read them."""

    task: str
    model: str
    run: str
    scale: str  # of the run
    stand_in: str | None  # what its data is, where it is not the paper's
    name: str  # of the phrases
    title: str  # what they differ in
    source: str  # where they come from
    explained: tuple[float, float]  # the share of the states' variance that each component has
    apart: float  # the share that lies between the meanings, in all dimensions
    states: Sequence[PhraseState]
    p: float | None = None  # of a share so large or so small by chance; None in older files
    chance: float | None = None  # the share by chance


def read_phrase_map(path: Path) -> PhraseMap:
    """Read a map; a UserError says that the file is none."""
    with failures_of_file(str(path), "no map of phrases; delete it and ask for it again"):
        return TypeAdapter(PhraseMap).validate_json(path.read_bytes())


def plot_phrase_states(
    *, projections: Sequence[Path], outputs: Sequence[Path], points: Path
) -> None:
    """Draw maps of phrases, a panel for each, and write what is drawn as CSV."""
    maps = list(map(read_phrase_map, projections))
    rows = []
    for shown in maps:
        about = {"task": shown.task, "model": shown.model, "run": shown.run, "phrases": shown.name}
        for state in shown.states:
            rows.append({**about, **asdict(state), "tokens": " ".join(state.tokens)})
    save_figure(list(map(_panel, maps)), outputs, stand_in=maps[0].stand_in, shares_colors=False)
    with atomic_text(points) as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _panel(shown: PhraseMap) -> Panel:
    """Return one set: a color and a shape for each meaning, numbers for the listed phrases."""
    looks = [state.meaning % len(COLORS) for state in shown.states]
    rows: list[Point] = []
    for number, state in enumerate(shown.states, start=1):
        label = f"{number}  {state.phrase}"
        if state.unknown:
            label += f" ({state.unknown} unknown)"
        side = state.meaning % 2  # on which its number stands
        rows.append({"phrase": label, "number": number, "x": state.x, "y": state.y, "side": side})
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
