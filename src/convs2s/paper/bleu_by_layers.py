"""BLEU by the number of layers of the encoder and of the decoder (the paper's figure 2)."""

import statistics
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from convs2s.config.paper import Table
from convs2s.files import atomic_text
from convs2s.paper.cells import Cell, Result, read
from convs2s.paper.plotting import COLUMN_FONT, COLUMN_WIDTH, LOOKS, note_stand_in, save, style

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
    *,
    printed: Table,
    cells: Sequence[Cell],
    scores: Collection[str],
    stand_in: str | None,
    outputs: Sequence[Path],
    points: Path,
) -> None:
    """Draw BLEU by the number of layers, ours above the paper's, and write what is drawn as CSV.

    Args:
        printed: the figure as config/paper.yaml has it: a row for each network.
        cells: those of its values that the workflow measures.
        scores: those of the cells' paths that exist.
        stand_in: what the data is, where it is not the paper's; then each panel has a BLEU axis of
            its own, as only the shapes compare.
        outputs: where to write the figure; the suffix says the format (.svg, .pdf).
        points: the CSV file.
    """
    found = list(depths(printed, cells, scores))
    with atomic_text(points) as stream:
        pd.DataFrame(map(asdict, found)).to_csv(stream, index=False, lineterminator="\n")
    with style(size=COLUMN_FONT):
        figure = Figure(figsize=(COLUMN_WIDTH, 4.2), layout="constrained")
        ours, papers = figure.subplots(2, 1, sharex=True, sharey=stand_in is None)
        _draw_ours(ours, found)
        _draw_papers(papers, found)
        papers.set_xlabel(f"layers of the encoder or decoder\n{_absent(found)}".rstrip())
        figure.supylabel("tokenized BLEU (0 to 100) before replacement", fontsize=COLUMN_FONT)
        note_stand_in(figure, stand_in)
        save(figure, outputs)


def depths(printed: Table, cells: Sequence[Cell], scores: Collection[str]) -> Iterator[Depth]:
    """Yield the networks of the figure in the paper's order.

    Args:
        printed: the figure; ``x`` of its rows counts layers.
        cells: those of its values that the workflow measures.
        scores: those of the cells' paths that exist.
    """
    ours = {cell.row: read(cell, scores) for cell in cells}
    for number, row in enumerate(printed.rows):
        assert row.group is not None
        assert row.x is not None
        value = row.paper.get(printed.columns[0].key)
        paper = None if value is None else float(value)
        yield Depth(row.group, int(row.x), paper, *_mean(ours.get(number)))


def _mean(result: Result | None) -> tuple[float | None, float | None, int]:
    """Return mean, standard deviation and number of the seeds' scores."""
    scores = result.scores if result else ()
    return (
        statistics.mean(scores) if scores else None,
        statistics.stdev(scores) if len(scores) > 1 else None,
        len(scores),
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
