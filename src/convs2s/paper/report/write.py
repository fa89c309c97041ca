"""The report: what a run of the paper made, in one HTML file that needs nothing else."""

import base64
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import get_args

import vl_convert
from pydantic import TypeAdapter

from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.text import read_json, write_text
from convs2s.pages.render import asset, render_page
from convs2s.paper.attention_maps import attention_maps, read_example, spread_note
from convs2s.paper.bleu_by_layers import depths, layer_panels
from convs2s.paper.cells import Cell
from convs2s.paper.charts import VEGA_LITE, Panel, as_spec
from convs2s.paper.claims import JudgedClaim, Verdict, printed_claims, rows_of_findings
from convs2s.paper.curves import TRAININGS, learning_curves, plateau_panels
from convs2s.paper.ledger import LedgerEntry, read_ledger
from convs2s.paper.report.examples import examples
from convs2s.paper.results import results
from convs2s.paper.table_formats import Sheet
from convs2s.paper.tables import for_readers, sheet, table_rows
from convs2s.paper.trained import Hours, Training, read_training
from convs2s.paper.trends import trend_panels

_OF_LINE = ("Claim", "Says", "Source", "Verdict of the claim")
"""Columns of a claim's tests that its line says."""

_MOST_LINES = 15
"""Of a table or list that is shown at once: a longer one is folded, a table with its plots."""

PagePart = dict[str, object]  # what a part of report.html.j2 shows, by the names that it has there

_MACHINE = ("processor", "gpu", "system", "threads", "python", "convs2s", "revision")

Trainings = Mapping[tuple[str, str, str], Training]  # task, model and run -> the training


def write_report(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    failures: Mapping[str, str],
    inputs: Collection[str],
    output: Path,
) -> None:
    """Write the report as one HTML file; links to logs are relative to it.

    ``cells`` are table -> those of its values that the workflow measures, ``failures`` those of
    `results`. ``inputs`` are the files that exist: beside the output the ledger, the claims and
    figures; elsewhere histories, training.json, attention maps, translations and references.
    """
    paths = [Path(path) for path in inputs]
    beside = {path.name: path for path in paths if path.parent == output.parent}
    entries = read_ledger(beside["ledger.jsonl"])
    trained = trainings(entries, paths)
    maps = [_attention(path) for path in paths if path.name.endswith(".example.json")]
    exhibits = []
    for name, printed in settings.paper.items():
        shown = results(cells[name], entries, failures)
        part = _exhibit(settings, name, shown, trained)
        if printed.example_source:
            part["attention"] = maps
        # The picture of a plot drawn before, as a data: address, where nothing else is shown.
        picture = beside.get(f"{name}.svg")
        if picture and not printed.is_by_layers and not part["attention"]:
            encoded = base64.b64encode(picture.read_bytes()).decode("ascii")
            part["picture"] = f"data:image/svg+xml;base64,{encoded}"
        exhibits.append(part)
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
        "claims": _claims(settings, beside["claims.json"]),
        "verdicts": get_args(Verdict),
        "most_lines": _MOST_LINES,
        "models": _models(recorded),
        "recorded": {run.anchor for run in recorded},
        "logs": logs,
        "examples": examples(entries, paths),
        "total": cost_of(trained.values()),
        "environment": environment(trained.values()),
        "dates": sorted({entry.date for entry in entries}),
        "revisions": sorted({entry.revision for entry in entries if entry.revision}),
        "as_spec": as_spec,
    }
    write_text(output, _page(content))


def _page(content: Mapping[str, object]) -> str:
    """Return the page; DataTables with jQuery, and Vega come out of installed packages."""
    tables = files("itables").joinpath("html")
    return render_page(
        "report.html.j2",
        content,
        programs=[
            # The tables' program first, as it leaves jQuery as `$`: the page's own uses both.
            tables.joinpath("dt_bundle.js").read_text("utf-8"),
            vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE),
            asset("attention_view.js") + asset("attention.js"),
            asset("report.js"),
        ],
        styles=[
            tables.joinpath("dt_bundle.css").read_text("utf-8"),
            *map(asset, ("page.css", "attention_view.css", "report.css")),
        ],
    )


def _attention(path: Path) -> PagePart:
    """Return the maps of an example's attention."""
    example = read_example(path)
    source = example.source_tokens
    charts = attention_maps(example.weights, source, example.target_tokens, has_legend=False)
    return {"example": example, "charts": charts, "note": spread_note(len(source))}


