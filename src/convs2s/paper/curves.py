"""How a training went, epoch by epoch, and how BLEU depends on the length penalty."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from convs2s.errors import UserError, failures_of_file
from convs2s.paper.charts import COLORS, Panel, padded, save_figure
from convs2s.training.history import EpochRecord, perplexity, read_history

_MOST_POINTS = 60  # epochs of which each has a point on its curve
_RING = alt.MarkDef(type="point", filled=False, size=160, strokeWidth=1.5)


def plot_learning_curve(*, history: Path, heading: str, outputs: Sequence[Path]) -> None:
    """Draw perplexity and learning rate by epoch.

    Args:
        history: the trainer's ``history.jsonl``: a row an epoch; the last may say why it stopped.
        heading: what it is the history of.
        outputs: where to write the figure; the suffix says the format (.svg, .png).

    Raises:
        UserError: the history is missing or holds no epoch.
    """
    record = read_history(history)
    if not record.epochs:
        raise UserError(f"{history}: no epoch, so there is no curve; train for at least one epoch")
    best = _best(record.epochs)
    lines = [heading, f"best: {best.valid_perplexity:.4g} in epoch {best.epoch}"]
    if record.stop:
        lines.append(f"stopped: {record.stop}")
    save_figure(learning_curves({history.parent.name: record.epochs}), outputs, heading=lines)


def learning_curves(runs: Mapping[str, Sequence[EpochRecord]]) -> list[Panel]:
    """Return two panels: perplexity by epoch, the lowest ringed; and the learning rate.

    Dotted rules stand before the epochs whose learning rate is lower than the one before.

    Args:
        runs: name -> epochs of each run of one model, of one epoch at least.
    """
    rows: list[dict[str, Any]] = [
        {"run": run, "data": data, "epoch": row.epoch}
        | {"perplexity": value, "rate": row.learning_rate}
        for run, epochs in runs.items()
        for row in epochs
        for data, value in (
            ("validation", row.valid_perplexity),
            ("training", perplexity(row.train_loss)),
        )
    ]
    best_epochs = {run: _best(epochs).epoch for run, epochs in runs.items()}
    validation = [row for row in rows if row["data"] == "validation"]
    best = [row for row in validation if row["epoch"] == best_epochs[row["run"]]]
    drops = [
        {"run": run, "epoch": now.epoch - 0.5}
        for run, epochs in runs.items()
        for last, now in pairwise(epochs)
        if now.learning_rate < last.learning_rate
    ]
    last_epoch = max(row.epoch for epochs in runs.values() for row in epochs)
    x = alt.X(
        "epoch:Q",
        scale=alt.Scale(domain=[0.5, last_epoch + 0.5], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=min(last_epoch, 12), grid=False),
    )
    color = alt.Color("run:N", scale=alt.Scale(domain=list(runs), range=COLORS))
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("data:N"),
        alt.Tooltip("epoch:Q"),
        alt.Tooltip("perplexity:Q", format=".5~g"),
        alt.Tooltip("rate:Q", title="learning rate", format=".3~g"),
    ]
    rules = alt.Chart(alt.InlineData(values=drops)).mark_rule(strokeDash=[1, 2]).encode(x=x)
    rules = rules.encode(color=color)
    point: alt.OverlayMarkDef | bool = (
        alt.OverlayMarkDef(size=30) if last_epoch <= _MOST_POINTS else False
    )
    curves = alt.Chart(alt.InlineData(values=rows)).mark_line(point=point)
    curves = curves.encode(
        x=x,
        y=_log_axis("perplexity", [row["perplexity"] for row in rows]),
        color=color,
        strokeDash=alt.StrokeDash(
            "data:N",
            scale=alt.Scale(domain=["validation", "training"], range=[[1, 0], [5, 2]]),
            legend=alt.Legend(symbolType="stroke", symbolSize=400),
        ),
        tooltip=tooltip,
    )
    rings = alt.Chart(alt.InlineData(values=best), mark=_RING)
    rings = rings.encode(x=x, y="perplexity:Q", color=color, tooltip=tooltip)
    rates = [row["rate"] for row in validation]
    levels = sorted(set(rates))
    steps = alt.Chart(alt.InlineData(values=validation)).mark_line(interpolate="step", point=point)
    steps = steps.encode(
        x=x,
        y=_log_axis("rate", rates, title="learning rate", ticks=levels if len(levels) < 6 else ()),
        color=color,
        tooltip=tooltip,
    )
    return [
        alt.LayerChart(layer=[rules, curves, rings]).properties(height=220),
        alt.LayerChart(layer=[rules, steps]).properties(height=80),
    ]


def _best(epochs: Sequence[EpochRecord]) -> EpochRecord:
    return min(epochs, key=lambda row: row.valid_perplexity)


def _log_axis(
    field: str, values: Sequence[float], *, title: str | None = None, ticks: Sequence[float] = ()
) -> alt.Y:
    """Return a logarithmic axis that reads 20, 50, 100 instead of 10 to the power of something."""
    axis = alt.Axis(format="~g", values=list(ticks)) if ticks else alt.Axis(format="~g")
    scale = alt.Scale(type="log", nice=False, domain=padded(values, is_log=True))
    return alt.Y(f"{field}:Q", title=title or field, scale=scale, axis=axis)


def plot_length_penalty(
    *, table: Path, tuning: Path, heading: str, outputs: Sequence[Path]
) -> None:
    """Draw both BLEU scores and the length ratio by the length penalty (section 4.3).

    Args:
        table: the tuning's TSV file.
        tuning: its JSON file, which says what was chosen.
        heading: which decoding of which run.
        outputs: where to write the figure; the suffix says the format (.svg, .png).
    """
    with failures_of_file(str(table), "no table of a tuning; delete it and tune again"):
        points = pd.read_csv(table, sep="\t", dtype=float)
        tried = [
            {"penalty": penalty, "ratio": ratio}
            for penalty, ratio in zip(points["length_penalty"], points["length_ratio"], strict=True)
        ]
        rows = [
            {"penalty": penalty, "score": score, "BLEU": kind}
            for kind in ("tokenized", "detokenized")
            for penalty, score in zip(points["length_penalty"], points[f"{kind}_bleu"], strict=True)
        ]
    with failures_of_file(str(tuning), "no tuning of a length penalty; delete it and tune again"):
        chosen = json.loads(tuning.read_bytes())
        alpha, score = chosen["length_penalty"], chosen["tokenized_bleu"]["score"]
        ordinate = f"BLEU on {chosen['test_set']}, {chosen['lines']} lines"
    color = alt.Color("BLEU:N", sort=None, scale=alt.Scale(range=COLORS))
    x = alt.X("penalty:Q", title=None, scale=alt.Scale(zero=False))
    y = alt.Y("score:Q", title=ordinate, scale=alt.Scale(zero=False))
    curves = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True).encode(x, y, color)
    ring = alt.Chart(alt.InlineData(values=[{"penalty": alpha, "score": score}]), mark=_RING)
    ring = ring.encode(x, y, color=alt.value(COLORS[0]))
    ratio = (
        alt.Chart(alt.InlineData(values=tried))
        .mark_line(point=True)
        .encode(
            x=alt.X("penalty:Q", title="length penalty", scale=alt.Scale(zero=False)),
            y=alt.Y("ratio:Q", title="length ratio", scale=alt.Scale(zero=False)),
            color=alt.value("black"),
        )
    )
    level = (
        alt.Chart(alt.InlineData(values=[{"y": 1}])).mark_rule(strokeDash=[1, 2]).encode(y="y:Q")
    )
    panels: list[Panel] = [
        alt.LayerChart(layer=[curves, ring]).properties(height=220),
        alt.LayerChart(layer=[level.encode(y="ratio:Q"), ratio]).properties(height=80),
    ]
    save_figure(panels, outputs, heading=[heading, f"chosen: {score:.2f} at {alpha:g}"])
