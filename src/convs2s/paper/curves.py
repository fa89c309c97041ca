"""Plots of a training by epoch, and of BLEU by the length penalty."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from convs2s.config.settings import Settings
from convs2s.errors import UserError, failures_of_file
from convs2s.paper.cells import Cell
from convs2s.paper.charts import COLORS, Panel, Point, described, padded, save_figure
from convs2s.training.history import EpochRecord, perplexity, read_history

_MOST_POINTS = 60  # with more epochs than this, the curves have no points
# With at most this many different values, a logarithmic axis has a tick at each of them.
_MOST_TICKS = 5

TRAINING = "e^(training loss)"
"""The label of the training curve.

It is not called perplexity, because the training loss is measured with dropout and smoothed labels.
"""

TRAININGS = "trainings"
"""The name of the project's own table, with a row for each model.

Models that are compared with each other form a group of rows.
"""


def plot_learning_curve(
    *,
    history: Path,
    heading: str,
    outputs: Sequence[Path],
) -> None:
    """Draw the perplexity and the learning rate of a training by epoch, and BLEU if measured.

    Raises:
        UserError: the history has no finished epoch, or is damaged.
    """
    record = read_history(history)
    if not record.epochs:
        raise UserError(
            f"{history}: no epoch, so there is no curve; train for at least one epoch"
        )
    best = _best(record.epochs)
    bleu = "" if best.valid_bleu is None else f", BLEU {best.valid_bleu:.2f},"
    lines = [heading, f"best: {best.valid_perplexity:.4g}{bleu} in epoch {best.epoch}"]
    if record.stop:
        lines.append(f"stopped: {record.stop}")
    panels = learning_curves({history.parent.name: record.epochs})
    save_figure(panels.values(), outputs, heading=lines)


def learning_curves(runs: Mapping[str, Sequence[EpochRecord]]) -> dict[str, Panel]:
    """Return the panels of a model's runs by epoch: "perplexity", "BLEU" and "learning rate".

    The panel of BLEU is omitted if BLEU was measured in no epoch. A ring marks the best epoch of a
    run. A dotted line precedes each epoch whose learning rate is at most half of the previous
    epoch's. Each of ``runs`` must have at least one epoch.
    """
    points = _points_of(runs)
    last_epoch = max(point["epoch"] for point in points)
    perplexities = [
        point[data] for point in points for data in ("validation", TRAINING)
    ]
    rates = [point["drawn rate"] for point in points]
    # If there are few epochs, each has a point, because a single epoch has no line. Both the shape
    # of the points and the dashes of the lines distinguish training from validation. The legend
    # shows the shapes, or the dashes if there are no points.
    has_points = last_epoch <= _MOST_POINTS
    legend_of_points = {"symbolStrokeWidth": 0}
    legend_of_lines = {"symbolType": "stroke", "symbolSize": 400}
    panels = described(
        "learning_curves",
        points=points,
        runs=list(runs),
        epochs=[0.5, last_epoch + 0.5],
        ticks=min(last_epoch, 12),
        data=["validation", TRAINING],
        legend=legend_of_points if has_points else legend_of_lines,
        point={"size": 30} if has_points else False,
        perplexity_domain=padded(perplexities, is_log=True),
        perplexity_axis=_axis(perplexities),
        rate_domain=padded(rates, is_log=True),
        rate_axis=_axis(rates),
    )
    if not has_points:
        # Remove the layer that draws the points.
        panels["perplexity"]["layer"][1]["layer"].pop()
    if all(point["BLEU"] is None for point in points):
        del panels["BLEU"]
    return panels


def _points_of(runs: Mapping[str, Sequence[EpochRecord]]) -> list[Point]:
    """Return a point for each epoch of each run; BLEU is None if it was not measured."""
    # A cosine schedule ends close to 0, which a logarithmic axis cannot show. So no rate is drawn
    # below a ten thousandth of the largest.
    largest = max(row.learning_rate for epochs in runs.values() for row in epochs)
    lowest_drawn = largest / 1e4
    points = []
    for run, epochs in runs.items():
        best = _best(epochs)
        rate_before = -1.0  # so that "falls" is False for the first epoch
        for row in epochs:
            points.append(
                {
                    "run": run,
                    "epoch": row.epoch,
                    "validation": row.valid_perplexity,
                    TRAINING: perplexity(row.train_loss),
                    "BLEU": row.valid_bleu,
                    "rate": row.learning_rate,
                    "drawn rate": max(row.learning_rate, lowest_drawn),
                    "is_best": row is best,
                    "falls": 2 * row.learning_rate <= rate_before,
                }
            )
            rate_before = row.learning_rate
    return points


def _best(epochs: Sequence[EpochRecord]) -> EpochRecord:
    """Return the best epoch by its criterion."""
    return min(epochs, key=lambda row: row.criterion)


def _axis(values: Iterable[float]) -> Panel:
    """Return an axis with plain numbers as labels. If there are few values, each has a tick."""
    levels = sorted(set(values))
    if len(levels) > _MOST_TICKS:
        return {"format": ".4~g"}
    return {"format": ".4~g", "values": levels}


def plateau_panels(settings: Settings, shown: Iterable[Cell]) -> list[Panel]:
    """Return a panel for each group of rows of `TRAININGS`, with a line for each run.

    A line shows the validation perplexity by epoch, divided by the lowest of the run.
    """
    groups: dict[str | None, list[Point]] = {}
    for cell in shown:
        row = settings.paper[TRAININGS].rows[cell.address.row]
        for run, entry in cell.entries.items():
            for epoch, value in enumerate(entry.curve, start=1):
                share = value / min(entry.curve)
                point = {
                    "training": f"{row.system}, {run}",
                    "epoch": epoch,
                    "share": share,
                }
                groups.setdefault(row.group, []).append(point)
    panels = list[Panel]()
    for group, points in groups.items():
        last = max(point["epoch"] for point in points)
        ticks = list(range(1, last + 1, math.ceil(last / 6)))  # at most six
        panel = described(
            "plateau",
            title=group or "",
            points=points,
            color=COLORS[0],
            ticks=ticks,
            epochs=[1, max(last, 2)],
        )
        panels.append(panel)
    return panels


def plot_length_penalty(
    *,
    table: Path,
    tuning: Path,
    heading: str,
    outputs: Sequence[Path],
) -> None:
    """Draw tokenized and detokenized BLEU and the length ratio by the length penalty (section 4.3).

    ``table`` is the TSV file of the tuning, with all penalties that were tried. ``tuning`` is its
    JSON file, with the chosen penalty.

    Raises:
        UserError: a file is damaged.
    """
    with failures_of_file(
        table, "not the table of a tuning; delete the file and tune again"
    ):
        points = pd.read_csv(table, sep="\t", dtype=float)
        points.columns = points.columns.str.removesuffix("_bleu")
        shown = ["length_penalty", "length_ratio", "tokenized", "detokenized"]
        tried = points[shown].to_dict("records")
    expected = "not the tuning of a length penalty; delete the file and tune again"
    with failures_of_file(tuning, expected):
        chosen = json.loads(tuning.read_bytes())
        alpha = chosen["length_penalty"]
        score = chosen["tokenized_bleu"]["score"]
        ordinate = f"BLEU on {chosen['test_set']}, {chosen['lines']} lines"
    panels = described(
        "length_penalty",
        ordinate=ordinate,
        tried=tried,
        chosen=[{"length_penalty": alpha, "score": score}],
        color=COLORS[0],
    )
    lines = [heading, f"chosen: {score:.2f} at {alpha:g}"]
    save_figure(panels.values(), outputs, heading=lines)