def _models(recorded: Iterable[Training]) -> list[PagePart]:
    """Return the models of trainings with a record, with learning curves of those with a history.

    The trainings are sorted by their names.
    """
    models = list[PagePart]()
    for (task, model), group in groupby(recorded, key=lambda run: (run.task, run.model)):
        runs = list(group)
        known = {run.run: run.epochs for run in runs if run.epochs}
        charts = learning_curves(known) if known else {}
        best = min((one.valid_perplexity for run in known.values() for one in run), default=None)
        models.append({"task": task, "model": model, "runs": runs, "charts": charts, "best": best})
    return models


def _claims(settings: Settings, path: Path) -> list[PagePart]:
    """Return the claims: what the line of each says, and the columns and rows of its tests."""
    claims = read_claims(path)
    parts = list[PagePart]()
    for claim, line in zip(claims, printed_claims(settings, claims)[0].rows, strict=True):
        tests = Sheet([], rows_of_findings([claim]), "Verdict", left_out=_OF_LINE)
        header, rows, _ = tests.printed()
        parts.append({"line": line, "header": header, "rows": rows if claim.findings else []})
    return parts


def _exhibit(
    settings: Settings,
    name: str,
    shown: Sequence[Cell],
    trained: Trainings,
) -> PagePart:
    """Return a table or figure with its charts, the papers' values beside ours."""
    printed = settings.paper[name]
    stand_in = settings.scale.stand_in
    rows = table_rows(settings, name, shown)
    written = for_readers(sheet(settings, name, shown))
    header, texts, notes = written.printed()
    filled = [heading for heading in written.filled if heading != "Scale"]
    table = []
    for row, texts_of_row in zip(rows, texts, strict=True):
        said = zip(header, texts_of_row, strict=True)
        table.append({heading: replace(row[heading], content=text) for heading, text in said})
    is_long = len(table) > _MOST_LINES
    charts = trend_panels(settings, name, shown)
    folded: list[list[Panel]] = []
    if printed.is_by_layers:
        networks = depths(printed, settings.scale.shown_rows(printed), shown)
        charts = [layer_panels(networks, on_stand_in=stand_in is not None)]
    elif is_long:
        charts, folded = folded, charts
    if name == TRAININGS:
        for panel in plateau_panels(settings, shown):
            charts.append([{**panel, "title": f"Validation perplexity, {panel['title']}"}])
    rests_on = {names for cell in shown for names in cell.trained}
    return {
        "name": name,
        "printed": printed,
        "above": [line for line in written.above[1:] if not line.startswith("STAND-IN")],
        "table": {"header": header, "rows": table, "notes": notes},
        "every": {"header": filled, "rows": rows},
        "origins": [value.origin for row in rows for value in row.values()],
        "is_long": is_long,
        "trend": trend_panels(settings, name, shown, is_small=True),
        "charts": charts,
        "folded": folded,
        "picture": None,
        "attention": [],
        "cost": cost_of(trained[names] for names in rests_on if names in trained),
    }


def trainings(entries: Iterable[LedgerEntry], present: Collection[Path]) -> Trainings:
    """Return the trainings that a ledger rests on, sorted, an ensemble's members among them."""
    folders: dict[tuple[str, str, str], Path] = {}
    # A training of one's own is found where it was made, not where it was published.
    for entry in sorted(entries, key=lambda entry: entry.origin is None):
        for training in entry.trainings:
            folders[training] = Path(entry.file).parent.with_name(training[-1])
    trained = {}
    for names in sorted(folders):
        trained[names] = read_training(*names, folders[names], lambda path: path in present)
    return trained


@dataclass(frozen=True)
class TimeOfTrainings:
    """What trainings took, each counted once; the hours are of those with a history here."""

    trainings: int
    untimed: int  # how many have no history here
    hours: Hours


def cost_of(trained: Iterable[Training]) -> TimeOfTrainings:
    """Return what trainings took, each counted once."""
    distinct = {run.anchor: run for run in trained}.values()
    timed = [run.hours for run in distinct if run.hours is not None]
    return TimeOfTrainings(len(distinct), len(distinct) - len(timed), sum(timed, Hours()))


def environment(trained: Iterable[Training]) -> Mapping[str, Mapping[str, int]]:
    """Return, of what manifests say -> each value -> the number of trainings that it made."""
    counts: dict[str, Counter[str]] = {}
    for run in trained:
        stated = {key: run.manifest.get(key) for key in _MACHINE}
        stated |= run.manifest.get("packages", {})
        for key, value in stated.items():
            if value:
                counts.setdefault(key, Counter())[str(value)] += 1
    return counts


def read_claims(path: Path) -> list[JudgedClaim]:
    """Return the claims with their verdicts; a UserError says that the JSON file has none."""
    with failures_of_file(str(path), "not a list of claims; delete the file and ask for it again"):
        stated = TypeAdapter(dict[str, object]).validate_python(read_json(path))["claims"]
        return TypeAdapter(list[JudgedClaim]).validate_python(stated)
