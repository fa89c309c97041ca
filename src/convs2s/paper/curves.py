"""How a training went, epoch by epoch, and how BLEU depends on the length penalty."""

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

_MOST_POINTS = 60  # epochs of which each has a point on its curve
_MOST_TICKS = 5  # values of which each has a tick on a logarithmic axis
TRAINING = "e^(training loss)"  # no perplexity: with dropout, and smoothed labels

TRAININGS = "trainings"
"""The table of this project that has a row for each model, in groups of what is compared."""


def plot_learning_curve(*, history: Path, heading: str, outputs: Sequence[Path]) -> None:
    """Draw perplexity and learning rate by epoch; a UserError says that there is no epoch."""
    record = read_history(history)
    if not record.epochs:
        raise UserError(f"{history}: no epoch, so there is no curve; train for at least one epoch")
    best = _best(record.epochs)
    bleu = "" if best.valid_bleu is None else f", BLEU {best.valid_bleu:.2f},"
    lines = [heading, f"best: {best.valid_perplexity:.4g}{bleu} in epoch {best.epoch}"]
    if record.stop:
        lines.append(f"stopped: {record.stop}")
    panels = learning_curves({history.parent.name: record.epochs})
    save_figure(panels.values(), outputs, heading=lines)


def learning_curves(runs: Mapping[str, Sequence[EpochRecord]]) -> dict[str, Panel]:
    """Return what -> its panel by epoch: perplexity, the best ringed; any BLEU; the learning rate.

    Dotted rules stand before the epochs whose learning rate is at most half of the one before. Each
    run of the model has one epoch at least.
    """
    points = _points_of(runs)
    last_epoch = max(point["epoch"] for point in points)
    perplexities = [point[data] for point in points for data in ("validation", TRAINING)]
    # Of few epochs each has a point, which tells the data apart by its shape, as a single epoch has
    # no line. One legend shows both channels: here the shapes without dashes around them.
    has_points = last_epoch <= _MOST_POINTS
    of_lines = {"symbolType": "stroke", "symbolSize": 400}
    panels = described(
        "learning_curves",
        points=points,
        runs=list(runs),
        epochs=[0.5, last_epoch + 0.5],
        ticks=min(last_epoch, 12),
        data=["validation", TRAINING],
        legend={"symbolStrokeWidth": 0} if has_points else of_lines,
        point={"size": 30} if has_points else False,
        perplexity=_log_axis(perplexities, "perplexity", "perplexity"),
        rate=_log_axis([point["drawn rate"] for point in points], "drawn rate", "learning rate"),
    )
    if not has_points:
        panels["perplexity"]["layer"][1]["layer"].pop()
    if all(point["BLEU"] is None for point in points):
        del panels["BLEU"]
    return panels


def _points_of(runs: Mapping[str, Sequence[EpochRecord]]) -> list[Point]:
    """Return a point for each epoch of each run; BLEU is None where it was not measured."""
    # A cosine ends at next to nothing: the axis ends at a ten thousandth of its largest rate.
    least = max(row.learning_rate for epochs in runs.values() for row in epochs) / 1e4
    points = []
    for run, epochs in runs.items():
        best = _best(epochs)
        rate_before = -1.0
        for row in epochs:
            points.append(
                {
                    "run": run,
                    "epoch": row.epoch,
                    "validation": row.valid_perplexity,
                    TRAINING: perplexity(row.train_loss),
                    "BLEU": row.valid_bleu,
                    "rate": row.learning_rate,
                    "drawn rate": max(row.learning_rate, least),
                    "is_best": row is best,
                    "falls": 2 * row.learning_rate <= rate_before,
                }
            )
            rate_before = row.learning_rate
    return points


def _best(epochs: Sequence[EpochRecord]) -> EpochRecord:
    return min(epochs, key=lambda row: row.criterion)


def _log_axis(values: Iterable[float], field: str, title: str) -> Panel:
    """Return a logarithmic axis, labeled 20, 50, 100; of few values it has a tick for each."""
    levels = sorted(set(values))
    axis: Panel = {"format": ".4~g"}
    if len(levels) <= _MOST_TICKS:
        axis["values"] = levels
    scale = {"type": "log", "nice": False, "domain": padded(levels, is_log=True)}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def plateau_panels(settings: Settings, shown: Iterable[Cell]) -> list[Panel]:
    """Return a panel for each group of `TRAININGS`, with a line for each run that has a curve."""
    groups: dict[str | None, list[Point]] = {}
    for cell in shown:
        row = settings.paper[TRAININGS].rows[cell.address.row]
        for run, entry in cell.entries.items():
            for epoch, value in enumerate(entry.curve, start=1):
                share = value / min(entry.curve)
                point = {"training": f"{row.system}, {run}", "epoch": epoch, "share": share}
                groups.setdefault(row.group, []).append(point)
    panels = list[Panel]()
    for group, points in groups.items():
        last = max(point["epoch"] for point in points)
        ticks = list(range(1, last + 1, math.ceil(last / 6)))
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
    *, table: Path, tuning: Path, heading: str, outputs: Sequence[Path]
) -> None:
    """Draw both BLEU scores and the length ratio by the length penalty (section 4.3).

    ``table`` is the tuning's TSV file, ``tuning`` its JSON file, which says what was chosen.
    """
    with failures_of_file(str(table), "no table of a tuning; delete it and tune again"):
        points = pd.read_csv(table, sep="\t", dtype=float)
        points.columns = points.columns.str.removesuffix("_bleu")
        shown = ["length_penalty", "length_ratio", "tokenized", "detokenized"]
        tried = points[shown].to_dict("records")
    with failures_of_file(str(tuning), "no tuning of a length penalty; delete it and tune again"):
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
