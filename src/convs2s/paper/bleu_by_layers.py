"""BLEU by the number of layers of the encoder and of the decoder (the paper's figure 2)."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import altair as alt
import pandas as pd

from convs2s.config.paper import Table, printed_number
from convs2s.config.settings import Settings
from convs2s.files.text import write_text
from convs2s.paper.cells import Cell
from convs2s.paper.charts import Panel, chart_of, colors_of, padded, save_figure, shapes_of
from convs2s.paper.results import Result, entries_of, results

_LINE = 54  # characters of the note on what was not run: those that the width of a panel holds


@dataclass(frozen=True)
class Depth:
    """A network of the figure."""

    side: str  # what has so many layers: encoder or decoder
    layers: int
    paper: float | None  # BLEU as the paper prints it; None where it plots the value alone
    bleu: float | None  # mean of our seeds; None where none was run
    deviation: float | None  # their standard deviation; None with fewer than two
    seeds: int  # how many were run


def plot_bleu_by_layers(
    settings: Settings,
    name: str,
    *,
    cells: Sequence[Cell],
    scores: Collection[str],
    published: str | None,
    outputs: Sequence[Path],
    points: Path,
) -> None:
    """Draw BLEU by the number of layers, ours above the paper's, and write what is drawn as CSV."""
    ours_by_row = results(cells, entries_of(settings, cells, scores, published))
    drawn = draw(settings, name, ours_by_row, outputs)
    table = pd.DataFrame(map(asdict, drawn))
    write_text(points, table.to_csv(index=False, lineterminator="\n"))


def draw(
    settings: Settings,
    name: str,
    ours_by_row: Iterable[Result],
    outputs: Sequence[Path],
    *,
    columns: int = 1,
) -> list[Depth]:
    """Draw what the runs of the figure's cells scored, and return what is drawn.

    Its two panels stand below each other, or side by side in two columns.
    """
    printed = settings.paper[name]
    stand_in = settings.scale.stand_in
    drawn = list(depths(printed, settings.scale.shown_rows(printed), ours_by_row))
    panels = layer_panels(drawn, on_stand_in=stand_in is not None)
    heading = ["tokenized BLEU (0 to 100) before replacement"]
    save_figure(panels, outputs, heading=heading, stand_in=stand_in, columns=columns)
    return drawn


def depths(printed: Table, shown: Iterable[int], ours_by_row: Iterable[Result]) -> Iterator[Depth]:
    """Yield the networks of the figure's shown rows (from 0), whose ``x`` counts layers."""
    bleu = printed.columns[0].key
    ours = {}
    for result in ours_by_row:
        if result.cell.address.column == bleu:
            ours[result.cell.address.row] = result
    for number in shown:
        row = printed.rows[number]
        assert row.group is not None
        assert row.x is not None
        of_row = ours.get(number)
        yield Depth(
            side=row.group,
            layers=int(row.x),
            paper=printed_number(row, bleu),
            bleu=of_row.mean if of_row else None,
            deviation=of_row.deviation if of_row else None,
            seeds=len(of_row.entries) if of_row else 0,
        )


def layer_panels(rows: Sequence[Depth], *, on_stand_in: bool) -> list[Panel]:
    """Return two panels: our BLEU by the number of layers, and the paper's.

    On stand-in data each has a BLEU axis of its own, as only the shapes compare.
    """
    ours = [row for row in rows if row.bleu is not None]
    papers = [replace(row, bleu=row.paper, deviation=None) for row in rows if row.paper is not None]
    title = "ours, mean ± standard deviation over seeds"
    if all(row.deviation is None for row in rows):
        title = "ours" if ours else "ours: not run"
    absent = []
    for side in dict.fromkeys(row.side for row in rows):
        if missing := [row.layers for row in rows if row.side == side and not row.seeds]:
            absent.append(f"{side} {spans(missing)}")
    note = textwrap.wrap("not run: " + "; ".join(absent), _LINE) if absent else []
    label = "layers of the encoder or decoder"
    shared = [*ours, *papers]
    upper = _panel("ours", ours, ours if on_stand_in else shared, rows, [label])
    lower = _panel("paper", papers, papers if on_stand_in else shared, rows, [label, *note])
    return [upper.properties(title=title), lower.properties(title="the paper (tables 7 and 8)")]


def _panel(
    whose: str,
    drawn: Sequence[Depth],
    on_axis: Sequence[Depth],
    networks: Sequence[Depth],
    label: list[str],
) -> alt.LayerChart:
    """Return one panel: its BLEU axis has room for ``on_axis``, its others for all networks."""
    sides = list(dict.fromkeys(row.side for row in networks))
    rows: list[dict[str, object]] = []
    for row in drawn:
        low, high = _ends(row)
        rows.append(
            {
                "network": row.side,
                "layers": row.layers,
                "bleu": row.bleu,
                "whose": whose,
                "low": low,
                "high": high,
                "deviation": "none" if row.deviation is None else f"{row.deviation:.2f}",
            }
        )
    most = max(row.layers for row in networks)
    base = chart_of(rows).encode(
        x=alt.X(
            "layers:Q",
            title=label,
            scale=alt.Scale(domain=[0, 1 + most], nice=False),
            axis=alt.Axis(tickMinStep=1, format="d"),
        ),
        color=colors_of("network", sides, title=None),
        tooltip=[
            alt.Tooltip("network:N"),
            alt.Tooltip("layers:Q", title="Layers"),
            alt.Tooltip("whose:N", title="value of"),
            alt.Tooltip("bleu:Q", title="BLEU", format=".2f"),
            alt.Tooltip("deviation:N", title="deviation over seeds"),
        ],
    )
    ends: list[float] = []
    for row in on_axis:
        ends += _ends(row)
    scale = alt.Scale(domain=padded(ends), nice=False)
    y = alt.Y("bleu:Q", title="BLEU", scale=scale)
    bottom = alt.Y("low:Q", title="BLEU", scale=scale)
    points = base.mark_point(filled=True, size=45, opacity=1)
    points = points.encode(y=y, shape=shapes_of("network", sides, title=None))
    lines = base.mark_line(strokeWidth=1.5).encode(y=y)
    bars = base.mark_rule().encode(y=bottom, y2="high:Q")
    # A line through no value would be a complaint in the browser's console.
    layers = [bars, lines, points] if rows else [points]
    return alt.LayerChart(layer=layers).properties(height=160)


def _ends(row: Depth) -> tuple[float, float]:
    """Return where the bar of a network that was run begins and ends."""
    assert row.bleu is not None
    deviation = row.deviation or 0
    return row.bleu - deviation, row.bleu + deviation


def spans(numbers: Sequence[int]) -> str:
    """Return rising numbers as text, neighbors joined: ``1-4, 6, 8-25``."""
    ends: list[list[int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join("-".join(map(str, dict.fromkeys(pair))) for pair in ends)
