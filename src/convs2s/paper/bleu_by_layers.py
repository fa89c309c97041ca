"""BLEU by the number of layers of the encoder and of the decoder (the paper's figure 2)."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from convs2s.config.paper import Table
from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text
from convs2s.paper.cells import Cell, table_of
from convs2s.paper.plotting import COLUMN_FONT, COLUMN_WIDTH, LOOKS, note_stand_in, save, style
from convs2s.paper.results import Result, entries_of, results

_LINE = 64
"""Characters in a line of the note on what was not run."""


@dataclass(frozen=True)
class Depth:
    """A network of the figure.

    Attributes:
        side: what has so many layers: ``encoder`` or ``decoder``.
        layers: how many.
        paper: BLEU as the paper prints it; None where it plots the value alone.
        bleu: mean of our seeds; None where none was run.
        deviation: their standard deviation; None with fewer than two.
        seeds: how many were run.
    """

    side: str
    layers: int
    paper: float | None
    bleu: float | None
    deviation: float | None
    seeds: int


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
    """Draw BLEU by the number of layers, ours above the paper's, and write what is drawn as CSV.

    On stand-in data each panel has a BLEU axis of its own, as only the shapes compare.

    Args:
        settings: the configuration.
        name: of the figure in config/paper.yaml, which has a row for each network.
        cells: those of its values that the workflow measures.
        scores: those of the cells' paths that exist.
        published: a published ledger, which gives runs that were not made here; None without one.
        outputs: where to write the figure; the suffix says the format (.svg, .pdf).
        points: the CSV file.
    """
    ours_by_row = results(cells, entries_of(settings, cells, scores, published))
    found = draw(settings, name, ours_by_row, outputs)
    with atomic_text(points) as stream:
        pd.DataFrame(map(asdict, found)).to_csv(stream, index=False, lineterminator="\n")


def draw(
    settings: Settings, name: str, ours_by_row: Iterable[Result], outputs: Sequence[Path]
) -> list[Depth]:
    """Draw what the runs of the figure's cells scored, and return what is drawn.

    Args:
        settings: the configuration.
        name: of the figure in config/paper.yaml.
        ours_by_row: what its cells show.
        outputs: where to write the figure; the suffix says the format (.svg, .pdf).
    """
    printed, stand_in = table_of(settings, name), settings.scale.stand_in
    found = list(depths(printed, settings.scale.shown_rows(printed), ours_by_row))
    with style(size=COLUMN_FONT):
        figure = Figure(figsize=(COLUMN_WIDTH, 4.2), layout="constrained")
        ours, papers = figure.subplots(2, 1, sharex=True, sharey=stand_in is None)
        _draw_ours(ours, found)
        _draw_papers(papers, found)
        papers.set_xlabel(f"layers of the encoder or decoder\n{_absent(found)}".rstrip())
        figure.supylabel("tokenized BLEU (0 to 100) before replacement", fontsize=COLUMN_FONT)
        note_stand_in(figure, stand_in)
        save(figure, outputs)
    return found


def depths(printed: Table, shown: Iterable[int], found: Iterable[Result]) -> Iterator[Depth]:
    """Yield the networks of the figure in the paper's order.

    Args:
        printed: the figure; ``x`` of its rows counts layers.
        shown: which rows the scale has, from 0.
        found: what the runs of its cells scored.
    """
    ours = {result.cell.address.row: result for result in found}
    for number in shown:
        row = printed.rows[number]
        assert row.group is not None
        assert row.x is not None
        value, result = row.paper.get(printed.columns[0].key), ours.get(number)
        yield Depth(
            side=row.group,
            layers=int(row.x),
            paper=None if value is None else float(value),
            bleu=result.mean if result else None,
            deviation=result.deviation if result else None,
            seeds=len(result.entries) if result else 0,
        )


def _draw_ours(axes: Axes, found: Sequence[Depth]) -> None:
    for (side, rows), look in zip(_sides(found), LOOKS, strict=False):
        run = {row.layers: row.bleu for row in rows if row.bleu is not None}
        bars = [row.deviation or 0.0 for row in rows if row.bleu is not None]
        axes.errorbar(
            list(run),
            list(run.values()),
            yerr=bars if any(bars) else None,
            label=side,
            capsize=1.5,
            elinewidth=0.8,
            linewidth=1,
            markersize=3,
            **asdict(look),
        )
    if any(row.deviation is not None for row in found):
        axes.set_title("ours, mean ± standard deviation over seeds")
    else:
        axes.set_title("ours" if any(row.seeds for row in found) else "ours: not run")
    axes.legend()


def _draw_papers(axes: Axes, found: Sequence[Depth]) -> None:
    for (_, rows), look in zip(_sides(found), LOOKS, strict=False):
        stated = {row.layers: row.paper for row in rows if row.paper is not None}
        axes.plot(
            list(stated),
            list(stated.values()),
            linewidth=1,
            markersize=4,
            markerfacecolor="none",
            **asdict(look),
        )
    axes.set_title("the paper's printed values (tables 7 and 8)")
    axes.set_xlim(0, 1 + max(row.layers for row in found))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5]))


def _sides(found: Sequence[Depth]) -> list[tuple[str, list[Depth]]]:
    return [(side, list(rows)) for side, rows in groupby(found, key=lambda row: row.side)]


def _absent(found: Sequence[Depth]) -> str:
    """Say which networks were not run; nothing where all were."""
    absent = [
        f"{side} {spans([row.layers for row in rows if not row.seeds])}"
        for side, rows in _sides(found)
        if not all(row.seeds for row in rows)
    ]
    return textwrap.fill("not run: " + "; ".join(absent), _LINE) if absent else ""


def spans(numbers: Sequence[int]) -> str:
    """Return rising numbers as text, neighbors joined: ``1-4, 6, 8-25``."""
    ends: list[list[int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join("-".join(map(str, dict.fromkeys(pair))) for pair in ends)
