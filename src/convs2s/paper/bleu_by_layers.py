"""BLEU by the number of layers of the encoder and of the decoder (the paper's figure 2)."""

import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from convs2s.config.paper import Table, printed_number
from convs2s.config.settings import Settings
from convs2s.files.text import write_text
from convs2s.paper.cells import Cell
from convs2s.paper.charts import Panel, Point, described, padded, save_figure
from convs2s.paper.results import entries_of, results

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
    shown = results(cells, entries_of(settings, cells, scores, published))
    drawn = draw(settings, name, shown, outputs)
    table = pd.DataFrame(map(asdict, drawn))
    write_text(points, table.to_csv(index=False, lineterminator="\n"))


def draw(
    settings: Settings,
    name: str,
    shown: Iterable[Cell],
    outputs: Sequence[Path],
    *,
    columns: int = 1,
) -> list[Depth]:
    """Draw what the runs of the figure's cells scored, and return what is drawn.

    Its two panels stand below each other, or side by side in two columns.
    """
    printed = settings.paper[name]
    stand_in = settings.scale.stand_in
    drawn = depths(printed, settings.scale.shown_rows(printed), shown)
    panels = layer_panels(drawn, on_stand_in=stand_in is not None)
    heading = ["tokenized BLEU (0 to 100) before replacement"]
    save_figure(panels, outputs, heading=heading, stand_in=stand_in, columns=columns)
    return drawn


def depths(printed: Table, rows: Iterable[int], shown: Iterable[Cell]) -> list[Depth]:
    """Return the networks of the figure's rows (from 0), whose ``x`` counts layers."""
    bleu = printed.columns[0].key
    ours = {cell.address.row: cell for cell in shown if cell.address.column == bleu}
    found = []
    for number in rows:
        row = printed.rows[number]
        assert row.group is not None
        assert row.x is not None
        cell = ours.get(number)
        found.append(
            Depth(
                side=row.group,
                layers=int(row.x),
                paper=printed_number(row, bleu),
                bleu=cell.mean if cell else None,
                deviation=cell.deviation if cell else None,
                seeds=len(cell.entries) if cell else 0,
            )
        )
    return found


def layer_panels(networks: Sequence[Depth], *, on_stand_in: bool) -> list[Panel]:
    """Return two panels: our BLEU by the number of layers, and the paper's.

    On stand-in data each has a BLEU axis of its own, as only the shapes compare.
    """
    ours = []
    papers = []
    absent: dict[str, list[int]] = {}  # side -> layers of what was not run
    for network in networks:
        if network.bleu is not None:
            ours.append(_point("ours", network, network.bleu, network.deviation))
        if network.paper is not None:
            papers.append(_point("paper", network, network.paper, None))
        if not network.seeds:
            absent.setdefault(network.side, []).append(network.layers)
    title = "ours" if ours else "ours: not run"
    if any(network.deviation is not None for network in networks):
        title = "ours, mean ± standard deviation over seeds"
    label = ["layers of the encoder or decoder"]
    note = "; ".join(f"{side} {spans(layers)}" for side, layers in absent.items())
    below = textwrap.wrap(f"not run: {note}", _LINE) if note else []
    panels = []
    for points, said, axis in (
        (ours, title, label),
        (papers, "the paper (tables 7 and 8)", label + below),
    ):
        on_axis = points if on_stand_in else ours + papers
        domain = padded(point[end] for point in on_axis for end in ("low", "high"))
        panel = described(
            "bleu_by_layers",
            title=said,
            networks=points,
            label=axis,
            layers=[0, 1 + max(network.layers for network in networks)],
            sides=list(dict.fromkeys(network.side for network in networks)),
            scale={"domain": domain, "nice": False},
        )
        if not points:  # a line through no value would be a complaint in the browser's console
            panel["layer"] = panel["layer"][-1:]
        panels.append(panel)
    return panels


def _point(whose: str, network: Depth, bleu: float, deviation: float | None) -> Point:
    """Return a point, and where the bar around it begins and ends."""
    return {
        "network": network.side,
        "layers": network.layers,
        "bleu": bleu,
        "whose": whose,
        "low": bleu - (deviation or 0),
        "high": bleu + (deviation or 0),
        "deviation": "none" if deviation is None else f"{deviation:.2f}",
    }


def spans(numbers: Sequence[int]) -> str:
    """Return rising numbers as text, neighbors joined: ``1-4, 6, 8-25``."""
    ends: list[list[int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join("-".join(map(str, dict.fromkeys(pair))) for pair in ends)
