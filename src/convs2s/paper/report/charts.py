"""The report's plots that answer to the pointer, as Vega-Lite specifications made by Altair."""

import re
from collections.abc import Iterator, Sequence

import altair as alt
import numpy as np
from numpy.typing import NDArray

from convs2s.config.paper import Table
from convs2s.paper.plotting import LOOKS
from convs2s.paper.report.exhibits import ShownTable, leading_number
from convs2s.paper.trained import Training
from convs2s.training.history import perplexity

ChartSpec = dict[str, object]
"""A Vega-Lite specification."""

_COLORS = [look.color for look in LOOKS]
_DEVIATION = re.compile(r"± *([0-9.]+)")
_WHOSE = ["ours", "paper"]
_GREY = "#7f8790"  # seen on both a light and a dark ground
_STEP = 16  # pixels of a word in a map


def learning_curves(runs: Sequence[Training]) -> ChartSpec:
    """Return perplexity by epoch of the runs of one model.

    Args:
        runs: at least one with a history.
    """
    rows = [row for run in runs for row in _points(run)]
    epochs = max(one.epoch for run in runs for one in run.epochs)
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=alt.OverlayMarkDef(size=30), clip=True)
        .encode(
            x=alt.X("epoch:Q", axis=alt.Axis(tickMinStep=1, format="d", tickCount=min(epochs, 12))),
            y=alt.Y(
                "perplexity:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~g")
            ),
            color=alt.Color("run:N", scale=alt.Scale(range=_COLORS)),
            strokeDash=alt.StrokeDash(
                "data:N",
                sort=["validation", "training"],
                legend=alt.Legend(symbolType="stroke", symbolSize=400),
            ),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("data:N"),
                alt.Tooltip("epoch:Q"),
                alt.Tooltip("perplexity:Q", format=".5~g"),
                alt.Tooltip("rate:Q", title="learning rate", format=".3~g"),
            ],
        )
    )
    return _finished(chart.properties(width="container", height=240), "Perplexity by epoch")


def _points(run: Training) -> Iterator[dict[str, object]]:
    """Yield two points for each epoch of a run: of validation and of training."""
    for one in run.epochs:
        values = {"validation": one.valid_perplexity, "training": perplexity(one.train_loss)}
        for data, value in values.items():
            place = {"run": run.run, "data": data, "epoch": one.epoch}
            yield {**place, "perplexity": value, "rate": one.learning_rate}


def layers_chart(printed: Table, shown: Sequence[int], table: ShownTable) -> ChartSpec | None:
    """Return the values of a figure by its rows' places on the x-axis, the paper's beside ours.

    There is no chart of no values.

    Args:
        printed: a figure whose rows have places.
        shown: which of its rows the table has, from 0.
        table: its values.
    """
    network = printed.group_label or "values"
    rows = [
        {"network": printed.rows[number].group or "", "x": printed.rows[number].x}
        | {"value": value, "whose": whose, "deviation": deviation}
        for number, cells in zip(shown, table.rows, strict=True)
        for whose, value, deviation in _values(table.header, [cell.text for cell in cells])
    ]
    measure = printed.columns[0].name
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x:Q", title=printed.system_label, axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("value:Q", title=measure, scale=alt.Scale(zero=False)),
        color=alt.Color("network:N", title=network, scale=alt.Scale(range=_COLORS)),
        tooltip=[
            alt.Tooltip("network:N", title=network),
            alt.Tooltip("x:Q", title=printed.system_label),
            alt.Tooltip("whose:N", title="value of"),
            alt.Tooltip("value:Q", title=measure),
            alt.Tooltip("deviation:N", title="deviation over seeds"),
        ],
    )
    ours = alt.InlineData(values=[row for row in rows if row["whose"] == "ours"])
    scale = alt.Scale(domain=_WHOSE, range=["circle", "diamond"])
    shape = alt.Shape("whose:N", title="value of", scale=scale)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape)
    # A line through no value would be a complaint in the browser's console.
    layers = [base.properties(data=ours).mark_line(), points] if table.filled else [points]
    chart = alt.LayerChart(layer=layers).properties(width="container", height=280)
    return _finished(chart, printed.title) if rows else None


def attention_charts(
    weights: NDArray[np.floating], source: Sequence[str], target: Sequence[str]
) -> list[ChartSpec]:
    """Return a heat map for each attention layer, the source on the y-axis as in figure 3.

    Args:
        weights: (layers, target, source), each row over the source summing to 1.
        source: a word or token for each source position.
        target: the same for the target.
    """
    return [_attention_map(layer, source, target) for layer in weights]


def _attention_map(
    weights: NDArray[np.floating], source: Sequence[str], target: Sequence[str]
) -> ChartSpec:
    # A word may stand in a sentence twice, so that a place is told by its number.
    rows = [
        {"s": f"{i} {source[i]}", "t": f"{j} {target[j]}", "w": round(float(weights[j, i]), 4)}
        | {"source": source[i], "target": target[j]}
        for j in range(len(target))
        for i in range(len(source))
    ]
    word = "slice(datum.label, indexof(datum.label, ' ') + 1)"
    down = alt.Axis(labelExpr=word, ticks=False, labelAngle=-90)
    scale = alt.Scale(scheme="magma", reverse=True, domain=[0, 1])
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_rect(aria=False)
        .encode(
            x=alt.X("t:O", sort=None, title="target", axis=down),
            y=alt.Y("s:O", sort=None, title="source", axis=alt.Axis(labelExpr=word, ticks=False)),
            color=alt.Color("w:Q", scale=scale, legend=None),
            tooltip=[
                alt.Tooltip("source:N"),
                alt.Tooltip("target:N"),
                alt.Tooltip("w:Q", title="attention", format=".3f"),
            ],
        )
        .properties(width=alt.Step(_STEP), height=alt.Step(_STEP))
    )
    return _finished(chart, "attention: source on the y-axis, target on the x-axis")


def _values(header: Sequence[str], texts: Sequence[str]) -> list[tuple[str, float, str]]:
    """Return whose, value and deviation of the values in a row; text is none."""
    found = []
    for heading, text in zip(header, texts, strict=True):
        for whose in _WHOSE:
            value = leading_number(text) if heading.endswith(f" ({whose})") else None
            if value is not None:
                deviation = _DEVIATION.search(text)
                found.append((whose, value, deviation[1] if deviation else "none"))
    return found


def _finished(chart: alt.Chart | alt.LayerChart, title: str) -> ChartSpec:
    """Return a chart as plain values, described for those who do not see it."""
    spec: ChartSpec = (
        chart.properties(description=title)
        .configure(background="transparent", font="system-ui")
        .configure_view(stroke="transparent")
        .configure_legend(orient="bottom", symbolFillColor=_GREY, symbolStrokeColor=_GREY)
        .to_dict()
    )
    return spec
