"""How a training went, epoch by epoch, and how BLEU depends on the length penalty."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from convs2s.config.settings import Settings
from convs2s.errors import UserError, failures_of_file
from convs2s.paper.charts import (
    COLORS,
    Panel,
    chart_of,
    colors_of,
    padded,
    save_figure,
    shapes_of,
)
from convs2s.paper.results import Result
from convs2s.training.history import EpochRecord, perplexity, read_history

_MOST_POINTS = 60  # epochs of which each has a point on its curve
_POINT_SIZE = 30  # square pixels
_RING_SIZE = 160
_DOTTED = [1, 2]  # of rules
TRAINING = "e^(training loss)"  # no perplexity: with dropout, and smoothed labels

TRAININGS = "trainings"
"""The table of this project that has a row for each model, in groups of what is compared."""

Point = dict[str, Any]
"""A value of a curve, by the names of what its axes, colors and tooltips show."""


@dataclass(frozen=True)
class _Points:
    """What the panels of learning curves show."""

    validation: list[Point] = field(default_factory=list)
    training: list[Point] = field(default_factory=list)
    bleu: list[Point] = field(default_factory=list)  # of validation data, where it was measured
    best: list[Point] = field(default_factory=list)  # those of validation that are ringed
    drops: list[Point] = field(default_factory=list)  # where the learning rate falls


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
    save_figure(list(panels.values()), outputs, heading=lines)


def learning_curves(runs: Mapping[str, Sequence[EpochRecord]]) -> dict[str, Panel]:
    """Return what -> its panel by epoch: perplexity, the best ringed; any BLEU; the learning rate.

    Dotted rules stand before the epochs whose learning rate is at most half of the one before. Each
    run of the model has one epoch at least.
    """
    last_epoch = max(row.epoch for epochs in runs.values() for row in epochs)
    x = alt.X(
        "epoch:Q",
        scale=alt.Scale(domain=[0.5, last_epoch + 0.5], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=min(last_epoch, 12), grid=False),
    )
    color = colors_of("run", list(runs))
    of_perplexity = alt.Tooltip("perplexity:Q", format=".5~g")
    of_rate = alt.Tooltip("rate:Q", title="learning rate", format=".3~g")
    tooltip: list[str | alt.Tooltip] = ["run:N", "data:N", "epoch:Q", of_perplexity, of_rate]
    points = _points_of(runs)
    has_points = last_epoch <= _MOST_POINTS
    dot: Any = alt.OverlayMarkDef(size=_POINT_SIZE) if has_points else False

    both = [*points.validation, *points.training]
    y = _log_axis("perplexity", [point["perplexity"] for point in both])
    of_both = chart_of(both).encode(x=x, y=y, color=color, tooltip=tooltip)
    rings = chart_of(points.best).mark_point(filled=False, size=_RING_SIZE)
    rings = rings.encode(x=x, y="perplexity:Q", color=color, tooltip=tooltip)
    drawn = {"perplexity": [*_lines(of_both, has_points), rings]}
    if points.bleu:
        scores = alt.Y("BLEU:Q", title="BLEU", scale=alt.Scale(zero=False))
        of_bleu = chart_of(points.bleu).mark_line(point=dot)
        drawn["BLEU"] = [of_bleu.encode(x=x, y=scores, color=color)]
    rates = [point["drawn rate"] for point in points.validation]
    rate = _log_axis("drawn rate", rates, title="learning rate")
    steps = chart_of(points.validation).mark_line(interpolate="step", point=dot)
    steps = steps.encode(x=x, y=rate, color=color, tooltip=tooltip)
    drawn["learning rate"] = [steps]

    rules = chart_of(points.drops).mark_rule(strokeDash=_DOTTED)
    rules = rules.encode(x=x, color=color)
    panels: dict[str, Panel] = {}
    for what, layers in drawn.items():
        height = 220 if what == "perplexity" else 80
        panels[what] = alt.LayerChart(layer=[rules, *layers]).properties(height=height)
    return panels


def _points_of(runs: Mapping[str, Sequence[EpochRecord]]) -> _Points:
    points = _Points()
    for run, epochs in runs.items():
        best_epoch = _best(epochs).epoch
        for row in epochs:
            about = {"run": run, "epoch": row.epoch, "rate": row.learning_rate}
            validation = {**about, "data": "validation", "perplexity": row.valid_perplexity}
            points.validation.append(validation)
            if row.epoch == best_epoch:
                points.best.append(validation)
            if row.valid_bleu is not None:
                points.bleu.append({**about, "data": "validation", "BLEU": row.valid_bleu})
            train_perplexity = perplexity(row.train_loss)
            points.training.append({**about, "data": TRAINING, "perplexity": train_perplexity})
        for before, row in pairwise(epochs):
            if 2 * row.learning_rate <= before.learning_rate:
                points.drops.append({"run": run, "epoch": row.epoch - 0.5})
    # A cosine ends at next to nothing: the axis ends at a ten thousandth of its largest rate.
    least = max(point["rate"] for point in points.validation) / 1e4
    for point in points.validation:
        point["drawn rate"] = max(point["rate"], least)
    return points


def plateau_panels(settings: Settings, shown: Iterable[Result]) -> list[Panel]:
    """Return a panel for each group of `TRAININGS`, with a line for each run that has a curve.

    What is below the dotted rule is within 1% of the best epoch.
    """
    groups: dict[str | None, list[Point]] = {}
    for result in shown:
        row = settings.paper[TRAININGS].rows[result.cell.address.row]
        for run, entry in result.entries.items():
            for epoch, value in enumerate(entry.curve, start=1):
                share = value / min(entry.curve)
                point = {"training": f"{row.system}, {run}", "epoch": epoch, "share": share}
                groups.setdefault(row.group, []).append(point)
    axis = alt.Axis(format="%", tickCount=4, grid=False)
    scale = alt.Scale(domain=[0.99, 1.2])
    y = alt.Y("share:Q", title="of the best one", axis=axis, scale=scale)
    rule = chart_of([{"share": 1.01}]).mark_rule(strokeDash=_DOTTED)
    rule = rule.encode(y=y)
    panels = list[Panel]()
    for group, points in groups.items():
        last = max(point["epoch"] for point in points)
        labeled = range(1, last + 1, math.ceil(last / 6))
        ticks = alt.Axis(values=list(labeled), format="d", grid=False)
        epochs = alt.Scale(domain=[1, max(last, 2)])
        lines = chart_of(points).mark_line(clip=True, strokeWidth=1.5, color=COLORS[0])
        lines = lines.encode(
            x=alt.X("epoch:Q", axis=ticks, scale=epochs),
            y=y,
            detail="training:N",
            tooltip=["training:N", "epoch:Q"],
        )
        panel = alt.LayerChart(layer=[rule, lines])
        panels.append(panel.properties(height=80, title=group or ""))
    return panels


def _lines(both: alt.Chart, has_points: bool) -> list[alt.Chart]:
    """Return the lines of validation and training data, dashed, and their points.

    The points tell them apart by their shape, as a single epoch has no line.
    """
    data = ["validation", TRAINING]
    legend = alt.Legend(symbolType="stroke", symbolSize=400)
    if has_points:  # One legend shows both channels: here the shapes without dashes around them.
        legend = alt.Legend(symbolStrokeWidth=0)
    dashes = alt.Scale(domain=data, range=[[1, 0], [5, 2]])
    dash = alt.StrokeDash("data:N", scale=dashes, legend=legend)
    lines = both.mark_line().encode(strokeDash=dash)
    if not has_points:
        return [lines]
    points = both.mark_point(filled=True, size=_POINT_SIZE, opacity=1)
    return [lines, points.encode(shape=shapes_of("data", data, legend=legend))]


def _best(epochs: Sequence[EpochRecord]) -> EpochRecord:
    return min(epochs, key=lambda row: row.criterion)


def _log_axis(field: str, values: Sequence[float], *, title: str | None = None) -> alt.Y:
    """Return a logarithmic axis, labeled 20, 50, 100; of few values it has a tick for each."""
    levels = sorted(set(values))
    values_of_ticks = levels if len(levels) <= 5 else alt.Undefined
    axis = alt.Axis(format=".4~g", values=values_of_ticks)
    scale = alt.Scale(type="log", nice=False, domain=padded(values, is_log=True))
    return alt.Y(f"{field}:Q", title=title or field, scale=scale, axis=axis)


def plot_length_penalty(
    *, table: Path, tuning: Path, heading: str, outputs: Sequence[Path]
) -> None:
    """Draw both BLEU scores and the length ratio by the length penalty (section 4.3).

    ``table`` is the tuning's TSV file, ``tuning`` its JSON file, which says what was chosen.
    """
    with failures_of_file(str(table), "no table of a tuning; delete it and tune again"):
        points = pd.read_csv(table, sep="\t", dtype=float).rename(
            columns={"length_penalty": "penalty", "length_ratio": "ratio"}
        )
        points.columns = points.columns.str.removesuffix("_bleu")
        tried = points[["penalty", "ratio"]].to_dict("records")
        scores = points.melt("penalty", ["tokenized", "detokenized"], "BLEU", "score")
        rows = scores.to_dict("records")
    with failures_of_file(str(tuning), "no tuning of a length penalty; delete it and tune again"):
        chosen = json.loads(tuning.read_bytes())
        alpha = chosen["length_penalty"]
        score = chosen["tokenized_bleu"]["score"]
        ordinate = f"BLEU on {chosen['test_set']}, {chosen['lines']} lines"
    color = alt.Color("BLEU:N", sort=None, scale=alt.Scale(range=COLORS))
    x = alt.X("penalty:Q", title=None, scale=alt.Scale(zero=False))
    y = alt.Y("score:Q", title=ordinate, scale=alt.Scale(zero=False))
    curves = chart_of(rows).mark_line(point=True)
    curves = curves.encode(x, y, color)
    ring = chart_of([{"penalty": alpha, "score": score}])
    ring = ring.mark_point(filled=False, size=_RING_SIZE)
    ring = ring.encode(x, y, color=alt.value(COLORS[0]))
    ratio = chart_of(tried).mark_line(point=True)
    ratio = ratio.encode(
        x=alt.X("penalty:Q", title="length penalty", scale=alt.Scale(zero=False)),
        y=alt.Y("ratio:Q", title="length ratio", scale=alt.Scale(zero=False)),
        color=alt.value("black"),
    )
    level = chart_of([{"ratio": 1}]).mark_rule(strokeDash=_DOTTED)
    level = level.encode(y="ratio:Q")
    panels: list[Panel] = [
        alt.LayerChart(layer=[curves, ring]).properties(height=220),
        alt.LayerChart(layer=[level, ratio]).properties(height=80),
    ]
    save_figure(panels, outputs, heading=[heading, f"chosen: {score:.2f} at {alpha:g}"])
