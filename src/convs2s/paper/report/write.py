"""The report: all results of a scale, in one HTML file that loads no other file."""

import base64
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, groupby
from pathlib import Path
from typing import get_args

import vl_convert

from convs2s.config.settings import Settings
from convs2s.files.text import write_text
from convs2s.pages.render import asset, render_page
from convs2s.paper.attention_maps import attention_maps, read_example, spread_note
from convs2s.paper.bleu_by_layers import depths, layer_panels
from convs2s.paper.cells import Cell
from convs2s.paper.charts import VEGA_LITE, Panel, as_spec
from convs2s.paper.claim_tables import (
    printed_claims,
    read_claims,
    rows_of_findings,
)
from convs2s.paper.claims import Verdict
from convs2s.paper.curves import TRAININGS, learning_curves, plateau_panels
from convs2s.paper.ledger import LedgerEntry, read_ledger
from convs2s.paper.report.examples import examples
from convs2s.paper.results import results
from convs2s.paper.table_formats import Sheet
from convs2s.paper.tables import for_readers, sheet, table_rows
from convs2s.paper.trained import Hours, Training, read_training
from convs2s.paper.trends import trend_panels

_IN_SUMMARY = ("Claim", "Says", "Source", "Verdict of the claim")
"""Columns that the table of a claim's tests omits, because the claim's summary line shows them."""

_MOST_LINES = 15
"""A table or list with more lines is collapsed, and so are the charts of the table's trends."""

PagePart = dict[str, object]
"""The variables that report.html.j2 uses for one part of the page."""

_MACHINE = ("processor", "gpu", "system", "threads", "python", "convs2s", "revision")
"""Keys of a training's manifest that the section on the environment shows."""

# Task, model and run -> the training.
Trainings = Mapping[tuple[str, str, str], Training]


def write_report(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    failures: Mapping[str, str],
    inputs: Collection[str],
    output: Path,
) -> None:
    """Write the report as one HTML file, with links to logs relative to the file.

    Args:
        settings: the configuration.
        cells: name of each table or figure -> the cells that the workflow measures.
        failures: fingerprint of a run -> the reason why it has no numbers.
        inputs: the files that exist and may be read. The ledger, the claims and the figures are in
            the folder of the output. Histories, training.json, attention maps, translations and
            references are elsewhere.
        output: the file to write.

    Raises:
        UserError: an input is damaged.
    """
    paths = [Path(path) for path in inputs]
    in_folder = {path.name: path for path in paths if path.parent == output.parent}
    entries = read_ledger(in_folder["ledger.jsonl"])
    trained = trainings(entries, paths)
    maps = [_attention(path) for path in paths if path.name.endswith(".example.json")]
    exhibits = []
    for name, printed in settings.paper.items():
        shown = results(cells[name], entries, failures)
        part = _exhibit(settings, name, shown, trained)
        if printed.example_source:
            part["attention"] = maps
        # A figure without interactive charts embeds the SVG file that another job has drawn.
        picture = in_folder.get(f"{name}.svg")
        if picture and not printed.is_by_layers and not part["attention"]:
            encoded = base64.b64encode(picture.read_bytes()).decode("ascii")
            part["picture"] = f"data:image/svg+xml;base64,{encoded}"
        exhibits.append(part)
    # Anchor of a training -> path of its log, relative to the output's folder.
    logs = {}
    for run in trained.values():
        log = f"../logs/{run.task}/{run.model}/{run.run}/train.log"
        if (output.parent / log).is_file():
            logs[run.anchor] = log
    recorded = [run for run in trained.values() if run.summary or run.epochs]
    content = {
        "scale": settings.options.scale,
        "stand_in": settings.scale.stand_in,
        "exhibits": exhibits,
        "claims": _claims(settings, in_folder["claims.json"]),
        "verdicts": get_args(Verdict),
        "most_lines": _MOST_LINES,
        "models": _models(recorded),
        "recorded": {run.anchor for run in recorded},
        "logs": logs,
        "examples": examples(entries, paths),
        "total": cost_of(trained.values()),
        "environment": environment(trained.values()),
        "entries": entries,
        "as_spec": as_spec,
    }
    write_text(output, _page(content))


def _page(content: Mapping[str, object]) -> str:
    """Return the page with its programs and styles.

    DataTables and jQuery come from the package itables, Vega from vl-convert. The page runs each
    program as a module, so a program sees the names of another one only if they are on `window`.
    """
    tables = files("itables").joinpath("html")
    return render_page(
        "report.html.j2",
        content,
        programs=[
            # DataTables comes first: it defines jQuery's `$`, and report.js uses both.
            tables.joinpath("dt_bundle.js").read_text("utf-8"),
            # This puts vegaEmbed on `window`, for report.js.
            vl_convert.javascript_bundle(
                "window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE
            ),
            # One program, because the second file calls a function of the first.
            asset("attention_view.js") + asset("attention.js"),
            asset("report.js"),
        ],
        styles=[
            tables.joinpath("dt_bundle.css").read_text("utf-8"),
            *map(asset, ("page.css", "attention_view.css", "report.css")),
        ],
    )


def _attention(path: Path) -> PagePart:
    """Return the attention on an example sentence: the record, a map for each layer, and a note."""
    example = read_example(path)
    source = example.source_tokens
    charts = attention_maps(
        example.weights, source, example.target_tokens, has_legend=False
    )
    return {"example": example, "charts": charts, "note": spread_note(len(source))}


