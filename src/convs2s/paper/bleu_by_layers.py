"""BLEU by the number of layers in the encoder or in the decoder (the paper's figure 2)."""

import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from convs2s.config.paper import printed_number
from convs2s.config.settings import Settings
from convs2s.files.text import write_text
from convs2s.paper.cells import Cell
from convs2s.paper.charts import Panel, Point, described, padded, save_figure
from convs2s.paper.results import entries_of, results

# Maximum number of characters in a line of the note below a panel. A longer line would be wider
# than the panel.
_LINE = 54


@dataclass(frozen=True)
class Depth:
    """One network of the figure, with a number of layers in its encoder or its decoder."""

    side: str  # the side whose number of layers varies: encoder or decoder
    layers: int  # number of layers on this side
    paper: float | None  # BLEU that the paper prints; None if the paper only plots it
    # Mean over our seeds; None if no seed was run, or if the scores have different signatures.
    bleu: float | None
    # Standard deviation over our seeds; None with fewer than two.
    deviation: float | None
    seeds: int  # number of seeds that were run


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
    """Draw BLEU by the number of layers, ours above the paper's, and write the points as CSV.

    For ``cells``, ``scores`` and ``published`` see `entries_of`.
    """
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
    """Draw the scores of the figure's cells, and return its networks at this scale.

    The panel of the paper is below ours; with two columns, it is beside ours.
    """
    stand_in = settings.scale.stand_in
    drawn = depths(settings, name, shown)
    panels = layer_panels(drawn, on_stand_in=stand_in is not None)
    heading = ["tokenized BLEU (0 to 100), before unknown words are replaced"]
    save_figure(panels, outputs, heading=heading, stand_in=stand_in, columns=columns)
    return drawn


def depths(
    settings: Settings,
    name: str,
    shown: Iterable[Cell],
) -> list[Depth]:
    """Return the networks of the figure that are not left out at this scale.

    A row's ``group`` in config/paper.yaml is the side, its ``x`` the number of layers. The BLEU is
    that of the first column.
    """
    printed = settings.paper[name]
    bleu_column = printed.columns[0].key
    cell_of_row = {
        cell.address.row: cell for cell in shown if cell.address.column == bleu_column
    }
    found = []
    for number in settings.scale.shown_rows(printed):
        row = printed.rows[number]
        assert row.group is not None
        assert row.x is not None
        cell = cell_of_row.get(number)
        found.append(
            Depth(
                side=row.group,
                layers=int(row.x),
                paper=printed_number(row, bleu_column),
                bleu=cell.mean if cell else None,
                deviation=cell.deviation if cell else None,
                seeds=len(cell.entries) if cell else 0,
            )
        )
    return found


def layer_panels(networks: Sequence[Depth], *, on_stand_in: bool) -> list[Panel]:
    """Return two panels: our BLEU by the number of layers, and the paper's.

    Both panels have the same BLEU axis. On stand-in data, each panel has its own axis, because only
    the shapes of the curves can be compared. A note below the second panel lists the networks
    without a point of ours: those that were not run, and those whose seeds' scores have no mean.
    """
    ours: list[Point] = []
    papers: list[Point] = []
    for network in networks:
        for whose, points, bleu, deviation in (
            ("ours", ours, network.bleu, network.deviation),
            ("paper", papers, network.paper, None),
        ):
            if bleu is not None:
                points.append(
                    {
                        "network": network.side,
                        "layers": network.layers,
                        "bleu": bleu,
                        "whose": whose,
                        # The ends of the bar for the standard deviation.
                        "low": bleu - (deviation or 0),
                        "high": bleu + (deviation or 0),
                        "deviation": "none"
                        if deviation is None
                        else f"{deviation:.2f}",
                    }
                )
    # Why a network has no point of ours -> side -> layers.
    absent: dict[str, dict[str, list[int]]] = {}
    for network in networks:
        if network.bleu is None:
            why = "seeds scored by different metrics" if network.seeds else "not run"
            sides = absent.setdefault(why, {})
            sides.setdefault(network.side, []).append(network.layers)
    was_run = any(network.seeds for network in networks)
    our_title = "ours" if was_run else "ours: not run"
    if any(network.deviation is not None for network in networks):
        our_title = "ours, mean ± standard deviation over seeds"
    label = ["layers of the encoder or decoder"]
    label_and_note = list(label)  # the note is printed below the label of the x-axis
    for why, sides in absent.items():
        note = "; ".join(f"{side} {spans(layers)}" for side, layers in sides.items())
        label_and_note += textwrap.wrap(f"{why}: {note}", _LINE)
    panels = []
    for points, title, label_lines in (
        (ours, our_title, label),
        (papers, "the paper (tables 7 and 8)", label_and_note),
    ):
        on_axis = points if on_stand_in else ours + papers
        domain = padded(point[end] for point in on_axis for end in ("low", "high"))
        # The keywords fill the placeholders of data/bleu_by_layers.yaml, such as $title.
        panel = described(
            "bleu_by_layers",
            title=title,
            networks=points,
            label=label_lines,
            layers=[0, 1 + max(network.layers for network in networks)],
            sides=list(dict.fromkeys(network.side for network in networks)),
            bleu=domain,
        )
        if not points:
            # Without data, Vega-Lite would warn about the lines in the browser's console. The last
            # layer of the chart, the points, is enough to draw the axes.
            panel["layer"] = panel["layer"][-1:]
        panels.append(panel)
    return panels


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, with consecutive numbers joined: ``1-4, 6, 8-25``."""
    ends: list[list[int]] = []  # the first and last number of each span
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in ends
    )
