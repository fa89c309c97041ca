"""The report: what a run of the paper made, in one HTML file that needs nothing else."""

import base64
import os
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path

import vl_convert

from convs2s.config.settings import Settings
from convs2s.files.text import atomic_text
from convs2s.pages.render import asset, render_page
from convs2s.paper.attention_maps import attention_maps, read_example, spread_note
from convs2s.paper.bleu_by_layers import depths, layer_panels
from convs2s.paper.cells import Cell
from convs2s.paper.charts import VEGA_LITE, as_spec
from convs2s.paper.claims import printed_claims, rows_of_findings
from convs2s.paper.curves import learning_curves
from convs2s.paper.ledger import read_ledger
from convs2s.paper.report.examples import examples
from convs2s.paper.report.exhibits import (
    Trainings,
    cost_of,
    environment,
    read_claims,
    shown_tables,
    trainings,
)
from convs2s.paper.results import Result, results
from convs2s.paper.table_formats import Sheet
from convs2s.paper.trends import trend_panels

_OF_LINE = ("Claim", "Says", "Source", "Verdict of the claim")
"""Columns of a claim's tests that its line says."""

PagePart = dict[str, object]  # what a part of report.html.j2 shows, by the names that it has there


def write_report(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    failures: Mapping[str, str],
    attention_of: str | None,
    inputs: Collection[str],
    output: Path,
) -> None:
    """Write the report as one HTML file; links to logs are relative to it.

    ``cells`` are table -> those of its values that the workflow measures, ``failures`` path of a
    run's numbers -> why it failed, ``attention_of`` is the figure that shows attention maps.
    ``inputs`` are the files that exist: beside the output the ledger, the claims and figures;
    elsewhere histories, training.json, attention maps, translations and references.
    """
    paths = [Path(path) for path in inputs]
    beside = {path.name: path for path in paths if path.parent == output.parent}
    entries = read_ledger(beside["ledger.jsonl"])
    trained = trainings(entries, paths)
    maps = list[PagePart]()
    for example in (read_example(path) for path in paths if path.name.endswith(".example.json")):
        tokens = example.source_tokens, example.target_tokens
        panels = attention_maps(example.weights, *tokens, has_legend=False)
        described = "attention: source on the y-axis, target on the x-axis"
        charts = [as_spec(panel, described) for panel in panels]
        maps.append({"example": example, "charts": charts, "note": spread_note(len(tokens[0]))})
    exhibits = []
    for name in settings.paper:
        shown = results(cells[name], entries, failures)
        picture = beside.get(f"{name}.svg")
        attention = maps if name == attention_of else ()
        exhibits.append(_exhibit(settings, name, shown, trained, picture, attention))
    logs = {}
    for run in trained.values():
        log = output.parent.parent / "logs" / run.task / run.model / run.run / "train.log"
        if log.is_file():
            logs[run.anchor] = Path(os.path.relpath(log, output.parent)).as_posix()
    recorded = {names: run for names, run in trained.items() if run.summary or run.epochs}
    content = {
        "scale": settings.options.scale,
        "stand_in": settings.scale.stand_in,
        "exhibits": exhibits,
        "claims": _claims(settings, beside["claims.json"]),
        "models": _models(recorded),
        "recorded": {run.anchor for run in recorded.values()},
        "logs": logs,
        "examples": examples(entries, paths),
        "total": cost_of(trained.values()),
        "environment": environment(trained.values()),
        "dates": sorted({entry.date for entry in entries}),
        "revisions": sorted({entry.revision for entry in entries if entry.revision}),
    }
    with atomic_text(output) as stream:
        stream.write(_render(content))


def _models(recorded: Trainings) -> list[PagePart]:
    """Return the models of trainings with a record, with learning curves of those with a history.

    The trainings are sorted by their names.
    """
    models = list[PagePart]()
    for (task, model), group in groupby(recorded, key=lambda names: names[:2]):
        runs = [recorded[names] for names in group]
        known = {run.run: run.epochs for run in runs if run.epochs}
        panels = learning_curves(known) if known else []
        charts = [as_spec(panel, "perplexity and learning rate by epoch") for panel in panels]
        best = min((one.valid_perplexity for run in known.values() for one in run), default=None)
        models.append({"task": task, "model": model, "runs": runs, "charts": charts, "best": best})
    return models


def _claims(settings: Settings, path: Path) -> list[PagePart]:
    """Return the claims: what the line of each says, and the columns and rows of its tests."""
    claims = read_claims(path)
    lines = printed_claims(settings, claims)[0].rows
    parts = list[PagePart]()
    for claim, line in zip(claims, lines, strict=True):
        sheet = Sheet([], rows_of_findings([claim]), "Verdict", {}, {}, _OF_LINE)
        header, rows, _ = sheet.printed()
        parts.append({"line": line, "header": header, "rows": rows if claim.findings else []})
    return parts


def _render(content: Mapping[str, object]) -> str:
    """Return the page; DataTables with jQuery, and Vega come out of installed packages."""
    tables = files("itables").joinpath("html")
    styles = map(asset, ("page.css", "attention_view.css", "report.css"))
    programs = [
        # The tables' program first, as it leaves jQuery as `$`: the page's own uses both.
        tables.joinpath("dt_bundle.js").read_text("utf-8"),
        vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE),
        asset("attention_view.js") + asset("attention.js"),
        asset("report.js"),
    ]
    return render_page(
        "report.html.j2",
        content,
        programs=programs,
        styles=[tables.joinpath("dt_bundle.css").read_text("utf-8"), *styles],
    )


def _exhibit(
    settings: Settings,
    name: str,
    shown: Sequence[Result],
    trained: Trainings,
    picture: Path | None,
    attention: Sequence[PagePart],
) -> PagePart:
    """Return a table or figure, its values beside ours.

    Each has charts; attention or the picture of a plot drawn before (a data: address) besides.
    """
    printed = settings.paper[name]
    above, table, every = shown_tables(settings, name, shown, trained)
    if printed.is_by_layers:
        networks = list(depths(printed, settings.scale.shown_rows(printed), shown))
        panels = layer_panels(networks, on_stand_in=settings.scale.stand_in is not None)
    else:
        panels = trend_panels(settings, name, shown)
    address = None
    if picture and not printed.is_by_layers and not attention:
        encoded = base64.b64encode(picture.read_bytes()).decode("ascii")
        address = f"data:image/svg+xml;base64,{encoded}"
    return {
        "name": name,
        "printed": printed,
        "above": [line for line in above[1:] if not line.startswith("STAND-IN")],
        "table": table,
        "every": every,
        "trend": [
            as_spec(panel, printed.title)
            for panel in trend_panels(settings, name, shown, is_small=True)
        ],
        "charts": [as_spec(panel, printed.title) for panel in panels],
        "picture": address,
        "attention": attention,
        "cost": cost_of(run for row in every.rows for cell in row for run in cell.runs),
    }