def _models(recorded: Iterable[Training]) -> list[PagePart]:
    """Return a part for each model: its trainings, learning curves and best perplexity.

    ``recorded`` must be sorted by task and model. Trainings without a history have no curve.
    """
    models = list[PagePart]()
    for (task, model), group in groupby(
        recorded, key=lambda run: (run.task, run.model)
    ):
        runs = list(group)
        histories = {run.run: run.epochs for run in runs if run.epochs}
        charts = learning_curves(histories) if histories else {}
        epochs = chain.from_iterable(histories.values())
        best = min((epoch.valid_perplexity for epoch in epochs), default=None)
        models.append(
            {"task": task, "model": model, "runs": runs, "charts": charts, "best": best}
        )
    return models


def _claims(settings: Settings, path: Path) -> list[PagePart]:
    """Return a part for each claim: its summary line, and the table of its tests.

    The table of a claim without tests has no rows.
    """
    claims = read_claims(path)
    summary, _ = printed_claims(settings, claims)
    parts = list[PagePart]()
    for claim, line in zip(claims, summary.rows, strict=True):
        tests = Sheet([], rows_of_findings([claim]), "Verdict", left_out=_IN_SUMMARY)
        header, rows, _ = tests.printed()
        parts.append(
            {"line": line, "header": header, "rows": rows if claim.findings else []}
        )
    return parts


def _exhibit(
    settings: Settings,
    name: str,
    shown: Sequence[Cell],
    trained: Trainings,
) -> PagePart:
    """Return the part of a table or figure: the papers' values beside ours, and charts of them.

    ``shown`` are the exhibit's cells with scores. ``trained`` are all trainings behind the ledger.
    `write_report` fills "picture" and "attention", which are empty here.
    """
    printed = settings.paper[name]
    rows = table_rows(settings, name, shown)
    written = for_readers(sheet(settings, name, shown))
    header, texts, notes = written.printed()
    # The page states the scale once, for all tables.
    filled = [heading for heading in written.filled if heading != "Scale"]
    charts: list[list[Panel]] = []
    trends: list[list[Panel]] = []
    if printed.is_by_layers:
        networks = depths(settings, name, shown)
        on_stand_in = settings.scale.stand_in is not None
        charts.append(layer_panels(networks, on_stand_in=on_stand_in))
    else:
        trends = trend_panels(settings, name, shown)
    if name == TRAININGS:
        for panel in plateau_panels(settings, shown):
            title = f"Validation perplexity, {panel['title']}"
            charts.append([{**panel, "title": title}])
    used = {names for cell in shown for names in cell.trained}  # task, model, run
    # The page has the title as a heading, and states the stand-in data itself.
    above = [line for line in written.above[1:] if not line.startswith("STAND-IN")]
    return {
        "name": name,
        "printed": printed,
        "above": above,
        # The texts are what the table shows. The rows have the numbers by which it is sorted.
        "table": {"header": header, "rows": rows, "texts": texts, "notes": notes},
        "every": {"header": filled, "rows": rows},
        "origins": [value.origin for row in rows for value in row.values()],
        "small_trends": trend_panels(settings, name, shown, is_small=True),
        "trends": trends,
        "charts": charts,
        "picture": None,
        "attention": [],
        "cost": cost_of(trained[names] for names in used if names in trained),
    }


def trainings(entries: Iterable[LedgerEntry], present: Collection[Path]) -> Trainings:
    """Return the trainings behind the entries of a ledger, sorted by task, model and run.

    The trainings of an ensemble are those of its members. Only files in ``present`` are read.
    """
    folders: dict[tuple[str, str, str], Path] = {}
    # Entries that were made here come last, so that their folders replace those of published ones.
    for entry in sorted(entries, key=lambda entry: entry.origin is None):
        for task, model, run in entry.trainings:
            # The folders of all runs of a model are side by side.
            folders[task, model, run] = Path(entry.file).parent.with_name(run)
    is_present = present.__contains__
    trained = {}
    for names, folder in sorted(folders.items()):
        trained[names] = read_training(*names, folder, is_present)
    return trained


@dataclass(frozen=True)
class TimeOfTrainings:
    """The number and the hours of trainings, each counted once."""

    trainings: int
    untimed: int  # the number of trainings without recorded hours here
    hours: Hours  # the sum over all other trainings


def cost_of(trained: Iterable[Training]) -> TimeOfTrainings:
    """Return the number and the hours of trainings. A training that comes twice counts once."""
    distinct = {run.anchor: run for run in trained}.values()
    timed = [run.hours for run in distinct if run.hours is not None]
    return TimeOfTrainings(
        len(distinct), len(distinct) - len(timed), sum(timed, Hours())
    )


def environment(trained: Iterable[Training]) -> Mapping[str, Mapping[str, int]]:
    """Return the environments of trainings: key of the manifest -> value -> number of trainings.

    The keys are those of `_MACHINE`, and the names of packages, whose values are their versions.
    """
    counts: dict[str, Counter[str]] = {}
    for run in trained:
        stated = {key: run.manifest.get(key) for key in _MACHINE}
        stated |= run.manifest.get("packages", {})
        for key, value in stated.items():
            if value:
                counts.setdefault(key, Counter())[str(value)] += 1
    return counts
