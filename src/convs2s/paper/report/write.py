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
from convs2s.paper.charts import VEGA_LITE, Panel, as_spec
from convs2s.paper.curves import learning_curves
from convs2s.paper.ledger import read_ledger
from convs2s.paper.report.examples import examples
from convs2s.paper.report.exhibits import (
    Trainings,
    cost_of,
    environment,
    read_claims,
    shown_table,
    trainings,
)
from convs2s.paper.results import Result, results

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
    models = list[PagePart]()  # the trainings, with learning curves of those with a history
    for (task, model), group in groupby(trained, key=lambda names: names[:2]):
        runs = [trained[names] for names in group]
        known = {run.run: run.epochs for run in runs if run.epochs}
        panels = learning_curves(known) if known else []
        charts = [as_spec(panel, "perplexity and learning rate by epoch") for panel in panels]
        models.append({"task": task, "model": model, "runs": runs, "charts": charts})
    content = {
        "scale": settings.options.scale,
        "stand_in": settings.scale.stand_in,
        "exhibits": exhibits,
        "claims": read_claims(beside["claims.json"]),
        "models": models,
        "logs": logs,
        "examples": examples(entries, paths),
        "total": cost_of(trained.values()),
        "environment": environment(trained.values()),
        "dates": sorted({entry.date for entry in entries}),
        "revisions": sorted({entry.revision for entry in entries if entry.revision}),
    }
    with atomic_text(output) as stream:
        stream.write(_render(content))


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

    A figure has charts, attention, or the picture of a plot drawn before (a data: address).
    """
    printed, table = settings.paper[name], shown_table(settings, name, shown, trained)
    panels: Sequence[Panel] = ()
    if printed.is_by_layers:
        networks = list(depths(printed, settings.scale.shown_rows(printed), shown))
        panels = layer_panels(networks, on_stand_in=settings.scale.stand_in is not None)
    charts = [as_spec(panel, printed.title) for panel in panels]
    address = None
    if picture and not charts and not attention:
        encoded = base64.b64encode(picture.read_bytes()).decode("ascii")
        address = f"data:image/svg+xml;base64,{encoded}"
    return {
        "name": name,
        "printed": printed,
        "table": table,
        "charts": charts,
        "picture": address,
        "attention": attention,
        "cost": cost_of(run for row in table.rows for cell in row for run in cell.runs),
    }
